//! A batch being written: records are appended to one buffer, in the form they are sent in.

use super::codec::{self, Codec};
use super::header::{self, Header};
use super::sealed::SealedBatch;
use super::varint;
use bytes::Bytes;
use mailer_core::Result;

/// How batches are built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) codec: Codec,
    /// A batch ends before it would get larger, counted before compression. A single record may be larger.
    pub(crate) max_bytes: usize,
}

/// The batch has no room for the record: seal it, and append the record to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A header of a record to be written: name and value, which may be null.
pub(crate) type HeaderPart = (String, Option<Bytes>);

/// Collects the records of one batch.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    settings: Settings,
    records: Vec<u8>,
    count: i32,
    first_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    pub(crate) fn new(settings: Settings) -> Self {
        Self::within(Vec::new(), settings)
    }

    /// Writes into this memory, which is empty.
    pub(crate) fn within(records: Vec<u8>, settings: Settings) -> Self {
        Self { settings, records, count: 0, first_timestamp: 0, max_timestamp: i64::MIN }
    }

    /// Appends a record; `timestamp` is in ms since the Unix epoch. An empty batch takes any record.
    #[inline]
    pub(crate) fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[HeaderPart],
    ) -> std::result::Result<(), Full> {
        let first = if self.count == 0 { timestamp } else { self.first_timestamp };
        // As in every client, a difference that does not fit wraps, and wraps back when it is read.
        let (timestamp_delta, offset_delta) = (timestamp.wrapping_sub(first), i64::from(self.count));
        let parts = nullable_size(key) + nullable_size(value) + headers_size(headers);
        let length = 1 + varint::size(timestamp_delta) + varint::size(offset_delta) + parts;
        if !self.has_room_for(length + varint::size(length as i64)) {
            return Err(Full);
        }
        let out = &mut self.records;
        out.reserve(length + MAX_LENGTH);
        varint::put(out, length as i64);
        out.push(0);
        varint::put(out, timestamp_delta);
        varint::put(out, offset_delta);
        put_nullable(out, key);
        put_nullable(out, value);
        put_headers(out, headers);
        self.count += 1;
        (self.first_timestamp, self.max_timestamp) = (first, self.max_timestamp.max(timestamp));
        Ok(())
    }

    fn has_room_for(&self, record: usize) -> bool {
        self.count == 0 || (self.bytes() + record <= self.settings.max_bytes && self.count < i32::MAX)
    }

    /// Bytes so far, header included, before compression.
    pub(crate) fn bytes(&self) -> usize {
        header::SIZE + self.records.len()
    }

    /// Records so far.
    pub(crate) fn records(&self) -> u32 {
        self.count as u32
    }

    /// Ends the batch. `None`: there are no records.
    pub(crate) fn seal(self) -> Result<Option<SealedBatch>> {
        let done = self;
        if done.count == 0 {
            return Ok(None);
        }
        let (codec, payload) = packed(done.settings, done.records)?;
        let header = Header {
            base_offset: 0,
            length: 0,
            leader_epoch: -1,
            crc: 0,
            attributes: codec.number(),
            last_offset_delta: done.count - 1,
            base_timestamp: done.first_timestamp,
            max_timestamp: done.max_timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: done.count,
        };
        SealedBatch::new(header, Bytes::from(payload)).map(Some)
    }
}

/// Compressing random bytes makes them more: what was measured against a limit before must not cross it now.
fn packed(settings: Settings, records: Vec<u8>) -> Result<(Codec, Vec<u8>)> {
    if settings.codec == Codec::None {
        return Ok((Codec::None, records));
    }
    let packed = codec::pack(settings.codec, &records)?;
    let too_large = packed.len() > records.len() && header::SIZE + packed.len() > settings.max_bytes;
    Ok(if too_large { (Codec::None, records) } else { (settings.codec, packed) })
}

/// A number of 32 bits takes at most so many bytes.
const MAX_LENGTH: usize = 5;

fn nullable_size(part: Option<&[u8]>) -> usize {
    part.map_or(1, |part| varint::size(part.len() as i64) + part.len())
}

fn headers_size(headers: &[HeaderPart]) -> usize {
    let one = |(name, value): &HeaderPart| nullable_size(Some(name.as_bytes())) + nullable_size(value.as_deref());
    varint::size(headers.len() as i64) + headers.iter().map(one).sum::<usize>()
}

#[inline]
fn put_nullable(out: &mut Vec<u8>, part: Option<&[u8]>) {
    let Some(part) = part else { return varint::put(out, -1) };
    varint::put(out, part.len() as i64);
    out.extend_from_slice(part);
}

fn put_headers(out: &mut Vec<u8>, headers: &[HeaderPart]) {
    varint::put(out, headers.len() as i64);
    for (name, value) in headers {
        put_nullable(out, Some(name.as_bytes()));
        put_nullable(out, value.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder(max_bytes: usize) -> BatchBuilder {
        BatchBuilder::new(Settings { codec: Codec::None, max_bytes })
    }

    #[test]
    fn sizes_are_known_before_anything_is_written() {
        let headers = [("name".to_owned(), None), (String::new(), Some(Bytes::from(vec![0; 100])))];
        let mut out = Vec::new();
        put_headers(&mut out, &headers);
        assert_eq!(out.len(), headers_size(&headers));
        assert_eq!((nullable_size(None), nullable_size(Some(&[0; 64]))), (1, 66));
    }

    #[test]
    fn is_full_before_its_limit_and_takes_a_first_record_of_any_size() {
        let mut builder = builder(100);
        builder.append(0, None, Some(&[0; 200]), &[]).unwrap();
        assert_eq!(builder.append(0, None, Some(b"x"), &[]), Err(Full));
        assert_eq!(builder.seal().unwrap().unwrap().records(), 1);
        let mut builder = self::builder(100);
        while builder.append(0, None, Some(b"xy"), &[]).is_ok() {}
        assert!((91..=100).contains(&builder.bytes()), "{}", builder.bytes());
        assert_eq!(builder.records(), 4);
    }

    #[test]
    fn a_batch_without_records_is_none() {
        assert!(builder(100).seal().unwrap().is_none());
        let mut builder = builder(100);
        builder.append(5, None, None, &[]).unwrap();
        assert!(builder.seal().unwrap().is_some());
    }
}
