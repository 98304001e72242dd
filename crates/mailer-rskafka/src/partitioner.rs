//! Which partition a key goes to: the same as the Java client's default, so that either connector may be used beside any
//! other client. `mailer-kafka` has the same function; the two crates know only `mailer-core`, which knows no Kafka.

/// The place of the partition of `key` among `partitions`.
pub(crate) fn of_key(key: &[u8], partitions: usize) -> usize {
    (murmur2(key) & 0x7fff_ffff) as usize % partitions.max(1)
}

/// MurmurHash2 with the seed of Kafka's Java client.
fn murmur2(data: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    let (words, tail) = data.as_chunks::<4>();
    let mut hash = SEED ^ data.len() as u32;
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ (word ^ (word >> 24)).wrapping_mul(MULTIPLIER);
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

    /// Vectors of Apache Kafka's own unit test of `Utils.murmur2`.
    #[test]
    fn hashes_as_the_java_client() {
        let cases = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("abc", 479_470_107),
        ];
        for (text, expected) in cases {
            assert_eq!(murmur2(text.as_bytes()) as i32, expected, "{text}");
        }
    }
}
