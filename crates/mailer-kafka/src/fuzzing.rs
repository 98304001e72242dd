//! Doors for the fuzzer and the benchmarks, which stand outside of this crate. Not a part of its API.
//!
//! The fuzz functions take anything and must return: what they find wrong with our own code is a panic.

use crate::batch::{AbortedFilter, BatchBuilder, Batches, Codec, Malformed, RawBatch, Settings};
use crate::record::Headers;
use crate::transactional::Staged;
use bytes::Bytes;

/// Reads the bytes as the record field of a response: as they are, and with checksums that fit, which lets a fuzzer reach
/// what lies behind them.
pub fn record_batches(data: &[u8]) {
    read_all(Bytes::copy_from_slice(data));
    read_all(mended(data));
}

/// Reads the bytes as a staged segment.
pub fn segment(data: &[u8]) {
    let settings = Settings { codec: Codec::None, max_bytes: 1 << 20 };
    let _damage_is_an_error = Staged::open(Bytes::copy_from_slice(data), settings);
}

/// Encodes records (key and value) into one batch without compression.
pub fn encode<'a>(records: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Option<Bytes> {
    let mut builder = BatchBuilder::new(Settings { codec: Codec::None, max_bytes: usize::MAX });
    for (key, value) in records {
        builder.append(1_700_000_000_000, Some(key), Some(value), &[]).ok()?;
    }
    Some(builder.seal().ok()??.to_bytes())
}

/// Decodes batches and counts the bytes of their values.
pub fn decode(bytes: Bytes) -> Option<usize> {
    let mut filter = AbortedFilter::default();
    let mut total = 0;
    for batch in Batches::new(bytes) {
        let batch = batch.ok()?;
        if !filter.admits(batch.header(), batch.control_kind().ok()?) {
            continue;
        }
        let mut records = batch.records().ok()?;
        while let Some(record) = records.next_record() {
            total += record.ok()?.value.map_or(0, <[u8]>::len);
        }
    }
    Some(total)
}

fn read_all(data: Bytes) {
    let mut filter = AbortedFilter::new([(1, 0), (2, 5)]);
    for batch in Batches::new(data).map_while(Result::ok) {
        let control = batch.control_kind();
        if let Ok(control) = control {
            filter.admits(batch.header(), control);
        }
        if let Ok(records) = kept(batch) {
            come_back(&records);
        }
    }
}

#[derive(PartialEq, Debug)]
struct Kept {
    timestamp: i64,
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Headers,
}

fn kept(batch: RawBatch) -> Result<Vec<Kept>, Malformed> {
    let (mut least, next) = (batch.header().base_offset, batch.header().next_offset());
    let mut records = batch.records()?;
    let mut kept = Vec::new();
    while let Some(record) = records.next_record() {
        let record = record?;
        assert!((least..next).contains(&record.offset), "{} is not in {least}..{next}", record.offset);
        least = record.offset + 1;
        let headers = record.shared_headers()?;
        let (key, value) = (record.shared_key(), record.shared_value());
        kept.push(Kept { timestamp: record.timestamp, key, value, headers });
    }
    Ok(kept)
}

/// What was read can be written, and reads the same.
fn come_back(records: &[Kept]) {
    let mut builder = BatchBuilder::new(Settings { codec: Codec::None, max_bytes: usize::MAX });
    for Kept { timestamp, key, value, headers } in records {
        let appended = builder.append(*timestamp, key.as_deref(), value.as_deref(), headers);
        assert!(appended.is_ok(), "a builder without limit is full");
    }
    let Ok(Some(sealed)) = builder.seal() else { return };
    let again = Batches::new(sealed.to_bytes()).next().map(|batch| batch.and_then(kept));
    assert_eq!(again.and_then(Result::ok).as_deref(), Some(records));
}

/// The bytes with the checksum of every batch that is complete put right.
fn mended(data: &[u8]) -> Bytes {
    let mut data = data.to_vec();
    let mut at = 0;
    while let Some(length) = data.get(at + 8..at + 12).and_then(<[u8]>::first_chunk) {
        let end = at + 12 + u32::from_be_bytes(*length) as usize;
        let Some(covered) = data.get(at + 21..end) else { break };
        let crc = crc32c::crc32c(covered);
        data[at + 17..at + 21].copy_from_slice(&crc.to_be_bytes());
        at = end;
    }
    data.into()
}
