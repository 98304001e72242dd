//! A real cluster, written to by another client, and members that note what they handle.

use krafka::admin::{CreateTopicsOptions, DeleteRecordsOptions, NewTopic};
use krafka::consumer::TopicPartition;
use mailer_parallel_consumer::{
    Builder, Commit, Context, Control, Error, HandlerError, Kafka, ParallelConsumer, Record, RetryPolicy, Snapshot,
    Stopped, handler_with,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use xtask::kafka::{BOOTSTRAP_VARIABLE, GroupPosition, Tools, bootstrap_from_environment};

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Cluster {
    pub(crate) bootstrap: String,
    pub(crate) kafka: krafka::Kafka,
    pub(crate) tools: Tools,
}

impl Cluster {
    /// The broker that the environment names, if it does.
    pub(crate) async fn from_environment() -> Option<Self> {
        let Some(bootstrap) = bootstrap_from_environment() else {
            println!("skipped: {BOOTSTRAP_VARIABLE}=host:port names no broker (`cargo xtask kafka up` starts one)");
            return None;
        };
        Some(Self::at(&bootstrap).await)
    }

    pub(crate) async fn at(bootstrap: &str) -> Self {
        let kafka = krafka::Kafka::builder(bootstrap).connect().await.unwrap();
        Self { bootstrap: bootstrap.to_owned(), kafka, tools: Tools::new().unwrap() }
    }

    pub(crate) async fn topic(&self, what: &str, partitions: i32) -> String {
        let name = unique(what);
        self.create(&name, partitions).await;
        name
    }

    pub(crate) async fn create(&self, name: &str, partitions: i32) {
        let topic = NewTopic::new(name, partitions, 1).unwrap();
        let created = self.kafka.admin().create_topics([topic], CreateTopicsOptions::default()).await;
        created.unwrap().remove(name).unwrap().unwrap();
        until("the topic appears", async || {
            let described = self.kafka.admin().describe_topics([name], Default::default()).await.unwrap();
            described[name].as_ref().is_ok_and(|topic| topic.partitions.iter().all(|p| p.leader.is_some()))
        })
        .await;
    }

    /// Writes records with the numbers as values; number n has the key n modulo `keys` and lies where that key does.
    pub(crate) async fn write(&self, topic: &str, numbers: std::ops::Range<u64>, keys: u64) {
        let producer = self.kafka.producer().build().await.unwrap();
        let mut handles = Vec::new();
        for number in numbers {
            let record = krafka::Record::new(topic, number.to_string()).key((number % keys).to_string());
            handles.push(producer.enqueue(record).await.unwrap());
        }
        for handle in handles {
            assert!(handle.await.unwrap().is_success());
        }
        producer.close().await.unwrap();
    }

    pub(crate) async fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        let place = TopicPartition::new(topic, partition);
        let deleted = self.kafka.admin().delete_records([(place, before)], DeleteRecordsOptions::default()).await;
        deleted.unwrap().into_values().for_each(|result| assert_eq!(result.unwrap(), before));
    }

    /// What Kafka's own tool says of a group.
    pub(crate) async fn group(&self, group: &str) -> Vec<GroupPosition> {
        let (tools, bootstrap, group) = (self.tools.clone(), self.bootstrap.clone(), group.to_owned());
        let described = tokio::task::spawn_blocking(move || tools.group_positions(&bootstrap, &[&group]));
        described.await.unwrap().unwrap()
    }

    pub(crate) fn builder(&self, group: &str, topic: &str) -> Builder<Kafka, ()> {
        ParallelConsumer::builder(&self.bootstrap, group)
            .topics([topic])
            .retry(RetryPolicy::exponential(Duration::from_millis(10), Duration::from_secs(1), 3))
            .commit(Commit { interval: Duration::from_millis(250), offset_map: true })
            .drain_timeout(Duration::from_secs(10))
            .session_timeout(Duration::from_secs(10))
    }
}

/// A name nobody has used.
pub(crate) fn unique(what: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let start = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    format!("{what}-{start}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Asks until something is so; for what nobody tells.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !so().await {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// One record as a handler saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) by: &'static str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) key: String,
    pub(crate) number: u64,
}

/// What all members of a test have handled, in the order in which their handlers ended.
#[derive(Default)]
pub(crate) struct Journal(Mutex<Vec<Seen>>);

impl Journal {
    pub(crate) fn note(&self, by: &'static str, record: &Record) {
        let text =
            |bytes: &Option<bytes::Bytes>| String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
        let number = text(&record.value).parse().unwrap_or(u64::MAX);
        let (partition, offset, key) = (record.partition.index, record.offset, text(&record.key));
        self.0.lock().unwrap().push(Seen { by, partition, offset, key, number });
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn numbers(&self) -> BTreeSet<u64> {
        self.0.lock().unwrap().iter().map(|seen| seen.number).collect()
    }

    pub(crate) fn by(&self, name: &str) -> Vec<Seen> {
        self.all().into_iter().filter(|seen| seen.by == name).collect()
    }

    /// Records that were handled more than once.
    pub(crate) fn repeated(&self) -> Vec<(i32, i64)> {
        let mut times: BTreeMap<(i32, i64), u32> = BTreeMap::new();
        self.all().iter().for_each(|seen| *times.entry((seen.partition, seen.offset)).or_default() += 1);
        times.into_iter().filter(|(_, times)| *times > 1).map(|(place, _)| place).collect()
    }

    /// No record of a key is handled for the first time behind a later one of it.
    pub(crate) fn check_order(&self) {
        let mut last: HashMap<(i32, String), i64> = HashMap::new();
        let mut seen_before = BTreeSet::new();
        for seen in self.all() {
            if !seen_before.insert((seen.partition, seen.offset)) {
                continue;
            }
            let last = last.entry((seen.partition, seen.key.clone())).or_insert(-1);
            assert!(seen.offset > *last, "{seen:?} behind {last}");
            *last = seen.offset;
        }
    }

    pub(crate) async fn until_handled(&self, numbers: std::ops::Range<u64>) {
        let wanted = (numbers.end - numbers.start) as usize;
        until(&format!("{numbers:?} are handled"), async || self.numbers().range(numbers.clone()).count() == wanted)
            .await;
    }
}

/// What a handler of these tests does with a record.
pub(crate) type Doing = Pin<Box<dyn Future<Output = Result<(), HandlerError>> + Send>>;

type Noting = (&'static str, Arc<Journal>, fn(u64) -> Doing);

/// Does it, and notes the record.
pub(crate) fn noting(
    name: &'static str,
    journal: &Arc<Journal>,
    act: fn(u64) -> Doing,
) -> impl mailer_parallel_consumer::Handler + use<> {
    let state: Noting = (name, Arc::clone(journal), act);
    handler_with(state, async |(name, journal, act): &Noting, record: &Record, _: &Context<'_>| {
        let number = std::str::from_utf8(record.value.as_deref().unwrap_or_default())?.parse().unwrap_or(u64::MAX);
        act(number).await?;
        journal.note(name, record);
        Ok(())
    })
}

/// Waits a little, which differs from record to record.
pub(crate) fn a_little(number: u64) -> Doing {
    Box::pin(async move {
        sleep(Duration::from_millis(number * 7_919 % 10)).await;
        Ok(())
    })
}

/// A consumer that runs.
pub(crate) struct Running {
    pub(crate) control: Control,
    task: JoinHandle<Result<Stopped, Error>>,
}

impl Running {
    pub(crate) async fn ready(consumer: ParallelConsumer) -> Self {
        let control = consumer.control();
        let running = Self { task: tokio::spawn(consumer.run()), control };
        assert!(running.control.ready().await, "{:?}", running.task.await);
        running
    }

    pub(crate) async fn snapshot(&self) -> Snapshot {
        self.control.snapshot().await.expect("it runs")
    }

    pub(crate) async fn partitions(&self) -> BTreeSet<i32> {
        self.snapshot().await.partitions.iter().map(|partition| partition.partition).collect()
    }

    pub(crate) async fn until_it_has(&self, partitions: usize) {
        until(&format!("a member has {partitions} partitions"), async || self.partitions().await.len() == partitions)
            .await;
    }

    pub(crate) async fn stop(self) {
        self.control.stop();
        assert_eq!(self.task.await.unwrap().unwrap(), Stopped::Graceful);
    }

    /// As a crash: nobody is told.
    pub(crate) async fn kill(self) {
        self.task.abort();
        drop(self.task.await);
    }

    pub(crate) async fn end(self) -> Result<Stopped, Error> {
        self.task.await.unwrap()
    }
}
