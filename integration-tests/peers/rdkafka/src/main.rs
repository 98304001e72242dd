//! The peer `rdkafka`: librdkafka through its Rust binding, with its own defaults where nothing is said.

use anyhow::{Context, Result, bail};
use mailer_measure::meter::{Lap, check_bytes};
use mailer_measure::task::{BATCH_BYTES, LINGER, PARTITIONS, PATIENCE};
use mailer_measure::{Measured, Meter, Payload, Task, Workload};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use std::hint::black_box;
use std::time::Duration;

const DAY: i64 = 1_700_000_000_000;

fn main() -> Result<()> {
    mailer_measure::main(run)
}

fn run(task: &Task) -> Result<Measured> {
    match task.workload {
        Workload::Consume => consume(task),
        Workload::Produce => produce(task),
        Workload::ExactlyOnce => exactly_once(task),
        Workload::KeyedCount | Workload::Publish => bail!("not a workload of this peer"),
    }
}

fn consume(task: &Task) -> Result<Measured> {
    let consumer = consumer(task)?;
    let (mut meter, mut bytes) = (Meter::new(task), 0);
    while !meter.is_done() {
        let record = next(&consumer)?;
        let (key, value) = (record.key().unwrap_or_default(), record.payload().unwrap_or_default());
        bytes += key.len() + value.len();
        black_box(value.first());
        meter.add(1);
    }
    check_bytes(meter.seen(), bytes as u64)?;
    meter.finish()
}

fn produce(task: &Task) -> Result<Measured> {
    let producer: BaseProducer = producer(task).create()?;
    let pool = Payload::pool();
    let mut meter = Meter::new(task);
    for count in [task.warm_up, task.records] {
        for n in meter.seen()..meter.seen() + count {
            let Payload { key, value } = &pool[n as usize % pool.len()];
            send(&producer, BaseRecord::to(&task.output).key(&key[..]).payload(&value[..]).timestamp(DAY + n as i64))?;
        }
        producer.flush(PATIENCE)?;
        meter.add(count);
    }
    meter.finish()
}

fn exactly_once(task: &Task) -> Result<Measured> {
    let consumer = consumer(task)?;
    let producer: BaseProducer = producer(task).set("transactional.id", &task.id).create()?;
    producer.init_transactions(PATIENCE)?;
    let mut meter = Meter::new(task);
    while !meter.is_done() {
        producer.begin_transaction()?;
        for _ in 0..task.transaction {
            let record = next(&consumer)?;
            let mut out = BaseRecord::to(&task.output);
            (out.key, out.payload) = (record.key(), record.payload());
            out.timestamp = record.timestamp().to_millis();
            send(&producer, out)?;
        }
        let group = consumer.group_metadata().context("no group")?;
        producer.send_offsets_to_transaction(&consumer.position()?, &group, PATIENCE)?;
        producer.commit_transaction(PATIENCE)?;
        meter.add(task.transaction);
    }
    meter.finish()
}

fn consumer(task: &Task) -> Result<BaseConsumer> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &task.bootstrap)
        .set("group.id", &task.id)
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed")
        .set("check.crcs", "true")
        .create()?;
    let mut all = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        all.add_partition_offset(&task.input, partition, Offset::Beginning)?;
    }
    consumer.assign(&all)?;
    Ok(consumer)
}

fn next(consumer: &BaseConsumer) -> Result<BorrowedMessage<'_>> {
    Ok(consumer.poll(PATIENCE).context("no record came")??)
}

fn producer(task: &Task) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &task.bootstrap)
        .set("enable.idempotence", "true")
        .set("compression.type", task.codec.name())
        .set("partitioner", "murmur2_random")
        .set("batch.size", BATCH_BYTES.to_string())
        .set("linger.ms", LINGER.as_millis().to_string());
    config
}

/// Queues a record; where the queue is full it lets deliveries make room.
fn send(producer: &BaseProducer, record: BaseRecord<'_, [u8], [u8]>) -> Result<()> {
    let lap = Lap::begin();
    let mut record = record;
    while let Err((error, back)) = producer.send(record) {
        if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) || lap.elapsed() > PATIENCE {
            return Err(error.into());
        }
        producer.poll(Duration::from_millis(10));
        record = back;
    }
    producer.poll(Duration::ZERO);
    Ok(())
}
