//! The peer `confluent-kafka`: Confluent's translation of the Java client to Rust (Kafka 4 and later), on a runtime of
//! two threads, with the calls that copy least.

use anyhow::{Result, bail};
use bytes::Bytes;
use confluent_kafka::common::TopicPartition;
use confluent_kafka::common::serialization::{ByteArraySerializer, BytesDeserializer};
use confluent_kafka::consumer::{Consumer, ConsumerConfig, ConsumerRecords, KafkaConsumer, OffsetAndMetadata};
use confluent_kafka::producer::{KafkaProducer, Producer, ProducerConfig, ProducerRecord};
use mailer_measure::meter::check_bytes;
use mailer_measure::task::{BATCH_BYTES, LINGER, PARTITIONS, PATIENCE};
use mailer_measure::{Measured, Meter, Payload, Task, Workload};
use std::collections::HashMap;
use std::hint::black_box;

type Reader = KafkaConsumer<Bytes, Bytes>;
type Writer = KafkaProducer<Vec<u8>, Vec<u8>>;

const DAY: i64 = 1_700_000_000_000;

fn main() -> Result<()> {
    mailer_measure::main(|task| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(run(task))
    })
}

async fn run(task: &Task) -> Result<Measured> {
    match task.workload {
        Workload::Consume => consume(task).await,
        Workload::Produce => produce(task).await,
        Workload::ExactlyOnce => exactly_once(task).await,
        Workload::KeyedCount | Workload::Publish => bail!("not a workload of this peer"),
    }
}

async fn consume(task: &Task) -> Result<Measured> {
    let mut consumer = consumer(task).await?;
    let (mut meter, mut bytes) = (Meter::new(task), 0);
    while !meter.is_done() {
        let records = next(&mut consumer).await?;
        for record in &records {
            bytes += record.key().map_or(0, Bytes::len) + record.value().map_or(0, Bytes::len);
            black_box(record.value().and_then(|value| value.first()));
        }
        meter.add(records.count() as u64);
    }
    consumer.close().await?;
    check_bytes(meter.seen(), bytes as u64)?;
    meter.finish()
}

async fn produce(task: &Task) -> Result<Measured> {
    let producer = producer(task, &[])?;
    let pool = Payload::pool();
    let mut meter = Meter::new(task);
    for count in [task.warm_up, task.records] {
        for n in meter.seen()..meter.seen() + count {
            let Payload { key, value } = &pool[n as usize % pool.len()];
            send(&producer, &task.output, DAY + n as i64, key, value).await?;
        }
        producer.flush().await?;
        meter.add(count);
    }
    producer.close().await?;
    meter.finish()
}

async fn exactly_once(task: &Task) -> Result<Measured> {
    let mut consumer = consumer(task).await?;
    let producer = producer(task, &[("transactional.id", task.id.clone())])?;
    producer.init_transactions().await?;
    let mut meter = Meter::new(task);
    while !meter.is_done() {
        producer.begin_transaction()?;
        let (mut written, mut positions) = (0, HashMap::new());
        while written < task.transaction {
            let records = next(&mut consumer).await?;
            for record in &records {
                let (key, value) = (record.key(), record.value());
                let (Some(key), Some(value)) = (key, value) else { bail!("a key or value is null") };
                send(&producer, &task.output, record.timestamp(), key, value).await?;
                positions.insert(record.partition(), record.offset() + 1);
            }
            written += records.count() as u64;
        }
        let offset = |(partition, next): (i32, i64)| {
            Ok((TopicPartition::new(task.input.as_str(), partition), OffsetAndMetadata::new(next)?))
        };
        let offsets = positions.into_iter().map(offset).collect::<Result<HashMap<_, _>>>()?;
        producer.send_offsets_to_transaction(offsets, &*consumer.group_metadata()).await?;
        producer.commit_transaction().await?;
        meter.add(written);
    }
    producer.close().await?;
    consumer.close().await?;
    meter.finish()
}

async fn consumer(task: &Task) -> Result<Reader> {
    let properties = properties(
        task,
        &[
            ("group.id", task.id.clone()),
            ("group.protocol", "consumer".into()),
            ("enable.auto.commit", "false".into()),
            ("isolation.level", "read_committed".into()),
            ("auto.offset.reset", "earliest".into()),
            ("max.poll.records", "5000".into()),
        ],
    );
    let mut consumer =
        Reader::new(ConsumerConfig::new(&properties)?, BytesDeserializer::new(), BytesDeserializer::new())?;
    let partitions: Vec<_> = (0..PARTITIONS).map(|p| TopicPartition::new(task.input.as_str(), p)).collect();
    consumer.assign(partitions.clone()).await?;
    consumer.seek_to_beginning(&partitions).await?;
    Ok(consumer)
}

async fn next(consumer: &mut Reader) -> Result<ConsumerRecords<Bytes, Bytes>> {
    let records = consumer.poll(PATIENCE).await?;
    if records.is_empty() {
        bail!("no record came");
    }
    Ok(records)
}

fn producer(task: &Task, more: &[(&str, String)]) -> Result<Writer> {
    let mut all = properties(task, more);
    all.extend([
        ("compression.type".into(), task.codec.name().into()),
        ("batch.size".into(), BATCH_BYTES.to_string()),
        ("linger.ms".into(), LINGER.as_millis().to_string()),
    ]);
    Ok(Writer::new(ProducerConfig::new(&all)?, ByteArraySerializer::new(), ByteArraySerializer::new())?)
}

async fn send(producer: &Writer, topic: &str, timestamp: i64, key: &[u8], value: &[u8]) -> Result<()> {
    let (key, value) = (Some(key), Some(value));
    let record = ProducerRecord::with_partition_timestamp_key(topic.to_owned(), None, Some(timestamp), key, value)?;
    drop(producer.send(record, None).await?);
    Ok(())
}

fn properties(task: &Task, more: &[(&str, String)]) -> HashMap<String, String> {
    let mut all = HashMap::from([("bootstrap.servers".to_owned(), task.bootstrap.clone())]);
    all.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    all
}
