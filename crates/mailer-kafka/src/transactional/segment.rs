//! A staged segment: records in the order in which they will be published.
//!
//! ```text
//! segment = "MLKS" version:u8 topic:text record*
//! record  = partition:varint timestamp:zigzag key:optional value:optional headers:varint (text optional)*
//! text    = length:varint bytes           optional = 0 | (length + 1):varint bytes
//! ```
//!
//! Varints are little-endian base 128. The version is frozen: segments of a decided checkpoint are published by whatever
//! release starts next. Whole-file checksum and length are the blob store's business.

use crate::encode::Encoded;
use crate::record::OutRecord;
use bytes::{Buf, Bytes};
use mailer_core::{Error, Result};

const MAGIC: &[u8; 4] = b"MLKS";
const VERSION: u8 = 1;
/// Bytes are appended to allocations of this size, so that a growing segment is never copied.
const CHUNK: usize = 256 << 10;

/// A segment being written.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    chunks: Vec<Vec<u8>>,
    bytes: usize,
    records: u64,
}

impl Draft {
    /// An empty segment of a topic.
    pub(crate) fn new(topic: &str) -> Self {
        let mut draft = Self::default();
        let chunk = draft.room_for(MAGIC.len() + 1 + MAX_VARINT + topic.len());
        chunk.extend_from_slice(MAGIC);
        chunk.push(VERSION);
        put_text(chunk, topic);
        draft.bytes = chunk_bytes(&draft.chunks);
        draft
    }

    /// Appends a record for `partition`.
    pub(crate) fn push(&mut self, partition: i32, record: &Encoded) {
        let chunk = self.room_for(encoded_size(record));
        let before = chunk.len();
        put_varint(chunk, partition as u64);
        put_varint(chunk, zigzag(record.timestamp()));
        put_optional(chunk, record.key());
        put_optional(chunk, record.value());
        put_varint(chunk, record.headers().len() as u64);
        for (name, value) in record.headers() {
            put_text(chunk, name);
            put_optional(chunk, value.as_deref());
        }
        let written = chunk.len() - before;
        self.bytes += written;
        self.records += 1;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Its bytes, to be laid end to end.
    pub(crate) fn chunks(&self) -> Vec<&[u8]> {
        self.chunks.iter().map(Vec::as_slice).collect()
    }

    /// A chunk that takes `bytes` more without growing.
    fn room_for(&mut self, bytes: usize) -> &mut Vec<u8> {
        let fits = self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= bytes);
        if !fits {
            self.chunks.push(Vec::with_capacity(CHUNK.max(bytes)));
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }
}

fn chunk_bytes(chunks: &[Vec<u8>]) -> usize {
    chunks.iter().map(Vec::len).sum()
}

/// A segment being read: an iterator of records whose bytes are slices of the file.
#[derive(Debug)]
pub(crate) struct Reading {
    topic: String,
    rest: Bytes,
    read: u64,
}

impl Reading {
    pub(crate) fn open(mut file: Bytes) -> Result<Self> {
        if file.len() < MAGIC.len() + 1 || file.split_to(MAGIC.len()) != MAGIC[..] {
            return Err(Error::corrupt("this is not a staged Kafka segment"));
        }
        match file.get_u8() {
            VERSION => {}
            other => {
                return Err(Error::corrupt(format!(
                    "this staged Kafka segment has format version {other}; this release reads version {VERSION}"
                )));
            }
        }
        let topic = text(&mut file).ok_or_else(|| Error::corrupt("a staged Kafka segment ends in its topic"))?;
        Ok(Self { topic, rest: file, read: 0 })
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }
}

impl Iterator for Reading {
    type Item = Result<OutRecord>;

    fn next(&mut self) -> Option<Result<OutRecord>> {
        if self.rest.is_empty() {
            return None;
        }
        let record = record(&mut self.rest);
        self.read += 1;
        Some(record.ok_or_else(|| {
            self.rest.clear();
            Error::corrupt(format!("record {} of a staged Kafka segment does not decode", self.read))
        }))
    }
}

fn record(rest: &mut Bytes) -> Option<OutRecord> {
    let partition = i32::try_from(varint(rest)?).ok()?;
    let timestamp = unzigzag(varint(rest)?);
    let (key, value) = (optional(rest)?, optional(rest)?);
    let count = varint(rest)?;
    let mut headers = Vec::new();
    for _ in 0..count {
        headers.push((text(rest)?, optional(rest)?));
    }
    Some(OutRecord { key, value, timestamp: Some(timestamp), headers, partition: Some(partition) })
}

// The pieces. `None` while reading means: these bytes were not written by us.

const MAX_VARINT: usize = 10;

/// At most this much is written for a record.
fn encoded_size(record: &Encoded) -> usize {
    record.bytes() + MAX_VARINT * (5 + 2 * record.headers().len())
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.push(0),
        Some(bytes) => {
            put_varint(out, bytes.len() as u64 + 1);
            out.extend_from_slice(bytes);
        }
    }
}

fn varint(rest: &mut Bytes) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = rest.first().copied()?;
        rest.advance(1);
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn slice(rest: &mut Bytes, length: u64) -> Option<Bytes> {
    let length = usize::try_from(length).ok().filter(|length| *length <= rest.len())?;
    Some(rest.split_to(length))
}

fn text(rest: &mut Bytes) -> Option<String> {
    let length = varint(rest)?;
    String::from_utf8(slice(rest, length)?.to_vec()).ok()
}

fn optional(rest: &mut Bytes) -> Option<Option<Bytes>> {
    match varint(rest)? {
        0 => Some(None),
        length => slice(rest, length - 1).map(Some),
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(record: &OutRecord) -> Encoded {
        let mut encoded = Encoded::default();
        encoded.begin(0);
        encoded.copy(record.clone());
        encoded
    }

    fn file(draft: &Draft) -> Bytes {
        Bytes::from(draft.chunks().concat())
    }

    fn round_trip(records: &[OutRecord]) -> Vec<OutRecord> {
        let mut draft = Draft::new("totals");
        records.iter().for_each(|record| draft.push(record.partition.unwrap(), &encoded(record)));
        assert_eq!(draft.bytes(), file(&draft).len());
        let reading = Reading::open(file(&draft)).unwrap();
        assert_eq!(reading.topic(), "totals");
        reading.map(Result::unwrap).collect()
    }

    #[test]
    fn records_come_back_as_they_went_in() {
        let at = |timestamp, partition| {
            move |record: OutRecord| OutRecord { timestamp: Some(timestamp), partition: Some(partition), ..record }
        };
        let mut headers = OutRecord::value("v").with_key("").with_header("h", "1").with_header("h", "");
        headers.headers.push(("null".into(), None));
        let records = [
            at(0, 0)(OutRecord::value("")),
            at(-1, 1)(OutRecord::tombstone("k")),
            at(i64::MAX, i32::MAX)(headers),
            at(1_700_000_000_000, 3)(OutRecord::value(vec![b'x'; 300])),
        ];
        assert_eq!(round_trip(&records), records);
    }

    #[test]
    fn a_large_segment_spans_chunks_and_a_huge_record_gets_its_own() {
        let record =
            |size: usize| OutRecord { timestamp: Some(1), partition: Some(0), ..OutRecord::value(vec![7; size]) };
        let records: Vec<_> = [1_000, CHUNK * 2, 1_000].map(record).into();
        assert_eq!(round_trip(&records), records);
    }

    /// The bytes of format 1; a release that changes them cannot publish what the one before has decided.
    #[test]
    fn the_format_stays() {
        let mut draft = Draft::new("t");
        let record = OutRecord { timestamp: Some(300), ..OutRecord::value("v").with_key("k").with_header("h", "x") };
        draft.push(2, &encoded(&record));
        assert_eq!(file(&draft)[..], b"MLKS\x01\x01t\x02\xd8\x04\x02k\x02v\x01\x01h\x02x"[..]);
    }

    #[test]
    fn damage_is_an_error_wherever_it_falls() {
        let mut draft = Draft::new("topic");
        draft.push(1, &encoded(&OutRecord::value("value").with_key("key").with_header("name", "text")));
        let whole = file(&draft);
        let start = MAGIC.len() + 1 + 1 + "topic".len();
        for cut in start + 1..whole.len() {
            let mut reading = Reading::open(whole.slice(..cut)).unwrap();
            assert!(reading.next().unwrap().is_err(), "cut at {cut}");
            assert!(reading.next().is_none(), "an error ends it");
        }
        for cut in 0..start {
            assert!(Reading::open(whole.slice(..cut)).is_err(), "cut at {cut}");
        }
        assert!(Reading::open(Bytes::from_static(b"MLKS\x02\x01t")).unwrap_err().message().contains("version 2"));
    }
}
