//! Our codec beside two others, in both directions: `kafka-protocol` and krafka.
//!
//! What can be compared: `kafka-protocol` keeps headers in a map, so of duplicates it keeps one; names that are not UTF-8
//! are not produced here. Everything else must be equal.

use super::tests::{Plain, plain, read};
use super::*;
use crate::record::Headers;
use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as theirs;
use krafka::__private::protocol as krafka_wire;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

const CODECS: [(Codec, theirs::Compression); 5] = [
    (Codec::None, theirs::Compression::None),
    (Codec::Gzip, theirs::Compression::Gzip),
    (Codec::Snappy, theirs::Compression::Snappy),
    (Codec::Lz4, theirs::Compression::Lz4),
    (Codec::Zstd, theirs::Compression::Zstd),
];

/// Records of one batch; offsets are filled in by the writer.
fn records() -> impl Strategy<Value = Vec<Plain>> {
    let bytes = || vec(any::<u8>(), 0..200).prop_map(Bytes::from);
    let headers = vec(("[a-c]{0,2}", of(bytes())), 0..4);
    let record = (any::<i32>(), of(bytes()), of(bytes()), headers);
    vec(record, 1..40).prop_map(|records| {
        let plain = |(index, (timestamp, key, value, headers)): (usize, (i32, _, _, Headers))| Plain {
            offset: index as i64,
            timestamp: 1_700_000_000_000 + i64::from(timestamp),
            key,
            value,
            headers,
        };
        records.into_iter().enumerate().map(plain).collect()
    })
}

fn write(records: &[Plain], codec: Codec) -> SealedBatch {
    let mut builder = BatchBuilder::new(Settings { codec, max_bytes: usize::MAX });
    for Plain { timestamp, key, value, headers, .. } in records {
        builder.append(*timestamp, key.as_deref(), value.as_deref(), headers).unwrap();
    }
    builder.seal().unwrap().unwrap()
}

/// One value a name, as in a map.
fn without_duplicates(mut records: Vec<Plain>) -> Vec<Plain> {
    for record in &mut records {
        let map: IndexMap<_, _> = record.headers.drain(..).collect();
        record.headers = map.into_iter().collect();
    }
    records
}

fn from_theirs(record: &theirs::Record) -> Plain {
    Plain {
        offset: record.offset,
        timestamp: record.timestamp,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
    }
}

fn to_theirs(record: &Plain) -> theirs::Record {
    let name = |name: &String| StrBytes::from_string(name.clone());
    theirs::Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 0,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: theirs::TimestampType::Creation,
        offset: record.offset,
        sequence: record.offset as i32,
        timestamp: record.timestamp,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record.headers.iter().map(|(text, value)| (name(text), value.clone())).collect(),
    }
}

fn from_krafka(batch: &krafka_wire::RecordBatch) -> Vec<Plain> {
    let plain = |record: &krafka_wire::Record| Plain {
        offset: batch.base_offset + i64::from(record.offset_delta),
        timestamp: batch.base_timestamp + record.timestamp_delta,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record.headers.iter().map(|h| (h.key_str().unwrap().to_owned(), h.value.clone())).collect(),
    };
    batch.records.iter().map(plain).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_reads_the_same(records in records(), producer in any::<i64>(), sequence in any::<i32>()) {
        for (codec, _) in CODECS {
            let mut sealed = write(&records, codec);
            prop_assert_eq!(&read(&sealed.to_bytes()).unwrap(), &records);
            let stamp = Stamp { producer_id: producer, epoch: 4, sequence, transactional: true };
            sealed.stamp(stamp);
            let batch = Batches::new(sealed.to_bytes()).next().unwrap().unwrap();
            let header = *batch.header();
            prop_assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (producer, 4, sequence));
            prop_assert_eq!(header.max_timestamp, records.iter().map(|record| record.timestamp).max().unwrap());
            prop_assert_eq!(&read(&sealed.to_bytes()).unwrap(), &records);
        }
    }

    #[test]
    fn others_read_what_we_write(records in records()) {
        for (codec, _) in CODECS {
            let bytes = write(&records, codec).to_bytes();
            let set = theirs::RecordBatchDecoder::decode(&mut bytes.clone()).unwrap();
            let read: Vec<_> = set.records.iter().map(from_theirs).collect();
            prop_assert_eq!(read, without_duplicates(records.clone()));
            let batch = krafka_wire::RecordBatch::decode(&mut bytes.clone()).unwrap();
            prop_assert_eq!(from_krafka(&batch), records.clone());
        }
    }

    #[test]
    fn we_read_what_others_write(records in records()) {
        let records = without_duplicates(records);
        for (_, compression) in CODECS {
            let mut bytes = BytesMut::new();
            let options = theirs::RecordEncodeOptions { version: 2, compression };
            let records_of_theirs: Vec<_> = records.iter().map(to_theirs).collect();
            theirs::RecordBatchEncoder::encode(&mut bytes, &records_of_theirs, &options).unwrap();
            prop_assert_eq!(&read(&bytes).unwrap(), &records);
        }
    }

    /// Whatever the bytes behind a sound checksum: where all three read a batch, they read the same.
    #[test]
    fn damaged_records_are_never_read_differently(records in records(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = write(&without_duplicates(records), Codec::None).to_bytes().to_vec();
        let at = 61 + at.index(bytes.len() - 61);
        bytes[at] = byte;
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        let (Ok(ours), Ok(theirs)) = (read(&bytes), krafka_wire::RecordBatch::decode(&mut bytes.clone().into())) else {
            return Ok(());
        };
        prop_assert_eq!(ours.len(), theirs.records.len());
    }
}

#[test]
fn views_hand_out_headers_in_order() {
    let headers: Headers = [("b", "1"), ("a", "2"), ("b", "3")].map(|(n, v)| (n.to_owned(), Some(v.into()))).into();
    let record = Plain { offset: 0, timestamp: 0, key: None, value: None, headers: headers.clone() };
    let batch = Batches::new(write(&[record], Codec::Lz4).to_bytes()).next().unwrap().unwrap();
    let mut records = batch.records().unwrap();
    assert_eq!(plain(&records.next_record().unwrap().unwrap()).unwrap().headers, headers);
}
