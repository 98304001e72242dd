//! Two exactly-once jobs in a row on a real broker, with aborted transactions of a foreign client between their records:
//! what Kafka's own console consumer reads at the end is exact.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a failed step ends a test, and what is skipped is told")]

use krafka::Kafka;
use krafka::producer::TransactionalProducer;
use mailer_kafka::{KafkaSource, TransactionalKafkaSink};
use mailer_runtime::{Env, FileStorage, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use xtask::kafka::{BOOTSTRAP_VARIABLE, BOOTSTRAP_VARIABLE_V1, Tools};

const RECORDS: u64 = 3_000;
const KEYS: u64 = 7;

/// Writes transactions: `commit` says which of them count.
struct Foreign {
    producer: TransactionalProducer,
}

impl Foreign {
    async fn new(bootstrap: &str, id: &str) -> Self {
        let kafka = Kafka::builder(bootstrap).connect().await.unwrap();
        let producer = kafka.producer().transaction_timeout(Duration::from_secs(30));
        Self { producer: producer.build_transactional(id).await.unwrap() }
    }

    async fn write(&self, topic: &str, values: impl IntoIterator<Item = String>, commit: bool) {
        self.producer.begin().unwrap();
        for value in values {
            let mut record = krafka::Record::new(topic, bytes::Bytes::from(value));
            record.partition = None;
            let _acknowledged_by_the_flush = self.producer.enqueue(record).await.unwrap();
        }
        self.producer.flush().await.unwrap();
        match commit {
            true => self.producer.commit().await.unwrap(),
            false => self.producer.abort().await.unwrap(),
        }
    }
}

fn env(name: &str, folder: &Path) -> Env {
    Env::new(name).workers(2).checkpointing(Duration::from_millis(50), FileStorage::new(folder.join(name)))
}

/// Numbers become `key,number` lines.
fn first(bootstrap: &str, topics: &Topics, folder: &Path) -> Result<()> {
    let env = env(&topics.job("first"), folder);
    let numbers = KafkaSource::new(bootstrap, &*topics.input).until_end().string();
    let sink = TransactionalKafkaSink::new(bootstrap, &*topics.middle, topics.job("first"));
    env.source("numbers", numbers)
        .try_map(|line| line.parse::<u64>())
        .map(|number| format!("{},{number}", number % KEYS))
        .sink("lines", sink.bytes());
    env.execute()
}

/// Sums by key, every update put out.
fn second(bootstrap: &str, topics: &Topics, folder: &Path) -> Result<()> {
    let env = env(&topics.job("second"), folder);
    let lines = KafkaSource::new(bootstrap, &*topics.middle).until_end().string();
    let sink = TransactionalKafkaSink::new(bootstrap, &*topics.output, topics.job("second"));
    env.source("lines", lines)
        .map(|line| line.split_once(',').map_or((0, 0), |(key, number)| (digits(key), digits(number))))
        .key_by(|(key, _)| *key)
        .reduce("sums", |sum: &mut (u64, u64), next| sum.1 += next.1)
        .map(|(key, sum)| format!("{key},{sum}"))
        .sink("out", sink.bytes().key(|line: &String| line.split(',').next().unwrap_or_default().to_owned()));
    env.execute()
}

fn digits(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

struct Topics {
    run: String,
    input: String,
    middle: String,
    output: String,
}

impl Topics {
    fn job(&self, name: &str) -> String {
        format!("chained-{name}-{}", self.run)
    }
}

fn chained(bootstrap: &str) {
    let tools = Tools::new().unwrap();
    let run = format!("{}-{}", std::process::id(), bootstrap.rsplit(':').next().unwrap_or_default());
    let name = |part: &str| format!("chained-{part}-{run}");
    let topics = Topics { input: name("in"), middle: name("mid"), output: name("out"), run: run.clone() };
    for topic in [&topics.input, &topics.middle, &topics.output] {
        tools.create_topic(bootstrap, topic, 3, &[]).unwrap();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let foreign = runtime.block_on(Foreign::new(bootstrap, &name("foreign")));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // In several rounds, so that both jobs go on from their checkpoints over markers and aborted records.
    let mut written = 0;
    for round in 0..3 {
        let until = written + RECORDS / 3;
        runtime.block_on(foreign.write(&topics.input, (written..until).map(|n| n.to_string()), true));
        runtime.block_on(foreign.write(&topics.input, (0..100).map(|n| format!("aborted {round} {n}")), false));
        written = until;
        first(bootstrap, &topics, folder.path()).unwrap();
        runtime.block_on(foreign.write(&topics.middle, (0..100).map(|n| format!("aborted,{round} {n}")), false));
        second(bootstrap, &topics, folder.path()).unwrap();
    }
    let lines = tools.read_all(bootstrap, &topics.middle).unwrap();
    assert_eq!(lines.len() as u64, RECORDS, "every number once in the topic between");
    let sums = tools.read_all(bootstrap, &topics.output).unwrap();
    assert_eq!(sums.len() as u64, RECORDS, "every update once");
    let mut last = BTreeMap::new();
    for record in &sums {
        let text = String::from_utf8(record.value.clone().unwrap()).unwrap();
        let (key, sum) = text.split_once(',').unwrap();
        let before = last.insert(digits(key), digits(sum));
        assert!(before.is_none_or(|before| before <= digits(sum)), "sums of a key only grow, in its partition");
    }
    let expected = |key| (key, (0..RECORDS).filter(|n| n % KEYS == key).sum::<u64>());
    assert_eq!(last, (0..KEYS).map(expected).collect::<BTreeMap<_, _>>());
}

fn on(variable: &str) {
    match std::env::var(variable).ok().filter(|value| !value.is_empty()) {
        Some(bootstrap) => chained(&bootstrap),
        None => println!("skipped: {variable}=host:port names no broker (`cargo xtask kafka up` starts one)"),
    }
}

#[test]
fn two_jobs_in_a_row_are_exact_for_a_foreign_reader() {
    on(BOOTSTRAP_VARIABLE);
}

#[test]
fn two_jobs_in_a_row_are_exact_on_transaction_version_1() {
    on(BOOTSTRAP_VARIABLE_V1);
}
