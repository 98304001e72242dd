//! Our record-batch codec beside that of `kafka-protocol`: batches of 134-byte records, without compression.
//!
//! `cargo bench -p mailer-kafka --bench codec`; as a test (`cargo test --benches`) each runs once.

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use mailer_kafka::fuzzing;
use std::hint::black_box;

const RECORDS: u64 = 500;
const KEY: &[u8] = b"user-000017";
/// Key, value and the 11 bytes around them are 134.
const VALUE: [u8; 112] = [b'v'; 112];

fn ours() -> Bytes {
    fuzzing::encode((0..RECORDS).map(|_| (KEY, &VALUE[..]))).expect("it has records")
}

fn records() -> Vec<Record> {
    let record = |index: u64| Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 0,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: TimestampType::Creation,
        offset: index as i64,
        sequence: index as i32,
        timestamp: 1_700_000_000_000,
        key: Some(Bytes::from_static(KEY)),
        value: Some(Bytes::from_static(&[b'v'; 112])),
        headers: Default::default(),
    };
    (0..RECORDS).map(record).collect()
}

fn theirs(records: &[Record]) -> Bytes {
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    let mut bytes = BytesMut::new();
    RecordBatchEncoder::encode(&mut bytes, records, &options).expect("they are records");
    bytes.freeze()
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(RECORDS));
    let batch = ours();
    group.bench_function("ours", |bencher| bencher.iter(|| fuzzing::decode(black_box(batch.clone()))));
    group.bench_function("kafka-protocol", |bencher| {
        bencher.iter(|| RecordBatchDecoder::decode(&mut black_box(batch.clone())).map(|set| set.records.len()))
    });
    group.finish();
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    group.throughput(Throughput::Elements(RECORDS));
    group.bench_function("ours", |bencher| bencher.iter(ours));
    let records = records();
    group.bench_function("kafka-protocol", |bencher| bencher.iter(|| theirs(black_box(&records))));
    group.finish();
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
