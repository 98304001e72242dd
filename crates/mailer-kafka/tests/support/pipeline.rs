//! A job of three connectors, run in steps: one source, and everything it reads into both sinks, checkpoint by checkpoint.
//!
//! A test strikes in the middle of a step, where the plain sink has records on their way and the other has them staged. At the
//! end Kafka's own consumer reads the outputs: nothing may be missing, doubled, or out of order within a key.

use super::Cluster;
use super::exactly_once::Job;
use super::host::{Bell, Reading, context};
use super::sinks::{batch_at, flush, write_all};
use mailer_core::{CheckpointId, Clock, SinkFactory, SourceFactory, Stager, SystemClock};
use mailer_kafka::{
    AsBytes, KafkaReader, KafkaSink, KafkaSource, KafkaStager, KafkaWriter, Security, Text, TransactionalKafkaSink,
    Value, WithKey,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use xtask::kafka::Tools;

/// A key of an item `<partition of the input>-<number>`: its partition.
type Key = fn(&String) -> String;
const KEY: Key = |item| item.split('-').next().unwrap_or_default().to_owned();

/// How the connectors reach their cluster.
#[derive(Clone, Debug)]
pub struct Route {
    pub bootstrap: String,
    pub security: Option<Security>,
    pub client_id: String,
    pub request_timeout: Duration,
    /// Options of all three.
    pub options: Vec<(&'static str, String)>,
}

impl Route {
    pub fn to(bootstrap: &str) -> Self {
        let (bootstrap, client_id, request_timeout) = (bootstrap.to_owned(), "mailer".into(), Duration::from_secs(5));
        Self { bootstrap, security: None, client_id, request_timeout, options: Vec::new() }
    }

    pub fn source(&self, topic: &str) -> KafkaSource<Value<Text>> {
        let source = KafkaSource::new(&self.bootstrap, topic).request_timeout(self.request_timeout).string();
        let source = source.client_id(&self.client_id).discovery_interval(Duration::from_millis(200));
        let source = self.options.iter().fold(source, |source, (key, value)| source.option(*key, value));
        match &self.security {
            Some(security) => source.security(security.clone()),
            None => source,
        }
    }

    pub fn plain(&self, topic: &str) -> KafkaSink<WithKey<AsBytes, Key>> {
        let sink = KafkaSink::new(&self.bootstrap, topic).request_timeout(self.request_timeout).bytes().key(KEY);
        let sink =
            self.options.iter().fold(sink.client_id(&self.client_id), |sink, (key, value)| sink.option(*key, value));
        match &self.security {
            Some(security) => sink.security(security.clone()),
            None => sink,
        }
    }

    pub fn exact(&self, topic: &str, id: &str) -> TransactionalKafkaSink<WithKey<AsBytes, Key>> {
        let sink = TransactionalKafkaSink::new(&self.bootstrap, topic, id).request_timeout(self.request_timeout);
        let sink = sink.transaction_timeout(Duration::from_secs(20)).bytes().key(KEY).client_id(&self.client_id);
        let sink = self.options.iter().fold(sink, |sink, (key, value)| sink.option(*key, value));
        match &self.security {
            Some(security) => sink.security(security.clone()),
            None => sink,
        }
    }
}

/// The job, its topics, and what has gone through it.
pub struct Pipeline {
    pub input: String,
    pub plain: String,
    pub exact: String,
    pub reading: Reading<KafkaReader<Value<Text>>>,
    writer: KafkaWriter<String, WithKey<AsBytes, Key>>,
    bell: Arc<Bell>,
    job: Job,
    stager: KafkaStager<String, WithKey<AsBytes, Key>>,
    checkpoint: u64,
    seen: Vec<String>,
}

impl Pipeline {
    /// Makes the topics of a job and fills its input: so many records in each partition.
    pub fn prepare(cluster: &Cluster, partitions: i32, records: usize) -> [String; 3] {
        let topics = ["input", "plain", "exact"].map(|what| cluster.topic(what, partitions));
        (0..partitions).for_each(|partition| Self::fill(cluster, &topics[0], partition, 0..records));
        topics
    }

    /// Writes items to a partition of an input.
    pub fn fill(cluster: &Cluster, input: &str, partition: i32, numbers: std::ops::Range<usize>) {
        cluster.write(input, partition, numbers.map(|number| format!("{partition}-{number}")));
    }

    /// Starts on topics that were prepared.
    pub fn start(cluster: &Cluster, route: &Route, [input, plain, exact]: [String; 3]) -> Self {
        // Small fetches: a step is many of them.
        let source = route.source(&input).max_partition_fetch_bytes(2_000).read_ahead_bytes(10_000);
        let (reader, bell) = context("source", 1);
        let reading = Reading::start(source.build(&reader).unwrap(), bell).unwrap();
        let (worker, bell) = context("plain", 1);
        let writer = route.plain(&plain).build(&worker).unwrap();
        let sink = route.exact(&exact, &cluster.unique("out"));
        let job = Job::open::<String, _>(&cluster.unique("job"), 1, &sink);
        let stager = job.stager("exact", &sink).unwrap();
        Self { input, plain, exact, reading, writer, bell, job, stager, checkpoint: 0, seen: Vec::new() }
    }

    /// Reads at least `records` items, writes and stages them; then `strike`; then what a barrier does.
    pub fn step(&mut self, records: usize, strike: impl FnOnce()) {
        let items = self.reading.take(records).unwrap();
        // Dated today: a broker that is killed forgets the producers of older records, and takes from them twice what it had
        // not acknowledged.
        let today = SystemClock::default().wall();
        write_all(&mut self.writer, &self.bell, batch_at(today, items.clone())).unwrap();
        self.stager.stage(&mut batch_at(today, items.clone())).unwrap();
        strike();
        flush::<String, _>(&mut self.writer).unwrap();
        self.checkpoint += 1;
        let segments = self.stager.seal(CheckpointId(self.checkpoint)).unwrap()().unwrap();
        self.job.publish_at_last(self.checkpoint, &segments);
        self.seen.extend(items);
    }

    /// Steps until `total` items have gone through, with a strike in the middle of the first.
    pub fn run_to(&mut self, total: usize, strike: impl FnOnce()) {
        let mut strike = Some(strike);
        while self.seen.len() < total {
            let records = (total - self.seen.len()).min(total / 4);
            self.step(records, || strike.take().into_iter().for_each(|strike| strike()));
        }
        assert_eq!(self.seen.len(), total, "the source read something twice");
    }

    /// What went through, and what Kafka's own consumer finds in the outputs, is `expected` items of each key in order.
    pub fn check(&self, bootstrap: &str, expected: &BTreeMap<String, usize>) {
        let outputs = [self.plain.as_str(), self.exact.as_str()];
        let read = Tools::new().unwrap().read_topics(bootstrap, &outputs).unwrap();
        let by_foreign_eyes = outputs.map(|topic| read[topic].iter().map(|record| record.value_text()).collect());
        let [plain, exact]: [Vec<String>; 2] = by_foreign_eyes;
        for (what, items) in [("source", &self.seen), ("plain sink", &plain), ("transactional sink", &exact)] {
            assert_eq!(items.len(), expected.values().sum::<usize>(), "{what} of {outputs:?}: {items:?}");
            for (key, count) in expected {
                let of_key = items.iter().filter(|item| KEY(item) == *key);
                let wanted: Vec<String> = (0..*count).map(|number| format!("{key}-{number}")).collect();
                assert!(of_key.eq(wanted.iter()), "{what}: items of key {key} are not all of them once and in order");
            }
        }
    }
}

/// So many items of each of so many partitions.
pub fn all_of(partitions: i32, records: usize) -> BTreeMap<String, usize> {
    (0..partitions).map(|partition| (partition.to_string(), records)).collect()
}
