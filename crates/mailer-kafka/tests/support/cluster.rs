//! A Kafka cluster as tests see it: topics are made and records written by a client that is not the code under test's.

use krafka::admin::{
    AlterClientQuotasOptions, ClientQuotaAlteration, ClientQuotaEntity, CreatePartitionsOptions, CreateTopicsOptions,
    DeleteRecordsOptions, DeleteTopicsOptions, NewTopic,
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
    /// Of every topic that is made.
    pub replicas: i16,
}

impl Cluster {
    pub fn fake() -> Self {
        let fake = runtime().block_on(FakeBroker::start()).unwrap();
        let bootstrap = fake.bootstrap_servers();
        Self { fake: Some(fake), ..Self::at(&bootstrap) }
    }

    /// Brokers that somebody else started.
    pub fn at(bootstrap: &str) -> Self {
        Self { kafka: connect(bootstrap), bootstrap: bootstrap.to_owned(), fake: None, replicas: 1 }
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
        Some(Self::at(&bootstrap))
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
        let mut topic = NewTopic::new(name, partitions, self.replicas).unwrap();
        for (key, value) in configs {
            topic = topic.with_config(*key, *value);
        }
        self.create(topic);
        self.appeared(name, partitions);
        name.to_owned()
    }

    /// A topic of one partition on these brokers; the first leads.
    pub fn topic_on(&self, what: &str, brokers: &[i32]) -> String {
        let name = self.unique(what);
        self.create(NewTopic::with_replica_assignment(&name, [(0, brokers.to_vec())].into()).unwrap());
        self.appeared(&name, 1);
        name
    }

    /// Records of tests are old: half a minute after its start, a broker would delete them.
    fn create(&self, topic: NewTopic) {
        let (name, topic) = (topic.name.clone(), topic.with_config("retention.ms", "-1"));
        let created = runtime().block_on(self.kafka.admin().create_topics([topic], CreateTopicsOptions::default()));
        created.unwrap().remove(&name).unwrap().unwrap();
    }

    /// Whether every replica of a topic has what its leader has.
    pub fn is_in_sync(&self, name: &str) -> bool {
        let described = runtime().block_on(self.kafka.admin().describe_topics([name], Default::default()));
        let partitions = described.ok().and_then(|mut topics| topics.remove(name)?.ok()).map(|topic| topic.partitions);
        partitions.is_some_and(|all| all.iter().all(|partition| partition.isr.len() == partition.replicas.len()))
    }

    /// Bounds the bytes per second of a client id, in both directions.
    pub fn limit_rate(&self, client_id: &str, bytes: f64) {
        let entity: ClientQuotaEntity = [("client-id", Some(client_id))].into_iter().collect();
        let quotas = ["producer_byte_rate", "consumer_byte_rate"].map(|quota| (quota.to_owned(), Some(bytes)));
        let alteration = ClientQuotaAlteration::new(entity, quotas.into());
        let altered = self.kafka.admin();
        let altered = altered.alter_client_quotas(vec![alteration], AlterClientQuotasOptions::default());
        runtime().block_on(altered).unwrap().into_values().for_each(|result| result.unwrap());
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
