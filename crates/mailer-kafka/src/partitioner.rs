//! Which partition a record goes to: the same as the Java client's default for keyed records.

use crate::encode::Encoded;

/// The partition of a record among `partitions`: the one it names, the one of its key, or the next in turn.
pub(crate) fn choose(record: &Encoded, partitions: u32, spread: &mut Spread) -> Result<i32, String> {
    match (record.partition(), record.key()) {
        (Some(partition), _) if (0..i64::from(partitions)).contains(&i64::from(partition)) => Ok(partition),
        (Some(partition), _) => Err(format!("it names partition {partition}, and there are {partitions}")),
        (None, Some(key)) => Ok(of_key(key, partitions)),
        (None, None) => Ok(spread.next(record.bytes(), partitions)),
    }
}

/// The partition of `key` among `partitions`.
fn of_key(key: &[u8], partitions: u32) -> i32 {
    ((murmur2(key) & 0x7fff_ffff) % partitions.max(1)) as i32
}

/// Spreads records without a key: some in a row to one partition, so that batches fill, then the next.
#[derive(Debug)]
pub(crate) struct Spread {
    partition: u32,
    bytes: usize,
}

/// Bytes that stay together before [`Spread`] moves on.
const STICKY_BYTES: usize = 16 * 1_024;

impl Spread {
    /// `seed` keeps the workers of a sink apart.
    pub(crate) fn new(seed: u16) -> Self {
        Self { partition: u32::from(seed), bytes: 0 }
    }

    pub(crate) fn next(&mut self, record_bytes: usize, partitions: u32) -> i32 {
        if self.bytes >= STICKY_BYTES {
            (self.partition, self.bytes) = (self.partition.wrapping_add(1), 0);
        }
        self.bytes += record_bytes;
        (self.partition % partitions.max(1)) as i32
    }
}

/// MurmurHash2 with the seed of Kafka's Java client.
fn murmur2(data: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    let mix = |word: u32| {
        let word = word.wrapping_mul(MULTIPLIER);
        (word ^ (word >> 24)).wrapping_mul(MULTIPLIER)
    };
    let (words, tail) = data.as_chunks::<4>();
    let mut hash = SEED ^ data.len() as u32;
    for word in words {
        hash = hash.wrapping_mul(MULTIPLIER) ^ mix(u32::from_le_bytes(*word));
    }
    if !tail.is_empty() {
        let rest = tail.iter().rev().fold(0, |rest, byte| (rest << 8) | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Apache Kafka's own unit test of `Utils.murmur2`.
    #[test]
    fn hashes_as_the_java_client() {
        let cases: [(&str, i32); 6] = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];
        for (text, expected) in cases {
            assert_eq!(murmur2(text.as_bytes()) as i32, expected, "{text}");
        }
    }

    #[test]
    fn records_without_key_move_on_after_a_batch() {
        let mut spread = Spread::new(1);
        let partitions: Vec<i32> = (0..6).map(|_| spread.next(8 * 1_024, 3)).collect();
        assert_eq!(partitions, [1, 1, 2, 2, 0, 0]);
    }
}
