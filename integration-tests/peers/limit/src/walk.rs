//! Reads: fetches partitions in turn and walks their batches in place. Nothing is copied that was not compressed.

use crate::codec;
use crate::wire::{Connection, text};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{FetchRequest, TopicName};
use mailer_measure::task::PARTITIONS;

const VERSION: i16 = 12;
const HEADER: usize = 61;
/// Compressed, it may hold several times as many records; a fetch is never cut, and a short run must not end in one.
const PARTITION_BYTES: i32 = 256 << 10;
/// Each may wait half a second.
const PATIENT_FETCHES: u32 = 60;

/// One record in the bytes of its batch.
pub struct Record<'a> {
    pub timestamp: i64,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

/// A topic being read from its beginning.
pub struct Reader {
    connection: Connection,
    topic: String,
    next: [i64; PARTITIONS as usize],
    empty: u32,
}

impl Reader {
    pub fn open(bootstrap: &str, topic: &str) -> Result<Self> {
        Ok(Self { connection: Connection::open(bootstrap)?, topic: topic.into(), next: Default::default(), empty: 0 })
    }

    /// One fetch of all partitions. Returns how many records it brought.
    pub fn fetch(&mut self, mut look: impl FnMut(Record) -> Result<()>) -> Result<u64> {
        let response = self.connection.call(VERSION, &self.request())?;
        ensure!(response.error_code == 0, "fetch: error {}", response.error_code);
        let mut count = 0;
        for part in response.responses.into_iter().flat_map(|topic| topic.partitions) {
            ensure!(part.error_code == 0, "fetch of partition {}: error {}", part.partition_index, part.error_code);
            let next = &mut self.next[part.partition_index as usize];
            count += walk(part.records.unwrap_or_default(), next, &mut look)?;
        }
        self.empty = if count == 0 { self.empty + 1 } else { 0 };
        ensure!(self.empty < PATIENT_FETCHES, "no record came for {PATIENT_FETCHES} fetches");
        Ok(count)
    }

    fn request(&self) -> FetchRequest {
        let partition = |(index, next): (usize, &i64)| {
            FetchPartition::default()
                .with_partition(index as i32)
                .with_fetch_offset(*next)
                .with_partition_max_bytes(PARTITION_BYTES)
        };
        let topic = FetchTopic::default()
            .with_topic(TopicName(text(&self.topic)))
            .with_partitions(self.next.iter().enumerate().map(partition).collect());
        FetchRequest::default()
            .with_max_wait_ms(500)
            .with_min_bytes(1)
            .with_max_bytes(PARTITION_BYTES * PARTITIONS)
            .with_isolation_level(1)
            .with_session_epoch(-1)
            .with_topics(vec![topic])
    }
}

/// Walks all whole batches; `next` becomes the offset behind them.
fn walk(mut bytes: Bytes, next: &mut i64, look: &mut impl FnMut(Record) -> Result<()>) -> Result<u64> {
    let mut count = 0;
    while bytes.len() >= HEADER {
        let length = 12 + usize::try_from(i32::from_be_bytes(field(&bytes, 8)))?;
        if bytes.len() < length {
            break; // the broker cut it: it comes whole at the next fetch
        }
        let batch = bytes.split_to(length);
        let last = i64::from_be_bytes(field(&batch, 0)) + i64::from(i32::from_be_bytes(field(&batch, 23)));
        let before = *next;
        *next = last + 1;
        count += batch_records(batch, before, look)?;
    }
    Ok(count)
}

fn batch_records(batch: Bytes, from: i64, look: &mut impl FnMut(Record) -> Result<()>) -> Result<u64> {
    ensure!(u32::from_be_bytes(field(&batch, 17)) == crc32c::crc32c(&batch[21..]), "a batch does not match its CRC");
    let attributes = i16::from_be_bytes(field(&batch, 21));
    if attributes & 0x20 != 0 {
        return Ok(0); // a marker of a transaction
    }
    let (base, start) = (i64::from_be_bytes(field(&batch, 0)), i64::from_be_bytes(field(&batch, 27)));
    let records = i32::from_be_bytes(field(&batch, 57));
    let bytes = codec::decompress(attributes, batch.slice(HEADER..))?;
    let (mut at, mut count) = (Cursor(&bytes), 0);
    for _ in 0..records {
        let size = usize::try_from(at.varint()?)?;
        let mut record = Cursor(at.take(size)?);
        record.take(1)?;
        let timestamp = start + record.varint()?;
        if base + record.varint()? < from {
            continue; // of a batch that was read in part before
        }
        let key = record.part()?;
        let value = record.part()?;
        look(Record { timestamp, key, value })?;
        count += 1;
    }
    Ok(count)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// What is left of some bytes.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).context("a record ends early")?;
        self.0 = rest;
        Ok(taken)
    }

    /// A key or a value; null as empty.
    fn part(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).unwrap_or(0))
    }

    fn varint(&mut self) -> Result<i64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
            shift += 7;
            ensure!(shift < 64, "a number has no end");
        }
    }
}
