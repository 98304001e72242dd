//! Batches written by hand, byte by byte, and what must be read from them.

use super::header::{COVERED, Header};
use super::raw::ControlKind;
use super::*;
use crate::record::Headers;
use bytes::Bytes;

const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;
const APPEND_TIME: i16 = 0x08;

/// A header of `count` records beginning at `offset`.
pub(super) fn header(offset: i64, count: i32) -> Header {
    Header {
        base_offset: offset,
        length: 0,
        leader_epoch: 0,
        crc: 0,
        attributes: 0,
        last_offset_delta: count - 1,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: count,
    }
}

/// A batch around the given record bytes, put together without the code under test.
pub(super) fn batch(header: Header, records: &[u8]) -> Vec<u8> {
    let mut covered = Vec::new();
    covered.extend(header.attributes.to_be_bytes());
    covered.extend(header.last_offset_delta.to_be_bytes());
    covered.extend(header.base_timestamp.to_be_bytes());
    covered.extend(header.max_timestamp.to_be_bytes());
    covered.extend(header.producer_id.to_be_bytes());
    covered.extend(header.producer_epoch.to_be_bytes());
    covered.extend(header.base_sequence.to_be_bytes());
    covered.extend(header.record_count.to_be_bytes());
    covered.extend(records);
    let mut bytes = header.base_offset.to_be_bytes().to_vec();
    bytes.extend((covered.len() as i32 + 9).to_be_bytes());
    bytes.extend(header.leader_epoch.to_be_bytes());
    bytes.push(2);
    bytes.extend(reference_crc32c(&covered).to_be_bytes());
    bytes.extend(covered);
    bytes
}

/// CRC-32C, one bit at a time, from its polynomial (RFC 3720, appendix B.4).
fn reference_crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// A record as tests compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plain {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    pub(super) key: Option<Bytes>,
    pub(super) value: Option<Bytes>,
    pub(super) headers: Headers,
}

pub(super) fn plain(record: &RecordView<'_>) -> Result<Plain, Malformed> {
    let (key, value, headers) = (record.shared_key(), record.shared_value(), record.shared_headers()?);
    Ok(Plain { offset: record.offset, timestamp: record.timestamp, key, value, headers })
}

/// All records of all batches, or the first error.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Plain>, Malformed> {
    let mut all = Vec::new();
    for batch in Batches::new(Bytes::copy_from_slice(bytes)) {
        let mut records = batch?.records()?;
        while let Some(record) = records.next_record() {
            all.push(plain(&record?)?);
        }
    }
    Ok(all)
}

fn first(bytes: Vec<u8>) -> RawBatch {
    Batches::new(bytes.into()).next().unwrap().unwrap()
}

fn shared(text: &str) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(text.as_bytes()))
}

/// Key "k", value "v", headers h=x, h=(null): length 15.
const FULL: &[u8] = b"\x1e\0\0\0\x02k\x02v\x04\x02h\x02x\x02h\x01";
/// Offset 2, 5 ms later, null key, empty value.
const SECOND: &[u8] = b"\x0c\0\x0a\x04\x01\0\0";

#[test]
fn a_batch_by_hand_is_read_field_by_field() {
    let header = Header { base_timestamp: 1_000, max_timestamp: 1_005, last_offset_delta: 4, ..header(40, 2) };
    let bytes = batch(header, &[FULL, SECOND].concat());
    let headers = vec![("h".to_owned(), shared("x")), ("h".to_owned(), None)];
    let expected = [
        Plain { offset: 40, timestamp: 1_000, key: shared("k"), value: shared("v"), headers },
        Plain { offset: 42, timestamp: 1_005, key: None, value: shared(""), headers: vec![] },
    ];
    assert_eq!(read(&bytes).unwrap(), expected);
    assert_eq!(first(bytes).header().next_offset(), 45, "compaction has removed 41, 43 and 44");
}

#[test]
fn what_a_reader_keeps_is_a_slice_of_the_response() {
    let response = Bytes::from(batch(header(0, 1), FULL));
    let mut records = Batches::new(response.clone()).next().unwrap().unwrap().records().unwrap();
    let value = records.next_record().unwrap().unwrap().shared_value().unwrap();
    let at = value.as_ptr() as usize - response.as_ptr() as usize;
    assert_eq!(&response[at..at + 1], b"v");
}

#[test]
fn the_brokers_time_replaces_that_of_the_records() {
    let header = Header { attributes: APPEND_TIME, max_timestamp: 9_000, last_offset_delta: 2, ..header(0, 2) };
    let records = read(&batch(header, &[FULL, SECOND].concat())).unwrap();
    assert_eq!(records.iter().map(|record| record.timestamp).collect::<Vec<_>>(), [9_000, 9_000]);
}

#[test]
fn control_batches_say_how_a_transaction_ended() {
    let marker = |kind: u8| [b"\x20\0\0\0\x08\0\0\0".as_slice(), &[kind], b"\x0c\0\0\0\0\0\0\0"].concat();
    let control = Header { attributes: TRANSACTIONAL | CONTROL, producer_id: 7, ..header(3, 1) };
    for (kind, expected) in [(0, ControlKind::Abort), (1, ControlKind::Commit), (2, ControlKind::Other)] {
        let batch = first(batch(control, &marker(kind)));
        assert_eq!(batch.control_kind().unwrap(), Some(expected));
        assert!(batch.header().is_control() && batch.header().is_transactional());
    }
    let emptied = Header { record_count: 0, ..control };
    assert_eq!(first(batch(emptied, b"")).control_kind().unwrap(), Some(ControlKind::Other));
    assert_eq!(first(batch(header(0, 1), FULL)).control_kind().unwrap(), None);
}

#[test]
fn a_batch_that_compaction_has_emptied_still_moves_the_position() {
    let bytes = batch(Header { record_count: 0, ..header(10, 5) }, b"");
    assert_eq!(read(&bytes).unwrap(), []);
    assert_eq!(first(bytes).header().next_offset(), 15);
}

#[test]
fn an_incomplete_batch_at_the_end_is_left_out_and_one_alone_says_what_it_needs() {
    let one = batch(header(0, 1), FULL);
    let two = [one.clone(), batch(header(1, 1), FULL)].concat();
    for cut in one.len()..two.len() {
        let mut batches = Batches::new(Bytes::copy_from_slice(&two[..cut]));
        assert_eq!(batches.by_ref().map(Result::unwrap).count(), 1, "cut at {cut}");
        assert_eq!(batches.needs(), None, "cut at {cut}");
    }
    for cut in 1..one.len() {
        let mut batches = Batches::new(Bytes::copy_from_slice(&one[..cut]));
        assert!(batches.next().is_none(), "cut at {cut}");
        let known = cut >= 12;
        assert_eq!(batches.needs(), Some(if known { one.len() } else { 61 }), "cut at {cut}");
    }
    assert_eq!(Batches::new(Bytes::new()).needs(), None);
}

#[test]
fn every_contradiction_is_named() {
    let header = header(0, 1);
    let good = batch(header, FULL);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let records =
        |count: i32, records: &[u8]| batch(Header { record_count: count, last_offset_delta: 9, ..header }, records);
    for (bytes, expected) in [
        (with(16, 0), "message format v0"),
        (with(16, 1), "message format v1"),
        (with(16, 3), "message format 3"),
        (with(8, 0x80), "length is negative"),
        (with(11, 48), "shorter than a header"),
        (with(60, 2), "more records than offsets"),
        (with(good.len() - 1, 0), "checksum"),
        (batch(Header { attributes: 6, ..header }, FULL), "codec 6"),
        (batch(Header { attributes: 4, ..header }, FULL), "zstd bytes do not unpack"),
        (records(2, FULL), "record 1 in it does not hold together: it reaches beyond its batch"),
        (records(2, &[FULL, FULL].concat()), "record 1 in it does not hold together: its offset"),
        (records(1, &[FULL, SECOND].concat()), "record 1 in it does not hold together: it is not counted"),
        (records(1, b"\x0c\0\0\x14\x01\x01\0"), "its offset"),
        (records(1, b"\x01"), "beyond its batch"),
        (records(1, b"\x0c\0\0\0\x03\x01\0"), "a field reaches"),
        (records(1, b"\x0c\0\0\0\x01\x04\0"), "a field reaches"),
        (records(1, b"\x0e\0\0\0\x01\x01\0\0"), "bytes follow its last field"),
        (records(1, b"\x0c\0\0\0\x01\x01\x02"), "more headers than"),
        (records(1, b"\x10\0\0\0\x01\x01\x02\x01\0"), "a header reaches"),
        (records(1, b"\x12\0\0\0\x01\x01\x02\0\0\0"), "bytes follow its last header"),
    ] {
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} lacks {expected:?}");
    }
}

#[test]
fn reading_stops_at_the_first_error() {
    let bytes = [batch(header(0, 1), b"\x01"), batch(header(1, 1), FULL)].concat();
    let mut batches = Batches::new(bytes.into());
    let mut records = batches.next().unwrap().unwrap().records().unwrap();
    assert!(records.next_record().unwrap().is_err());
    assert!(records.next_record().is_none());
    let mut bytes = batch(header(0, 1), FULL);
    bytes[16] = 1;
    let mut batches = Batches::new([bytes, batch(header(1, 1), FULL)].concat().into());
    assert!(batches.next().unwrap().is_err());
    assert!(batches.next().is_none());
}

#[test]
fn a_built_batch_has_the_bytes_of_one_by_hand() {
    let mut builder = BatchBuilder::new(Settings { codec: Codec::None, max_bytes: 1 << 20 });
    let headers = [("h".to_owned(), shared("x")), ("h".to_owned(), None)];
    builder.append(1_000, Some(b"k"), Some(b"v"), &headers).unwrap();
    builder.append(1_005, None, Some(b""), &[]).unwrap();
    let mut sealed = builder.seal().unwrap().unwrap();
    let expected = Header { leader_epoch: -1, base_timestamp: 1_000, max_timestamp: 1_005, ..header(0, 2) };
    let second = b"\x0c\0\x0a\x02\x01\0\0";
    assert_eq!(sealed.to_bytes(), batch(expected, &[FULL, second].concat()));
    let read = Batches::new(sealed.to_bytes()).next().unwrap().unwrap();
    let header = *read.header();
    assert_eq!((sealed.records(), header.base_timestamp, header.max_timestamp), (2, 1_000, 1_005));

    sealed.stamp(Stamp { producer_id: 1 << 40, epoch: 3, sequence: 77, transactional: true });
    let stamped =
        Header { attributes: TRANSACTIONAL, producer_id: 1 << 40, producer_epoch: 3, base_sequence: 77, ..expected };
    assert_eq!(sealed.to_bytes(), batch(stamped, &[FULL, second].concat()));
    assert_eq!(sealed.bytes(), sealed.to_bytes().len());

    let mut again = SealedBatch::stored(first(sealed.to_bytes().to_vec()));
    again.stamp(Stamp { producer_id: 9, epoch: 0, sequence: 0, transactional: false });
    let restamped = Header { producer_id: 9, producer_epoch: 0, base_sequence: 0, ..expected };
    assert_eq!(again.to_bytes(), batch(restamped, &[FULL, second].concat()), "a stored batch takes a new stamp");
}

/// A stamp must not make damaged records look sound.
#[test]
fn a_stamp_does_not_hide_damage() {
    let mut bytes = batch(header(0, 1), FULL);
    *bytes.last_mut().unwrap() ^= 1;
    let mut stored = SealedBatch::stored(first(bytes));
    stored.stamp(Stamp { producer_id: 9, epoch: 0, sequence: 5, transactional: true });
    assert!(matches!(read(&stored.to_bytes()).unwrap_err(), Malformed::Checksum { .. }));
}

#[test]
fn the_checksum_covers_what_follows_it() {
    let bytes = batch(header(0, 1), FULL);
    assert_eq!(crc32c::crc32c(&bytes[COVERED..]), reference_crc32c(&bytes[COVERED..]));
    assert_eq!(reference_crc32c(b"123456789"), 0xe306_9283, "the check value of CRC-32C");
}

/// What was measured against a topic's limit before it was compressed must not cross it afterwards.
#[test]
fn what_does_not_compress_does_not_become_too_large() {
    let mut state = 1u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(20_000)
    .collect();
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let mut builder = BatchBuilder::new(Settings { codec, max_bytes: 16_384 });
        builder.append(0, None, Some(&noise), &[]).unwrap();
        let measured = builder.bytes();
        let sealed = builder.seal().unwrap().unwrap();
        assert!(sealed.bytes() <= measured, "{codec}: {} of {measured}", sealed.bytes());
        let mut records = Batches::new(sealed.to_bytes()).next().unwrap().unwrap().records().unwrap();
        assert_eq!(records.next_record().unwrap().unwrap().value.unwrap(), &noise[..], "{codec}");
    }
}
