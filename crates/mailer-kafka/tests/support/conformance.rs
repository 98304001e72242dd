//! The examinations of the connector contracts, for any cluster.

use super::Cluster;
use super::host::until;
use super::sources::start;
use mailer_core::conformance::{
    ExactlyOnceHost, Input, SinkHost, SourceHost, check_exactly_once, check_sink, check_source,
};
use mailer_core::{Record, Result};
use mailer_kafka::{Custom, Json, KafkaRecord, KafkaSink, KafkaSource, OutRecord, TransactionalKafkaSink, Value};
use std::ops::Range;

const PARTITIONS: i32 = 3;

type Encoder = fn(&Record<u64>) -> Result<OutRecord>;

/// The number as key and value: partitions are chosen by it.
const ENCODE: Encoder = |record| {
    let number = record.value.to_string();
    Ok(OutRecord::value(number.clone()).with_key(number))
};

struct Host<'a> {
    cluster: &'a Cluster,
    topic: String,
}

type Numbers = KafkaSource<Value<Json<u64>>>;

fn numbers(cluster: &Cluster, topic: &str) -> Numbers {
    KafkaSource::new(&cluster.bootstrap, topic).json()
}

impl SourceHost for Host<'_> {
    type Factory = Numbers;

    fn bounded(&mut self, workers: u16) -> Input<Numbers> {
        let partitions = i32::from(workers) + 1;
        let topic = self.cluster.topic("input", partitions);
        let of = |partition: i32| {
            let numbers = partition as u64 * 10_000..partition as u64 * 10_000 + 2_500;
            self.cluster.write(&topic, partition, numbers.clone().map(|number| number.to_string()));
            numbers.collect()
        };
        let splits = (0..partitions).map(of).collect();
        Input { source: numbers(self.cluster, &topic).until_end().max_partition_fetch_bytes(20_000), splits }
    }

    fn live(&mut self) -> Option<Numbers> {
        self.topic = self.cluster.topic("live", 1);
        Some(numbers(self.cluster, &self.topic))
    }

    fn append(&mut self, range: Range<u64>) {
        self.cluster.write(&self.topic, 0, range.map(|number| number.to_string()));
    }

    fn number(&self, item: &u64) -> u64 {
        *item
    }
}

impl Host<'_> {
    fn new_topic(&mut self) -> &str {
        self.topic = self.cluster.topic("output", PARTITIONS);
        &self.topic
    }

    /// Committed numbers by partition.
    fn read(&self) -> Vec<Vec<u64>> {
        let records: Vec<KafkaRecord> =
            start(&KafkaSource::new(&self.cluster.bootstrap, &self.topic).until_end()).unwrap().rest().unwrap();
        let mut partitions = vec![Vec::new(); PARTITIONS as usize];
        for record in records {
            let value = record.value.unwrap();
            partitions[record.partition as usize].push(std::str::from_utf8(&value).unwrap().parse().unwrap());
        }
        partitions
    }
}

impl SinkHost for Host<'_> {
    type Item = u64;
    type Factory = KafkaSink<Custom<Encoder>>;

    fn sink(&mut self) -> Self::Factory {
        let bootstrap = self.cluster.bootstrap.clone();
        // Small enough for `write` to leave records behind.
        KafkaSink::new(bootstrap, self.new_topic()).max_in_flight_bytes(20_000).encode(ENCODE)
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    fn written(&mut self) -> Vec<Vec<u64>> {
        self.read()
    }

    /// The fake broker takes records of any size.
    fn refused(&mut self) -> Option<Self::Factory> {
        if self.cluster.fake.is_some() {
            return None;
        }
        let topic = self.cluster.topic_with(&self.cluster.unique("tiny"), 1, &[("max.message.bytes", "10")]);
        Some(KafkaSink::new(&self.cluster.bootstrap, topic).encode(ENCODE))
    }
}

impl ExactlyOnceHost for Host<'_> {
    type Item = u64;
    type Sink = TransactionalKafkaSink<Custom<Encoder>>;

    fn sink(&mut self) -> Self::Sink {
        let (bootstrap, id) = (self.cluster.bootstrap.clone(), self.cluster.unique("out"));
        TransactionalKafkaSink::new(bootstrap, self.new_topic(), id).encode(ENCODE)
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    fn published(&mut self, expected: usize) -> Vec<Vec<u64>> {
        until("what was published is visible", || self.read().concat().len() >= expected);
        self.read()
    }
}

pub fn the_source_passes(cluster: &Cluster) {
    check_source(&mut Host { cluster, topic: String::new() });
}

pub fn the_sink_passes(cluster: &Cluster) {
    check_sink(&mut Host { cluster, topic: String::new() });
}

pub fn the_exactly_once_sink_passes(cluster: &Cluster) {
    check_exactly_once(&mut Host { cluster, topic: String::new() });
}
