//! A Kafka cluster as tests see it: topics are made and records written by a client that is not the code under test's.

use krafka::admin::{
    CreatePartitionsOptions, CreateTopicsOptions, DeleteRecordsOptions, DeleteTopicsOptions, NewTopic,
};
use krafka::consumer::TopicPartition;
use krafka::testing::FakeBroker;
use krafka::{Kafka, Record};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The runtime fake brokers and helpers live on.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// A cluster and a client to prepare it with.
pub struct Cluster {
    pub bootstrap: String,
    pub kafka: Kafka,
    pub fake: Option<FakeBroker>,
}

impl Cluster {
    pub fn fake() -> Self {
        let fake = runtime().block_on(FakeBroker::start()).unwrap();
        let bootstrap = fake.bootstrap_servers();
        Self { kafka: connect(&bootstrap), bootstrap, fake: Some(fake) }
    }

    pub fn fake_with_transactions(version: i16) -> Self {
        let cluster = Self::fake();
        cluster.broker().set_transaction_version(version);
        cluster
    }

    /// The broker `MAILER_KAFKA` names, if it does.
    pub fn real() -> Option<Self> {
        let Ok(bootstrap) = std::env::var("MAILER_KAFKA") else {
            println!("skipped: MAILER_KAFKA=host:port names no broker (`cargo xtask kafka up` starts one)");
            return None;
        };
        Some(Self { kafka: connect(&bootstrap), bootstrap, fake: None })
    }

    pub fn broker(&self) -> &FakeBroker {
        self.fake.as_ref().expect("this test needs the fake broker")
    }

    /// A name nobody has used on this cluster.
    pub fn unique(&self, what: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let start = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        format!("{what}-{start}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// A new topic.
    pub fn topic(&self, what: &str, partitions: i32) -> String {
        self.topic_with(&self.unique(what), partitions, &[])
    }

    pub fn topic_with(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> String {
        let mut topic = NewTopic::new(name, partitions, 1).unwrap();
        for (key, value) in configs {
            topic = topic.with_config(*key, *value);
        }
        let created = runtime().block_on(self.kafka.admin().create_topics([topic], CreateTopicsOptions::default()));
        created.unwrap().remove(name).unwrap().unwrap();
        self.appeared(name, partitions);
        name.to_owned()
    }

    fn appeared(&self, name: &str, partitions: i32) {
        let count = || {
            let described = runtime().block_on(self.kafka.admin().describe_topics([name], Default::default())).unwrap();
            described[name].as_ref().map_or(0, |topic| topic.partitions.len())
        };
        super::host::until("the topic appears", || count() == partitions as usize);
    }

    /// One setting of a topic.
    pub fn setting(&self, topic: &str, key: &str) -> String {
        let resource = krafka::admin::ConfigResource::topic(topic);
        let admin = self.kafka.admin();
        let described = runtime().block_on(admin.describe_configs([resource.clone()], Default::default())).unwrap();
        let entries = described[&resource].as_ref().unwrap();
        entries.iter().find(|entry| entry.name == key).unwrap().value.clone().unwrap()
    }

    pub fn delete_topic(&self, name: &str) {
        let deleted = runtime().block_on(self.kafka.admin().delete_topics([name], DeleteTopicsOptions::default()));
        deleted.unwrap().remove(name).unwrap().unwrap();
        let gone = || {
            let described = runtime().block_on(self.kafka.admin().describe_topics([name], Default::default())).unwrap();
            described[name].is_err()
        };
        super::host::until("the topic disappears", gone);
    }

    pub fn add_partitions(&self, name: &str, total: i32) {
        if let Some(fake) = &self.fake {
            fake.add_partitions(name, total);
        } else {
            let added = self.kafka.admin();
            let added = added.create_partitions([(name, total)], CreatePartitionsOptions::default());
            runtime().block_on(added).unwrap();
        }
        self.appeared(name, total);
    }

    pub fn delete_records(&self, name: &str, partition: i32, before: i64) {
        let place = TopicPartition::new(name, partition);
        let admin = self.kafka.admin();
        let deleted = admin.delete_records([(place, before)], DeleteRecordsOptions::default());
        runtime().block_on(deleted).unwrap().into_values().for_each(|result| assert_eq!(result.unwrap(), before));
    }

    /// Writes values to a partition.
    pub fn write<V: Into<String>>(&self, topic: &str, partition: i32, values: impl IntoIterator<Item = V>) {
        // The helper's own client keeps what it knows of a topic for minutes.
        let refresh = || runtime().block_on(self.kafka.admin().list_topics(Default::default())).is_ok();
        super::host::until("the brokers answer", refresh);
        runtime().block_on(async {
            let producer = self.kafka.producer().build().await.unwrap();
            for (at, value) in (1..).zip(values) {
                let record = Record::new(topic, value.into()).partition(partition).timestamp(at);
                drop(producer.enqueue(record).await.unwrap());
            }
            producer.close().await.unwrap();
        });
    }

    /// Writes values in a transaction that commits or aborts.
    pub fn transaction<V: Into<String>>(&self, topic: &str, values: impl IntoIterator<Item = V>, commit: bool) {
        let id = self.unique("foreign");
        runtime().block_on(async {
            let producer = self.kafka.producer().build_transactional(id).await.unwrap();
            producer.begin().unwrap();
            for value in values {
                let _ = producer.send(Record::new(topic, value.into()).partition(0)).await.unwrap();
            }
            if commit {
                producer.commit().await.unwrap()
            } else {
                producer.abort().await.unwrap()
            }
            producer.close().await.unwrap();
        });
    }
}

fn connect(bootstrap: &str) -> Kafka {
    let builder = Kafka::builder(bootstrap).request_timeout(Duration::from_secs(20));
    runtime().block_on(builder.connect()).unwrap()
}
