//! The peer `krafka`: a client in pure Rust, on a runtime of one thread, which costs it least.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerBuilder, ConsumerRecord, IsolationLevel};
use krafka::producer::{ProducerBuilder, TopicPartitionOffset};
use krafka::{Compression, Kafka, Record};
use mailer_measure::meter::{Lap, check_bytes};
use mailer_measure::task::{BATCH_BYTES, LINGER, PARTITIONS, PATIENCE};
use mailer_measure::{Codec, Measured, Meter, Payload, Task, Workload};
use std::collections::BTreeMap;
use std::hint::black_box;

const DAY: i64 = 1_700_000_000_000;
/// Room for several batches of every partition; the default of 32 MB makes it wait.
const BUFFER: usize = 128 << 20;

fn main() -> Result<()> {
    mailer_measure::main(|task| tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(task)))
}

async fn run(task: &Task) -> Result<Measured> {
    let kafka = Kafka::builder(&task.bootstrap).connect().await?;
    match task.workload {
        Workload::Consume => consume(task, &kafka).await,
        Workload::Produce => produce(task, &kafka).await,
        Workload::ExactlyOnce => exactly_once(task, &kafka).await,
        Workload::KeyedCount | Workload::Publish => bail!("not a workload of this peer"),
    }
}

async fn consume(task: &Task, kafka: &Kafka) -> Result<Measured> {
    let consumer = settings(kafka.consumer_without_group()).build().await?;
    consumer.assign(task.input.as_str(), (0..PARTITIONS).collect()).await?;
    let (mut meter, mut bytes) = (Meter::new(task), 0);
    while !meter.is_done() {
        let records = next(&consumer).await?;
        for record in &records {
            bytes += record.key.as_ref().map_or(0, Bytes::len) + record.value.as_ref().map_or(0, Bytes::len);
            black_box(record.value.as_ref().and_then(|value| value.first()));
        }
        meter.add(records.len() as u64);
    }
    check_bytes(meter.seen(), bytes as u64)?;
    meter.finish()
}

async fn produce(task: &Task, kafka: &Kafka) -> Result<Measured> {
    let producer = producer(task, kafka).idempotent(true).build().await?;
    // Made before, as for the others: this client takes keys and values as shared bytes.
    let pool: Vec<_> =
        Payload::pool().iter().map(|p| (Bytes::copy_from_slice(&p.key), Bytes::copy_from_slice(&p.value))).collect();
    let mut meter = Meter::new(task);
    for count in [task.warm_up, task.records] {
        for n in meter.seen()..meter.seen() + count {
            let (key, value) = &pool[n as usize % pool.len()];
            let record = Record::new(task.output.as_str(), value.clone()).key(key.clone()).timestamp(DAY + n as i64);
            drop(producer.enqueue(record).await?);
        }
        producer.flush().await?;
        meter.add(count);
    }
    meter.finish()
}

async fn exactly_once(task: &Task, kafka: &Kafka) -> Result<Measured> {
    // It commits offsets in a transaction only as a member of a group.
    let consumer = settings(kafka.consumer(&task.id)).build().await?;
    consumer.subscribe([task.input.as_str()]).await?;
    let producer = producer(task, kafka).build_transactional(&task.id).await?;
    let mut meter = Meter::new(task);
    while !meter.is_done() {
        producer.begin()?;
        let (mut written, mut positions) = (0, BTreeMap::new());
        while written < task.transaction {
            for record in next(&consumer).await? {
                positions.insert(record.partition, record.offset + 1);
                let out = Record::new(task.output.as_str(), record.value.context("a value is null")?);
                let out = out.key(record.key.context("a key is null")?).timestamp(record.timestamp);
                drop(producer.enqueue(out).await?);
                written += 1;
            }
        }
        let offset = |(partition, next)| TopicPartitionOffset::new(&*task.input, partition, next);
        let group = consumer.group_metadata().await.context("no member of the group")?;
        producer.send_offsets(&positions.into_iter().map(offset).collect::<Vec<_>>(), &group).await?;
        producer.commit().await?;
        meter.add(written);
    }
    meter.finish()
}

fn settings(builder: ConsumerBuilder) -> ConsumerBuilder {
    builder
        .isolation_level(IsolationLevel::ReadCommitted)
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .enable_auto_commit(false)
        .max_poll_records(20_000)
        .max_buffered_records(20_000)
}

async fn next(consumer: &Consumer) -> Result<Vec<ConsumerRecord>> {
    let lap = Lap::begin();
    loop {
        let records = consumer.poll(PATIENCE).await?;
        if !records.is_empty() {
            return Ok(records);
        }
        if lap.elapsed() > PATIENCE {
            bail!("no record came");
        }
    }
}

fn producer(task: &Task, kafka: &Kafka) -> ProducerBuilder {
    let compression = match task.codec {
        Codec::None => Compression::None,
        Codec::Lz4 => Compression::Lz4,
        Codec::Zstd => Compression::Zstd,
    };
    kafka.producer().compression(compression).batch_size(BATCH_BYTES).linger(LINGER).buffer_memory(BUFFER)
}
