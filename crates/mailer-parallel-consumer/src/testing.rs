//! A broker in memory, to test handlers and whole consumers without Kafka, also with a clock that stands still.
//!
//! It has partitioned logs with gaps, one consumer group with cooperative rebalances, commits with metadata, and faults
//! that are switched on: slow commits, failing commits, lost partitions, polls that fail.
//!
//! ```
//! use mailer_parallel_consumer::testing::Broker;
//! use mailer_parallel_consumer::{Context, LogDeadLetters, ParallelConsumer, Partition, Record, Stopped, handler_fn};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
//! # runtime.block_on(async {
//! let broker = Broker::with_topic("orders", 2);
//! broker.produce("orders", 0, Some("ann"), "1");
//! let handler = handler_fn(async |record: &Record, _: &Context<'_>| {
//!     assert_eq!(record.value.as_deref(), Some(&b"1"[..]));
//!     Ok(())
//! });
//! let consumer = ParallelConsumer::from_source(broker.join())
//!     .handler(handler)
//!     .dead_letter(LogDeadLetters)
//!     .build()
//!     .await?;
//! let (control, partition) = (consumer.control(), Partition::new("orders", 0));
//! let running = tokio::spawn(consumer.run());
//! broker.until_committed(&partition, 1).await;
//! control.stop();
//! assert_eq!(running.await??, Stopped::Graceful);
//! # Ok::<(), mailer_parallel_consumer::BoxError>(())
//! # }).unwrap();
//! ```

mod group;
mod member;

pub use member::Member;

use crate::source::CommitErrorKind;
use crate::{Partition, Record, Timestamp, TimestampKind};
use bytes::Bytes;
use group::Group;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A broker in memory. A clone is the same broker.
#[derive(Clone, Debug, Default)]
pub struct Broker {
    state: Arc<Mutex<State>>,
    /// Something was committed.
    committed: Arc<Notify>,
}

/// The log of one partition.
#[derive(Debug, Default)]
struct Log {
    /// `None` is an offset without a record: a marker, or compacted away.
    records: Vec<Option<Record>>,
    /// The first offset that is still there.
    start: i64,
    committed: Option<(i64, String)>,
    /// Every offset that was ever committed, in turn.
    history: Vec<i64>,
}

impl Log {
    fn end(&self) -> i64 {
        self.records.len() as i64
    }
}

#[derive(Debug)]
struct State {
    logs: BTreeMap<Partition, Log>,
    group: Group,
    fetch_records: usize,
    commit_delay: Duration,
    metadata_limit: usize,
    failing_commits: VecDeque<CommitErrorKind>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            logs: BTreeMap::new(),
            group: Group::default(),
            fetch_records: 500,
            commit_delay: Duration::ZERO,
            metadata_limit: crate::offset_map::DEFAULT_MAX_BYTES,
            failing_commits: VecDeque::new(),
        }
    }
}

impl Broker {
    /// A broker with one topic.
    pub fn with_topic(name: &str, partitions: i32) -> Self {
        let broker = Self::default();
        broker.add_topic(name, partitions);
        broker
    }

    /// Another topic. Members that are there already get their share of it.
    pub fn add_topic(&self, name: &str, partitions: i32) {
        let mut state = self.lock();
        for index in 0..partitions {
            state.logs.insert(Partition::new(name, index), Log::default());
        }
        state.rebalance();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a record; returns its offset. Panics when there is no such partition.
    pub fn produce(&self, topic: &str, partition: i32, key: Option<&str>, value: impl Into<Bytes>) -> i64 {
        let partition = Partition::new(topic, partition);
        let record = Record {
            key: key.map(|key| Bytes::copy_from_slice(key.as_bytes())),
            value: Some(value.into()),
            timestamp: Timestamp { millis: 0, kind: TimestampKind::CreateTime },
            ..Record::at(partition, 0)
        };
        self.append(record)
    }

    /// Appends a record to the partition that it names, under the next offset, which is returned.
    pub fn append(&self, record: Record) -> i64 {
        let mut state = self.lock();
        let log = state.log(&record.partition);
        let offset = log.end();
        log.records.push(Some(Record { offset, ..record }));
        state.group.wake_all();
        offset
    }

    /// Appends an offset that no record has, as a transaction marker does.
    pub fn append_marker(&self, topic: &str, partition: i32) {
        let mut state = self.lock();
        state.log(&Partition::new(topic, partition)).records.push(None);
        state.group.wake_all();
    }

    /// Deletes what lies before `start`, as retention does. Who stands there is reset to it.
    pub fn delete_before(&self, topic: &str, partition: i32, start: i64) {
        let mut state = self.lock();
        state.log(&Partition::new(topic, partition)).start = start;
        state.group.wake_all();
    }

    /// A new member of the group: a source for [`ParallelConsumer::from_source`](crate::ParallelConsumer::from_source).
    /// Dropping it is a crash: its partitions move at once.
    pub fn join(&self) -> Member {
        let mut state = self.lock();
        let id = state.group.join();
        state.rebalance();
        drop(state);
        Member::new(self.clone(), id)
    }

    /// Whether there is such a partition.
    pub fn has(&self, partition: &Partition) -> bool {
        self.lock().logs.contains_key(partition)
    }

    /// The committed offset of a partition, and its metadata.
    pub fn committed(&self, partition: &Partition) -> Option<(i64, String)> {
        self.lock().log(partition).committed.clone()
    }

    /// Every offset that was committed for a partition, in turn.
    pub fn history(&self, partition: &Partition) -> Vec<i64> {
        self.lock().log(partition).history.clone()
    }

    /// Commits as a foreign client would.
    pub fn commit_as_foreign(&self, partition: &Partition, offset: i64, metadata: &str) {
        self.lock().log(partition).committed = Some((offset, metadata.to_owned()));
    }

    /// Waits until `offset` or more is committed for a partition.
    pub async fn until_committed(&self, partition: &Partition, offset: i64) {
        loop {
            let mut changed = std::pin::pin!(self.committed.notified());
            changed.as_mut().enable();
            if self.committed(partition).is_some_and(|(committed, _)| committed >= offset) {
                return;
            }
            changed.await;
        }
    }

    /// Takes a partition from its member without asking, and gives it to the same or another one.
    pub fn lose(&self, partition: &Partition) {
        let mut state = self.lock();
        state.group.lose(partition);
        state.rebalance();
    }

    /// Most records of one fetch: 500 at first.
    pub fn set_fetch_records(&self, records: usize) {
        self.lock().fetch_records = records.max(1);
    }

    /// How long a commit takes: no time at first.
    pub fn set_commit_delay(&self, delay: Duration) {
        self.lock().commit_delay = delay;
    }

    /// Bytes of metadata that a commit may carry: 4,096 at first.
    pub fn set_metadata_limit(&self, bytes: usize) {
        self.lock().metadata_limit = bytes;
    }

    /// The next commits fail so.
    pub fn fail_commits(&self, kinds: impl IntoIterator<Item = CommitErrorKind>) {
        self.lock().failing_commits.extend(kinds);
    }

    /// Polls fail from now on, or work again.
    pub fn fail_polls(&self, fail: bool) {
        let mut state = self.lock();
        state.group.fail_polls(fail);
    }
}

impl State {
    fn log(&mut self, partition: &Partition) -> &mut Log {
        self.logs.get_mut(partition).unwrap_or_else(|| panic!("there is no partition {partition}"))
    }

    fn rebalance(&mut self) {
        let (logs, group) = (&self.logs, &mut self.group);
        group.rebalance(logs.keys());
        for (id, partition) in group.to_assign() {
            let log = &logs[&partition];
            let (position, metadata) = log.committed.clone().unwrap_or((log.start, String::new()));
            group.assign(id, partition, position.max(log.start), metadata, log.end());
        }
    }
}
