//! The exactly-once sink: output is staged with the checkpoint and published in one short transaction, with a marker.
//!
//! Reading order: [`segment`] is what is staged; [`limits`] is what staging must refuse; [`stager`] does both; [`fresh`] is
//! what need not be read back; [`marker`] is how the cluster tells what was published, [`newest`] how it is read; [`claim`] fences and opens; [`publisher`]
//! publishes.

mod claim;
mod fresh;
mod limits;
mod marker;
mod newest;
mod old_segment;
mod publisher;
mod recorded;
mod segment;
mod stager;
mod transmit;

pub(crate) use limits::{WatchedLimits, poison};
pub(crate) use segment::Segment as Staged;
pub use stager::KafkaStager;

use crate::client::{Client, WriterSettings};
use crate::connection::Connection;
use crate::dead_letter::AsDeadLetter;
use crate::encode::{AsBytes, AsJson, AsProtobuf, AsRecord, Custom, Encode, OrTombstone, Pairs, Unformatted, WithKey};
use crate::options::Role;
use crate::record::OutRecord;
use crate::runtime;
use crate::security::Security;
use claim::Claim;
use fresh::Fresh;
use mailer_core::{ExactlyOnceSink, OwnerEpoch, Publisher, Record, RecordedTarget, Result, StagerContext, TargetName};
use publisher::KafkaPublisher;
use recorded::Recorded;
use std::sync::Arc;
use std::time::Duration;

/// Writes records to a topic exactly once, for readers that use `isolation.level=read_committed`.
///
/// ```
/// use mailer_kafka::TransactionalKafkaSink;
/// #[derive(serde::Serialize)]
/// struct Total { user: String, total: f64 }
///
/// let totals = TransactionalKafkaSink::new("localhost:9092", "totals", "order-totals")
///     .json()
///     .key(|total: &Total| total.user.clone());
/// ```
///
/// The transactional id names the output across restarts: it must stay the same, and no other job may use it. Sinks of a
/// job with the same bootstrap servers and the same id publish in one transaction.
#[derive(Clone, Debug)]
pub struct TransactionalKafkaSink<E = Unformatted> {
    connection: Connection,
    topic: String,
    transactional_id: String,
    timeout: Duration,
    encode: E,
    fresh: Arc<Fresh>,
}

impl TransactionalKafkaSink {
    /// Writes to `topic`; choose a format next: [`TransactionalKafkaSink::json`], [`TransactionalKafkaSink::bytes`] or
    /// [`TransactionalKafkaSink::encode`].
    pub fn new(bootstrap: impl Into<String>, topic: impl Into<String>, transactional_id: impl Into<String>) -> Self {
        Self {
            connection: Connection::new(bootstrap),
            topic: topic.into(),
            transactional_id: transactional_id.into(),
            timeout: Duration::from_secs(60),
            encode: Unformatted,
            fresh: Arc::default(),
        }
    }
}

impl<E> TransactionalKafkaSink<E> {
    /// Values are written as JSON.
    pub fn json(self) -> TransactionalKafkaSink<AsJson> {
        self.map(|_| AsJson)
    }

    /// Values are written as they are: strings, byte vectors.
    pub fn bytes(self) -> TransactionalKafkaSink<AsBytes> {
        self.map(|_| AsBytes)
    }

    /// Values are written as protobuf messages.
    pub fn protobuf(self) -> TransactionalKafkaSink<AsProtobuf> {
        self.map(|_| AsProtobuf)
    }

    /// Items are [`crate::KafkaRecord`]s, as a source without a format makes them: written with their key, value and headers.
    /// The key chooses the partition, event time is the timestamp.
    ///
    /// ```
    /// use mailer_kafka::{KafkaSource, TransactionalKafkaSink};
    /// let orders = KafkaSource::new("localhost:9092", "orders");
    /// let mirror = TransactionalKafkaSink::new("localhost:9092", "orders-mirror", "mirror-1").records();
    /// ```
    pub fn records(self) -> TransactionalKafkaSink<AsRecord> {
        self.map(|_| AsRecord)
    }

    /// Items are [`crate::DeadLetter`]s, as [`crate::KafkaSource::dead_letters`] makes them: written with key, value and
    /// headers of the record, and with its provenance in further headers.
    pub fn dead_letters(self) -> TransactionalKafkaSink<AsDeadLetter> {
        self.map(|_| AsDeadLetter)
    }

    /// Items are `Option`s; `None` is written as a tombstone. Call it behind `json`, `bytes` or `protobuf`.
    pub fn or_tombstone(self) -> TransactionalKafkaSink<OrTombstone<E>> {
        self.map(OrTombstone)
    }

    /// Items are pairs `(Option<K>, Option<V>)`: the key in this format, the value in the sink's; `None` is Kafka's null.
    ///
    /// ```
    /// use mailer_kafka::{AsBytes, TransactionalKafkaSink};
    /// let prices = TransactionalKafkaSink::new("localhost:9092", "prices", "prices-1").json().pairs(AsBytes); // (Option<String>, Option<f64>)
    /// ```
    pub fn pairs<K>(self, key: K) -> TransactionalKafkaSink<Pairs<K, E>> {
        self.map(|value| Pairs { key, value })
    }

    /// `encode` makes the whole record: key, value, headers, timestamp, partition.
    pub fn encode<T, F>(self, encode: F) -> TransactionalKafkaSink<Custom<F>>
    where
        F: Fn(&Record<T>) -> Result<OutRecord> + Clone + Send + Sync + 'static,
    {
        self.map(|_| Custom(encode))
    }

    /// Gives every record a key.
    pub fn key<T, K, F>(self, key: F) -> TransactionalKafkaSink<WithKey<E, F>>
    where
        K: AsRef<[u8]>,
        F: Fn(&T) -> K + Clone + Send + Sync + 'static,
    {
        self.map(|encode| WithKey { encode, key })
    }

    /// The client id brokers see in their logs and quotas. Default: `mailer`.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.connection.client_id = id.into();
        self
    }

    /// How long one request may take, and how long the start waits for a broker. Default: 30 s.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.connection.request_timeout = timeout;
        self
    }

    /// How long one publish may take: Kafka's `transaction.timeout.ms`. Default: 60 s. The brokers'
    /// `transaction.max.timeout.ms` bounds it.
    #[must_use]
    pub fn transaction_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// TLS and SASL. Default: neither. The same can be said with options such as `security.protocol`, not with both.
    #[must_use]
    pub fn security(mut self, security: Security) -> Self {
        self.connection.security = Some(security);
        self
    }

    /// Passes a Kafka property through, e.g. `compression.type`. Unknown names, and names a setter owns, are refused
    /// when the job starts.
    #[must_use]
    pub fn option(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.connection.set(key, value);
        self
    }

    fn map<F>(self, change: impl FnOnce(E) -> F) -> TransactionalKafkaSink<F> {
        let Self { connection, topic, transactional_id, timeout, encode, fresh } = self;
        TransactionalKafkaSink { connection, topic, transactional_id, timeout, encode: change(encode), fresh }
    }
}

impl<T: Send + 'static, E: Encode<T>> ExactlyOnceSink<T> for TransactionalKafkaSink<E> {
    type Stager = KafkaStager<T, E>;

    fn target(&self, _job: &str) -> TargetName {
        TargetName(format!("kafka {} {}", self.connection.bootstrap, self.transactional_id))
    }

    fn stager(&self, context: &StagerContext) -> Result<KafkaStager<T, E>> {
        self.connection.check(Role::TransactionalSink)?;
        let settings = WriterSettings::of(&self.connection)?.batch();
        let io = runtime::shared()?;
        let (connection, topic) = (self.connection.clone(), self.topic.clone());
        let limits = io.wait(async move {
            let client = Arc::new(Client::connect(&connection).await?);
            WatchedLimits::read(client, topic).await
        })?;
        let (to, staged) = ((self.topic.clone(), settings), (self.encode.clone(), self.fresh.clone()));
        Ok(KafkaStager::new(context.clone(), to, staged, limits, io))
    }

    fn publisher(&self, job: &str, epoch: OwnerEpoch, recorded: Option<&RecordedTarget>) -> Result<Box<dyn Publisher>> {
        self.connection.check(Role::TransactionalSink)?;
        let writer = WriterSettings::of(&self.connection)?;
        let recorded = match recorded {
            Some(recorded) => Recorded::decode(recorded)?,
            None => Recorded::fresh(&self.connection.bootstrap, &self.transactional_id, job)?,
        };
        let claim = Claim { connection: self.connection.clone(), writer, timeout: self.timeout, recorded };
        Ok(Box::new(KafkaPublisher::new(runtime::shared()?, claim, epoch, self.fresh.clone())))
    }

    fn describe(&self) -> String {
        format!("kafka {}@{} exactly once as \"{}\"", self.topic, self.connection.bootstrap, self.transactional_id)
    }
}
