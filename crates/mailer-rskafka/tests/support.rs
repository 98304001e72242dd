//! A cluster as tests see it, prepared and looked at by other clients than the code under test.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a part of tests")]

use krafka::admin::{CreateTopicsOptions, DeleteRecordsOptions, NewTopic};
use krafka::consumer::TopicPartition;
use krafka::producer::TransactionalProducer;
use mailer_core::{
    Batch, Clock, OwnerEpoch, Polled, Result, Source, SourceFactory, StartAt, SystemClock, WorkerContext,
};
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{OffsetAt, UnknownTopicHandling};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::Runtime;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The broker that `MAILER_KAFKA` names.
pub(crate) struct Cluster {
    pub(crate) bootstrap: String,
    runtime: Runtime,
    kafka: krafka::Kafka,
    client: rskafka::client::Client,
}

/// Records in a transaction that is open.
pub(crate) struct Open {
    producer: TransactionalProducer,
    topic: String,
    /// Where readers of committed records stop when the marker is there.
    end: i64,
}

impl Open {
    /// On return the marker is in the partition: a coordinator answers before it has written it.
    pub(crate) fn end(self, cluster: &Cluster, commit: bool) {
        cluster.runtime.block_on(async {
            match commit {
                true => self.producer.commit().await.unwrap(),
                false => self.producer.abort().await.unwrap(),
            }
            self.producer.close().await.unwrap();
            let clock = SystemClock::default();
            while cluster.end(&self.topic).await < self.end {
                assert!(clock.monotonic() < PATIENCE, "the marker is never written");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    }
}

impl Cluster {
    pub(crate) fn real() -> Option<Self> {
        let Ok(bootstrap) = std::env::var("MAILER_KAFKA") else {
            println!("skipped: MAILER_KAFKA=host:port names no broker (`cargo xtask kafka up` starts one)");
            return None;
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let kafka = runtime.block_on(krafka::Kafka::builder(&bootstrap).connect()).unwrap();
        let client = runtime.block_on(ClientBuilder::new(vec![bootstrap.clone()]).build()).unwrap();
        Some(Self { bootstrap, runtime, kafka, client })
    }

    /// A new topic.
    pub(crate) fn topic(&self, what: &str, partitions: i32, configs: &[(&str, &str)]) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let start = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let name = format!("rskafka-{what}-{start}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut topic = NewTopic::new(&name, partitions, 1).unwrap();
        for (key, value) in configs {
            topic = topic.with_config(*key, *value);
        }
        self.runtime.block_on(async {
            let created = self.kafka.admin().create_topics([topic], CreateTopicsOptions::default()).await;
            created.unwrap().remove(&name).unwrap().unwrap();
            // Waits until the partitions have leaders.
            for partition in 0..partitions {
                let leader = self.client.partition_client(&name, partition, UnknownTopicHandling::Retry).await.unwrap();
                leader.get_offset(OffsetAt::Latest).await.unwrap();
            }
            self.kafka.admin().list_topics(Default::default()).await.unwrap();
        });
        name
    }

    /// Writes numbers to a partition, in several batches.
    pub(crate) fn write(&self, topic: &str, partition: i32, numbers: Range<u64>) {
        self.runtime.block_on(async {
            let leader = self.client.partition_client(topic, partition, UnknownTopicHandling::Retry).await.unwrap();
            let numbers: Vec<u64> = numbers.collect();
            for batch in numbers.chunks(70) {
                let record = |number: &u64| rskafka::record::Record {
                    key: None,
                    value: Some(number.to_string().into_bytes()),
                    headers: Default::default(),
                    timestamp: rskafka::chrono::DateTime::from_timestamp_millis(1_000).unwrap(),
                };
                let records = batch.iter().map(record).collect();
                leader.produce(records, rskafka::client::partition::Compression::NoCompression).await.unwrap();
            }
        });
    }

    pub(crate) fn write_with_headers(&self, topic: &str, value: &str, headers: &[(&str, Option<&str>)]) {
        let mut record = krafka::Record::new(topic, value.to_owned()).partition(0);
        for (name, value) in headers {
            record = match value {
                Some(value) => record.header(*name, value.as_bytes().to_vec()),
                None => record.null_header(*name),
            };
        }
        self.runtime.block_on(async {
            let producer = self.kafka.producer().build().await.unwrap();
            drop(producer.enqueue(record).await.unwrap());
            producer.close().await.unwrap();
        });
    }

    /// Writes numbers in a transaction that stays open.
    pub(crate) fn transaction(&self, topic: &str, numbers: Range<u64>) -> Open {
        self.runtime.block_on(async {
            let producer =
                self.kafka.producer().build_transactional(format!("{topic}-{}", numbers.start)).await.unwrap();
            producer.begin().unwrap();
            let end = self.end(topic).await + (numbers.end - numbers.start) as i64 + 1;
            for number in numbers {
                let record = krafka::Record::new(topic, number.to_string()).partition(0);
                let _ = producer.send(record).await.unwrap();
            }
            Open { producer, topic: topic.to_owned(), end }
        })
    }

    /// Where readers of committed records stop in partition 0.
    async fn end(&self, topic: &str) -> i64 {
        let leader = self.client.partition_client(topic, 0, UnknownTopicHandling::Retry).await.unwrap();
        leader.get_offset(OffsetAt::Latest).await.unwrap()
    }

    /// All numbers of a partition.
    pub(crate) fn read(&self, topic: &str, partition: i32) -> Vec<u64> {
        self.runtime.block_on(async {
            let leader = self.client.partition_client(topic, partition, UnknownTopicHandling::Retry).await.unwrap();
            let (mut numbers, end) = (Vec::new(), leader.get_offset(OffsetAt::Latest).await.unwrap());
            while (numbers.len() as i64) < end {
                let (records, _) = leader.fetch_records(numbers.len() as i64, 1..1 << 20, 500).await.unwrap();
                let values = records.into_iter().map(|record| record.record.value.unwrap());
                numbers.extend(values.map(|value| String::from_utf8(value).unwrap().parse::<u64>().unwrap()));
            }
            numbers
        })
    }

    pub(crate) fn delete_records(&self, topic: &str, before: i64) {
        let place = TopicPartition::new(topic, 0);
        let deleted = self.kafka.admin();
        let deleted = deleted.delete_records([(place, before)], DeleteRecordsOptions::default());
        self.runtime.block_on(deleted).unwrap().into_values().for_each(|result| assert_eq!(result.unwrap(), before));
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// One worker, on this thread.
pub(crate) fn context() -> WorkerContext {
    WorkerContext {
        job: "job".into(),
        name: "connector".into(),
        worker: 0,
        workers: 1,
        epoch: OwnerEpoch(1),
        waker: Waker::from(Arc::new(Unpark(std::thread::current()))),
        clock: Arc::new(SystemClock::default()),
    }
}

/// A source being read.
pub(crate) struct Reading<S>(S);

impl<S: Source> Reading<S> {
    pub(crate) fn start(factory: &impl SourceFactory<Source = S>) -> Result<Self> {
        let mut source = factory.build(&context())?;
        for split in source.splits()? {
            source.assign(&split, StartAt::Configured)?;
        }
        Ok(Self(source))
    }

    /// One batch; `None` at the end of input.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<S::Item>>> {
        let clock = SystemClock::default();
        loop {
            let mut batch = Batch::new();
            match self.0.poll(&mut batch)? {
                Polled::Records { .. } => return Ok(Some(batch.into_iter().map(|record| record.value).collect())),
                Polled::Ended => return Ok(None),
                Polled::Nothing { .. } => std::thread::park_timeout(PATIENCE),
            }
            assert!(clock.monotonic() < PATIENCE, "nothing came");
        }
    }

    /// Items until the end of input.
    pub(crate) fn rest(&mut self) -> Result<Vec<S::Item>> {
        let mut items = Vec::new();
        while let Some(batch) = self.next()? {
            items.extend(batch);
        }
        Ok(items)
    }
}
