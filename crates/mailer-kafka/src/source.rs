//! Reads topics: partitions are assigned by the engine, never by a consumer group.

mod discovery;
mod fetcher;
mod format;
mod formats;
mod health;
mod instance;
mod link;
mod locate;
mod monitor;
mod parse;
mod partition;
mod position;
mod queue;
mod record_ref;
mod request;
mod resolve;
mod shape;
mod told;
mod unpack;

pub use format::{Decode, Mapped, Raw};
pub use instance::KafkaReader;
pub use parse::{Json, Parse, Plain, Protobuf, Text};
pub use position::{Position, Start};
pub use record_ref::RecordRef;
pub use shape::{DeadLetters, KeyedBy, OrNull, Timestamped, Value};

use crate::client::Client;
use crate::connection::Connection;
use crate::options::{self, Role};
use crate::runtime;
use crate::setters::connection_setters;
use mailer_core::{Error, Result, SourceFactory, WorkerContext};
use request::FetchSettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What to do when the offset a checkpoint names is not in the partition any more.
///
/// Anything but [`OnMissingOffset::Fail`] gives exactly-once up for the records in between, and says so in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnMissingOffset {
    /// Refuse to run.
    #[default]
    Fail,
    /// Go on at the first offset that is left.
    Earliest,
    /// Go on at the end.
    Latest,
}

/// What to do with a record that does not decode. [`KafkaSource::dead_letters`] is the third way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnError {
    /// Stop the job; the error names topic, partition and offset.
    #[default]
    Fail,
    /// Leave the record out and count it ([`KafkaSource::skipped`]). The log names the first one, and says the number
    /// whenever it has doubled.
    Skip,
}

/// How long a broker holds a request that finds nothing, when `fetch.max.wait.ms` does not say.
const MAX_WAIT: Duration = Duration::from_millis(250);

/// How many records a source has left out ([`OnError::Skip`]), over all its workers and restarts in this process.
#[derive(Clone, Debug, Default)]
pub struct Skipped(Arc<AtomicU64>);

impl Skipped {
    /// The number so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more and returns the number.
    pub(crate) fn one(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Everything a source was told, whatever its format.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) connection: Connection,
    pub(crate) topics: Vec<String>,
    pub(crate) start: Start,
    pub(crate) until_end: bool,
    pub(crate) on_missing_offset: OnMissingOffset,
    pub(crate) on_error: OnError,
    pub(crate) skipped: Skipped,
    pub(crate) group_offsets: Option<String>,
    pub(crate) discovery_interval: Duration,
    pub(crate) retry_deadline: Duration,
    pub(crate) committed: bool,
    pub(crate) partition_bytes: i32,
    pub(crate) read_ahead: usize,
}

/// A replayable source over the partitions of one or several topics.
///
/// ```
/// use mailer_kafka::{KafkaSource, Start};
/// #[derive(serde::Deserialize)]
/// struct Order { id: u64, total: f64 }
///
/// let orders = KafkaSource::new("localhost:9092", "orders").start(Start::Latest).json::<Order>();
/// ```
///
/// Record timestamps become event time. Only committed records are read unless [`KafkaSource::read_uncommitted`] is set.
#[derive(Clone, Debug)]
pub struct KafkaSource<D = Raw> {
    settings: Settings,
    decode: D,
}

impl KafkaSource {
    /// Reads `topic`; its items are [`crate::KafkaRecord`] until a format is chosen.
    pub fn new(bootstrap: impl Into<String>, topic: impl Into<String>) -> Self {
        Self::topics(bootstrap, [topic.into()])
    }

    /// Reads several topics. Their order is part of the job: it decides which worker reads which partition.
    pub fn topics<T: Into<String>>(bootstrap: impl Into<String>, topics: impl IntoIterator<Item = T>) -> Self {
        let settings = Settings {
            connection: Connection::new(bootstrap),
            topics: topics.into_iter().map(Into::into).collect(),
            start: Start::Earliest,
            until_end: false,
            on_missing_offset: OnMissingOffset::Fail,
            on_error: OnError::Fail,
            skipped: Skipped::default(),
            group_offsets: None,
            discovery_interval: Duration::from_secs(60),
            retry_deadline: Duration::from_secs(120),
            committed: true,
            partition_bytes: 1 << 20,
            read_ahead: 8 << 20,
        };
        Self { settings, decode: Raw }
    }

    /// Whether there is an option of this name here; the error says what else to write.
    ///
    /// ```
    /// let error = mailer_kafka::KafkaSource::check_option("fetch.min.byte").unwrap_err();
    /// assert!(error.message().contains("fetch.min.bytes"));
    /// ```
    pub fn check_option(name: &str) -> Result<()> {
        options::check_one(Role::Source, name)
    }
}

impl<D: Decode> KafkaSource<D> {
    /// Where the first start of a job begins; later starts begin at their checkpoint. Default: earliest.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.settings.start = start;
        self
    }

    /// Ends at the offsets that are the end when the job starts, instead of waiting for more.
    #[must_use]
    pub fn until_end(mut self) -> Self {
        self.settings.until_end = true;
        self
    }

    /// What to do when a stored offset has been deleted or truncated away. Default: refuse to run.
    #[must_use]
    pub fn on_missing_offset(mut self, policy: OnMissingOffset) -> Self {
        self.settings.on_missing_offset = policy;
        self
    }

    /// What to do with a record that does not decode. Default: fail.
    #[must_use]
    pub fn on_error(mut self, policy: OnError) -> Self {
        self.settings.on_error = policy;
        self
    }

    /// Counts the records that [`OnError::Skip`] leaves out; ask for it before the source goes to the engine.
    pub fn skipped(&self) -> Skipped {
        self.settings.skipped.clone()
    }

    /// Commits offsets of completed checkpoints to this consumer group, for lag monitors. Never read back.
    #[must_use]
    pub fn group_offsets(mut self, group: impl Into<String>) -> Self {
        self.settings.group_offsets = Some(group.into());
        self
    }

    /// How often new partitions are looked for. Default: 60 s.
    #[must_use]
    pub fn discovery_interval(mut self, interval: Duration) -> Self {
        self.settings.discovery_interval = interval;
        self
    }

    /// How long brokers may be unreachable before the job fails. Default: 120 s.
    #[must_use]
    pub fn retry_deadline(mut self, deadline: Duration) -> Self {
        self.settings.retry_deadline = deadline;
        self
    }

    /// Also reads records of open and aborted transactions.
    #[must_use]
    pub fn read_uncommitted(mut self) -> Self {
        self.settings.committed = false;
        self
    }

    /// Most bytes of one partition in one response. Default: 1 MiB.
    #[must_use]
    pub fn max_partition_fetch_bytes(mut self, bytes: u32) -> Self {
        self.settings.partition_bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        self
    }

    /// Bytes read ahead of the pipeline, per worker; fetching pauses beyond it. Default: 8 MiB.
    #[must_use]
    pub fn read_ahead_bytes(mut self, bytes: usize) -> Self {
        self.settings.read_ahead = bytes;
        self
    }

    connection_setters!(settings.connection, "fetch.min.bytes");

    /// Whether addresses and options can be meant so, without reaching out: a job asks the same when it starts.
    pub fn check(&self) -> Result<()> {
        self.settings.check().map(drop)
    }
}

impl Settings {
    fn check(&self) -> Result<FetchSettings> {
        if self.topics.is_empty() {
            return Err(Error::invalid_plan("a Kafka source needs at least one topic"));
        }
        let twice = self.topics.iter().enumerate().find(|(place, topic)| self.topics[..*place].contains(topic));
        if let Some((_, topic)) = twice {
            return Err(Error::invalid_plan(format!("a Kafka source names the topic \"{topic}\" twice: name it once")));
        }
        self.connection.check(Role::Source)?;
        self.fetch()
    }

    fn fetch(&self) -> Result<FetchSettings> {
        let option = |key: &str| self.connection.option(key);
        let wait = options::number("fetch.max.wait.ms", option("fetch.max.wait.ms"))?.map(Duration::from_millis);
        Ok(FetchSettings {
            committed: self.committed,
            partition_bytes: self.partition_bytes,
            min_bytes: options::number("fetch.min.bytes", option("fetch.min.bytes"))?.unwrap_or(1),
            max_wait: wait.unwrap_or(MAX_WAIT),
            rack: option("client.rack").map(str::to_owned),
        })
    }
}

impl<D: Decode> SourceFactory for KafkaSource<D> {
    type Source = KafkaReader<D>;

    fn build(&self, context: &WorkerContext) -> Result<KafkaReader<D>> {
        let fetch = self.settings.check()?;
        let io = runtime::shared()?;
        let settings = Arc::new(self.settings.clone());
        let connecting = settings.clone();
        let client = io.wait(async move { Client::connect(&connecting.connection).await })?;
        KafkaReader::start(io, Arc::new(client), settings, fetch, self.decode.clone(), context)
    }

    fn describe(&self) -> String {
        format!("kafka {}@{}", self.settings.topics.join(","), self.settings.connection.bootstrap)
    }
}
