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
use crate::encode::{Encode, Unformatted};
use crate::options::{self, Role};
use crate::runtime;
use crate::setters::{connection_setters, format_setters};
use claim::Claim;
use fresh::Fresh;
use mailer_core::{ExactlyOnceSink, OwnerEpoch, Publisher, RecordedTarget, Result, StagerContext, TargetName};
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

    /// Whether there is an option of this name here; the error says what else to write.
    ///
    /// ```
    /// let error = mailer_kafka::TransactionalKafkaSink::check_option("transaction.timeout.ms").unwrap_err();
    /// assert!(error.message().contains("`transaction_timeout`"));
    /// ```
    pub fn check_option(name: &str) -> Result<()> {
        options::check_one(Role::TransactionalSink, name)
    }
}

impl<E> TransactionalKafkaSink<E> {
    format_setters!(TransactionalKafkaSink, r#"TransactionalKafkaSink::new("localhost:9092", "mirror", "mirror-1")"#);
    connection_setters!(connection, "compression.type");

    /// How long one publish may take: Kafka's `transaction.timeout.ms`. Default: 60 s. The brokers'
    /// `transaction.max.timeout.ms` bounds it.
    #[must_use]
    pub fn transaction_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Whether addresses and options can be meant so, without reaching out: a job asks the same when it starts.
    pub fn check(&self) -> Result<()> {
        self.settings().map(drop)
    }

    fn settings(&self) -> Result<WriterSettings> {
        self.connection.check(Role::TransactionalSink)?;
        WriterSettings::of(&self.connection)
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
        let settings = self.settings()?.batch();
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
        let writer = self.settings()?;
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
