//! A staged segment: record batches as they will be sent, but for the name of the sender.
//!
//! ```text
//! segment = "MLKS" version:u8=2 topic-length:varint topic part*
//! part    = partition:u32 length:u32 batch            little-endian; `batch` is a record batch of Kafka's format 2
//! ```
//!
//! The version is frozen: segments of a decided checkpoint are published by whatever release starts next. Format 1
//! ([`old_segment`](super::old_segment)) is still read. Length and checksum of the whole file are the blob store's business.

use super::old_segment;
use crate::batch::{Batches, Malformed, RawBatch, SealedBatch, Settings};
use crate::encode::Encoded;
use crate::gather::{Gather, Parted};
use bytes::{Buf, Bytes};
use mailer_core::{Error, Result};

const MAGIC: &[u8; 4] = b"MLKS";
const VERSION: u8 = 2;
const OLD: u8 = 1;

/// The file of some batches, in pieces to be laid end to end: only the heads are new bytes.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    heads: Vec<Vec<u8>>,
    payloads: Vec<Bytes>,
    records: u64,
}

impl Draft {
    pub(crate) fn new(topic: &str, parts: &[Parted]) -> Self {
        let mut draft = Self::default();
        let mut head = MAGIC.to_vec();
        head.push(VERSION);
        put_text(&mut head, topic);
        for Parted { partition, batch } in parts {
            head.extend_from_slice(&(*partition as u32).to_le_bytes());
            head.extend_from_slice(&(batch.bytes() as u32).to_le_bytes());
            head.extend_from_slice(batch.head());
            draft.heads.push(std::mem::take(&mut head));
            draft.records += u64::from(batch.records());
            draft.payloads.push(batch.payload().clone());
        }
        draft
    }

    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    pub(crate) fn chunks(&self) -> Vec<&[u8]> {
        let pairs = self.heads.iter().zip(&self.payloads);
        pairs.flat_map(|(head, payload)| [head.as_slice(), payload.as_ref()]).collect()
    }
}

/// What a segment holds: batches in the order of each partition, as slices of the file.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) topic: String,
    pub(crate) parts: Vec<Parted>,
}

impl Segment {
    /// Reads a file; `settings` says how batches are made of what a release before wrote record by record.
    pub(crate) fn open(mut file: Bytes, settings: Settings) -> Result<Self> {
        if file.len() < MAGIC.len() + 1 || file.split_to(MAGIC.len()) != MAGIC[..] {
            return Err(Error::corrupt("this is not a staged Kafka segment"));
        }
        let version = file.get_u8();
        if version != VERSION && version != OLD {
            return Err(Error::corrupt(format!(
                "this staged Kafka segment has format version {version}; this release reads versions {OLD} and {VERSION}"
            )));
        }
        let topic = text(&mut file).ok_or_else(|| Error::corrupt("a staged Kafka segment ends in its topic"))?;
        let parts = if version == OLD { gather(file, settings)? } else { parts(file)? };
        Ok(Self { topic, parts })
    }
}

fn parts(mut rest: Bytes) -> Result<Vec<Parted>> {
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let part = part(&mut rest);
        parts.push(part.ok_or_else(|| Error::corrupt(format!("batch {} of a staged Kafka segment", parts.len() + 1)))?);
    }
    Ok(parts)
}

/// `None`: these bytes were not written by us.
fn part(rest: &mut Bytes) -> Option<Parted> {
    let partition = i32::try_from(rest.try_get_u32_le().ok()?).ok()?;
    let length = rest.try_get_u32_le().ok()? as usize;
    if length > rest.len() {
        return None;
    }
    let mut batches = Batches::new(rest.split_to(length));
    let batch = batches.next()?.ok()?;
    batches.next().is_none().then(|| Parted { partition, batch: SealedBatch::stored(batch) })
}

/// Batches out of the records of format 1.
fn gather(rest: Bytes, settings: Settings) -> Result<Vec<Parted>> {
    let (mut gather, mut encoded) = (Gather::new(settings), Encoded::default());
    for record in old_segment::Reading::new(rest) {
        let record = record?;
        let (timestamp, partition) = (record.timestamp.unwrap_or_default(), record.partition.unwrap_or_default());
        encoded.begin(timestamp);
        encoded.copy(record);
        gather.push(partition, timestamp, &encoded)?;
    }
    gather.close()?;
    Ok(gather.take_done())
}

/// Splits a batch that a topic has no room for any more into smaller ones. Its records stay in order.
pub(crate) fn split(parted: &Parted, settings: Settings) -> Result<Vec<Parted>> {
    let corrupt = |why: Malformed| Error::corrupt(format!("a staged batch cannot be read: {why}"));
    let batch =
        Batches::new(parted.batch.to_bytes()).next().ok_or_else(|| Error::corrupt("a staged batch is empty"))?;
    let mut records = batch.and_then(RawBatch::records).map_err(corrupt)?;
    let (mut gather, mut encoded) = (Gather::new(settings), Encoded::default());
    while let Some(record) = records.next_record() {
        let record = record.map_err(corrupt)?;
        encoded.begin(record.timestamp);
        encoded.take(&record).map_err(corrupt)?;
        gather.push(parted.partition, record.timestamp, &encoded)?;
    }
    gather.close()?;
    Ok(gather.take_done())
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(text.as_bytes());
}

fn text(rest: &mut Bytes) -> Option<String> {
    let length = old_segment::varint(rest)?;
    String::from_utf8(old_segment::slice(rest, length)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Codec;
    use crate::record::OutRecord;

    const SETTINGS: Settings = Settings { codec: Codec::None, max_bytes: 200 };

    fn encoded(record: OutRecord) -> Encoded {
        let mut out = Encoded::default();
        out.begin(300);
        out.copy(record);
        out
    }

    fn staged(records: &[(i32, &str)]) -> Vec<Parted> {
        let mut gather = Gather::new(SETTINGS);
        for (partition, value) in records {
            gather.push(*partition, 300, &encoded(OutRecord::value(value.to_string()).with_key("k"))).unwrap();
        }
        gather.close().unwrap();
        gather.take_done()
    }

    fn file(parts: Vec<Parted>) -> Bytes {
        Bytes::from(Draft::new("totals", &parts).chunks().concat())
    }

    /// Partition and value of every record.
    fn values(segment: &Segment) -> Vec<(i32, String)> {
        let mut values = Vec::new();
        for parted in &segment.parts {
            let batch = Batches::new(parted.batch.to_bytes()).next().unwrap().unwrap();
            let mut records = batch.records().unwrap();
            while let Some(record) = records.next_record() {
                let value = String::from_utf8(record.unwrap().value.unwrap().to_vec()).unwrap();
                values.push((parted.partition, value));
            }
        }
        values
    }

    #[test]
    fn batches_come_back_as_they_went_in() {
        let parts = staged(&[(1, "a"), (0, "b"), (1, "c")]);
        assert_eq!(Draft::new("totals", &parts).records(), 3);
        let segment = Segment::open(file(parts), SETTINGS).unwrap();
        assert_eq!(segment.topic, "totals");
        let expected = [(0, "b"), (1, "a"), (1, "c")].map(|(partition, value)| (partition, value.to_owned()));
        assert_eq!(values(&segment), expected);
    }

    #[test]
    fn a_segment_of_format_1_becomes_batches() {
        let bytes = Bytes::from_static(b"MLKS\x01\x01t\x02\xd8\x04\x02k\x02v\x01\x01h\x02x\x02\xd8\x04\x00\x02w\x00");
        let segment = Segment::open(bytes, SETTINGS).unwrap();
        assert_eq!((segment.topic.as_str(), segment.parts.len()), ("t", 1));
        assert_eq!(values(&segment), [(2, "v".to_owned()), (2, "w".to_owned())]);
    }

    #[test]
    fn a_batch_that_became_too_large_is_split_in_order() {
        let large = Settings { max_bytes: 10_000, ..SETTINGS };
        let mut gather = Gather::new(large);
        let text = |n: i32| format!("{n:03}-{}", "x".repeat(30));
        for n in 0..20 {
            let record = OutRecord::value(text(n)).with_key("k").with_header("h", "1").with_header("h", "2");
            gather.push(4, 300, &encoded(record)).unwrap();
        }
        gather.close().unwrap();
        let [whole] = gather.take_done().try_into().unwrap();
        let parts = split(&whole, SETTINGS).unwrap();
        assert!(parts.len() > 4 && parts.iter().all(|parted| parted.batch.bytes() <= 200));
        let segment = Segment { topic: "t".into(), parts };
        assert_eq!(values(&segment), (0..20).map(|n| (4, text(n))).collect::<Vec<_>>());
    }

    #[test]
    fn damage_is_an_error_wherever_it_falls() {
        let whole = file(staged(&[(1, "value")]));
        let start = MAGIC.len() + 1 + 1 + "totals".len();
        for cut in (0..whole.len()).filter(|cut| *cut != start) {
            assert!(Segment::open(whole.slice(..cut), SETTINGS).is_err(), "cut at {cut}");
        }
        let error = Segment::open(Bytes::from_static(b"MLKS\x03\x01t"), SETTINGS).unwrap_err();
        assert!(error.message().contains("version 3"), "{error}");
    }
}
