//! Writes: builds batches in place and sends each when it is full, idempotent or in transactions, five requests ahead.

use crate::codec;
use crate::wire::{Connection, text};
use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, EndTxnRequest, FindCoordinatorRequest, InitProducerIdRequest, ProduceRequest,
    ProducerId, TopicName, TransactionalId,
};
use mailer_measure::meter::Lap;
use mailer_measure::task::{BATCH_BYTES, PARTITIONS, PATIENCE};
use mailer_measure::{Codec, Task};
use std::time::Duration;

// The versions of a client before Kafka 4: partitions are added by a request, the epoch stays.
const PRODUCE: i16 = 9;
const ADD_PARTITIONS: i16 = 3;
const END: i16 = 3;
const INIT: i16 = 4;
const FIND_COORDINATOR: i16 = 3;
const IN_FLIGHT: usize = 5;
const TRANSACTION_TIMEOUT_MS: i32 = 600_000;
/// The coordinator is being elected, is loading, or ends the transaction before.
const PASSING: [i16; 4] = [14, 15, 16, 51];

/// The batch of one partition.
#[derive(Default)]
struct Batch {
    records: Vec<u8>,
    count: i32,
    start: i64,
    latest: i64,
    sequence: i32,
}

pub struct Writer {
    connection: Connection,
    topic: TopicName,
    codec: Codec,
    transactional_id: Option<TransactionalId>,
    producer: (ProducerId, i16),
    batches: [Batch; PARTITIONS as usize],
    in_flight: usize,
    added: bool,
}

impl Writer {
    /// Idempotent, or with the task's id transactional.
    pub fn open(task: &Task, transactional: bool) -> Result<Self> {
        let mut connection = Connection::open(&task.bootstrap)?;
        let transactional_id = transactional.then(|| TransactionalId(text(&task.id)));
        let producer = init(&mut connection, transactional_id.clone())?;
        Ok(Self {
            connection,
            topic: TopicName(text(&task.output)),
            codec: task.codec,
            transactional_id,
            producer,
            batches: Default::default(),
            in_flight: 0,
            added: false,
        })
    }

    pub fn append(&mut self, timestamp: i64, key: &[u8], value: &[u8]) -> Result<()> {
        let partition = (murmur2(key) & 0x7fff_ffff) as usize % self.batches.len();
        let batch = &mut self.batches[partition];
        batch.append(timestamp, key, value);
        if batch.records.len() >= BATCH_BYTES {
            self.send(partition)?;
        }
        Ok(())
    }

    /// Waits until everything is acknowledged.
    pub fn flush(&mut self) -> Result<()> {
        for partition in 0..self.batches.len() {
            if self.batches[partition].count > 0 {
                self.send(partition)?;
            }
        }
        while self.in_flight > 0 {
            self.acknowledge()?;
        }
        Ok(())
    }

    pub fn commit(&mut self) -> Result<()> {
        self.flush()?;
        let Some(id) = self.transactional_id.clone() else { bail!("not transactional") };
        let request = EndTxnRequest::default()
            .with_transactional_id(id)
            .with_producer_id(self.producer.0)
            .with_producer_epoch(self.producer.1)
            .with_committed(true);
        self.added = false;
        patiently("EndTxn", || Ok(self.connection.call(END, &request)?.error_code))
    }

    fn send(&mut self, partition: usize) -> Result<()> {
        if !self.added && self.transactional_id.is_some() {
            self.add_partitions()?;
        }
        if self.in_flight == IN_FLIGHT {
            self.acknowledge()?;
        }
        let records = self.batches[partition].seal(self.codec, self.producer, self.transactional_id.is_some())?;
        let data = PartitionProduceData::default().with_index(partition as i32).with_records(Some(records));
        let topic = TopicProduceData::default().with_name(self.topic.clone()).with_partition_data(vec![data]);
        let request = ProduceRequest::default()
            .with_transactional_id(self.transactional_id.clone())
            .with_acks(-1)
            .with_timeout_ms(30_000)
            .with_topic_data(vec![topic]);
        self.connection.send(PRODUCE, &request)?;
        self.in_flight += 1;
        Ok(())
    }

    fn acknowledge(&mut self) -> Result<()> {
        let response = self.connection.receive::<ProduceRequest>(PRODUCE)?;
        self.in_flight -= 1;
        for part in response.responses.iter().flat_map(|topic| &topic.partition_responses) {
            ensure!(part.error_code == 0, "produce to partition {}: error {}", part.index, part.error_code);
        }
        Ok(())
    }

    fn add_partitions(&mut self) -> Result<()> {
        while self.in_flight > 0 {
            self.acknowledge()?;
        }
        let Some(id) = self.transactional_id.clone() else { bail!("not transactional") };
        let topic =
            AddPartitionsToTxnTopic::default().with_name(self.topic.clone()).with_partitions((0..PARTITIONS).collect());
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(id)
            .with_v3_and_below_producer_id(self.producer.0)
            .with_v3_and_below_producer_epoch(self.producer.1)
            .with_v3_and_below_topics(vec![topic]);
        patiently("AddPartitionsToTxn", || {
            let response = self.connection.call(ADD_PARTITIONS, &request)?;
            let parts = response.results_by_topic_v3_and_below.iter().flat_map(|topic| &topic.results_by_partition);
            Ok(parts.map(|part| part.partition_error_code).find(|code| *code != 0).unwrap_or(0))
        })?;
        self.added = true;
        Ok(())
    }
}

fn init(connection: &mut Connection, id: Option<TransactionalId>) -> Result<(ProducerId, i16)> {
    if let Some(id) = &id {
        // The one broker is the coordinator of everything; asking makes it create the topic of transactions.
        let request = FindCoordinatorRequest::default().with_key(id.0.clone()).with_key_type(1);
        patiently("FindCoordinator", || Ok(connection.call(FIND_COORDINATOR, &request)?.error_code))?;
    }
    let request = InitProducerIdRequest::default()
        .with_transactional_id(id)
        .with_transaction_timeout_ms(TRANSACTION_TIMEOUT_MS)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    let mut producer = (ProducerId(-1), -1);
    patiently("InitProducerId", || {
        let response = connection.call(INIT, &request)?;
        producer = (response.producer_id, response.producer_epoch);
        Ok(response.error_code)
    })?;
    Ok(producer)
}

/// Asks until the answer is not one that passes by itself.
fn patiently(what: &str, mut ask: impl FnMut() -> Result<i16>) -> Result<()> {
    let lap = Lap::begin();
    loop {
        match ask()? {
            0 => return Ok(()),
            code if !PASSING.contains(&code) || lap.elapsed() > PATIENCE => bail!("{what}: error {code}"),
            _ => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

impl Batch {
    fn append(&mut self, timestamp: i64, key: &[u8], value: &[u8]) {
        if self.count == 0 {
            (self.start, self.latest) = (timestamp, timestamp);
        }
        self.latest = self.latest.max(timestamp);
        let (time, offset) = (timestamp - self.start, i64::from(self.count));
        let (k, v) = (key.len() as i64, value.len() as i64);
        let size = 2 + width(time) + width(offset) + width(k) + key.len() + width(v) + value.len();
        let out = &mut self.records;
        put(out, size as i64);
        out.push(0);
        put(out, time);
        put(out, offset);
        put(out, k);
        out.extend_from_slice(key);
        put(out, v);
        out.extend_from_slice(value);
        out.push(0);
        self.count += 1;
    }

    /// The batch as it goes over the wire; what is left is an empty one.
    fn seal(&mut self, codec: Codec, (id, epoch): (ProducerId, i16), transactional: bool) -> Result<Bytes> {
        let mut out = Vec::with_capacity(self.records.len() + 61);
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&[0; 4]); // length, below
        out.extend_from_slice(&(-1i32).to_be_bytes());
        out.push(2);
        out.extend_from_slice(&[0; 4]); // CRC, below
        out.extend_from_slice(&(codec::number(codec) | i16::from(transactional) << 4).to_be_bytes());
        out.extend_from_slice(&(self.count - 1).to_be_bytes());
        out.extend_from_slice(&self.start.to_be_bytes());
        out.extend_from_slice(&self.latest.to_be_bytes());
        out.extend_from_slice(&id.0.to_be_bytes());
        out.extend_from_slice(&epoch.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
        codec::compress(codec, &self.records, &mut out)?;
        let length = i32::try_from(out.len() - 12)?;
        out[8..12].copy_from_slice(&length.to_be_bytes());
        let crc = crc32c::crc32c(&out[21..]);
        out[17..21].copy_from_slice(&crc.to_be_bytes());
        self.sequence += self.count;
        self.count = 0;
        self.records.clear();
        Ok(out.into())
    }
}

fn put(out: &mut Vec<u8>, value: i64) {
    let mut left = zigzag(value);
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

fn width(value: i64) -> usize {
    (64 - (zigzag(value) | 1).leading_zeros() as usize).div_ceil(7)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The hash by which Kafka's Java client chooses a partition.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let (words, tail) = data.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !tail.is_empty() {
        let rest = tail.iter().rev().fold(0, |rest, byte| (rest << 8) | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}
