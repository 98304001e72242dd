//! The at-least-once sink: idempotent writing, acknowledged by all replicas in sync, before a checkpoint completes.

mod answers;
#[cfg(test)]
mod faults;
mod outbox;
mod progress;
mod pump;
mod sender;

use crate::client::{Client, WriterSettings};
use crate::connection::Connection;
use crate::encode::{Encode, Encoded, Unformatted};
use crate::options::{self, Role};
use crate::partitioner::{self, Spread};
use crate::runtime;
use crate::setters::{connection_setters, format_setters};
use crate::transactional::{WatchedLimits, poison};
use mailer_core::{Batch, Clock, Flush, Result, Sink, SinkFactory, WorkerContext};
use pump::Pump;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Bytes the worker may be ahead of the brokers.
const IN_FLIGHT: usize = 16 << 20;

/// Writes records to a topic, at least once: after a crash, those since the last checkpoint are written again.
///
/// ```
/// use mailer_kafka::KafkaSink;
/// #[derive(serde::Serialize)]
/// struct Total { user: String, total: f64 }
///
/// let totals = KafkaSink::new("localhost:9092", "totals").json().key(|total: &Total| total.user.clone());
/// ```
///
/// Event time becomes the record's timestamp. Records with a key go to the partition the Java client would choose; partitions
/// that are added while the job runs are used within a minute, or sooner where `metadata.max.age.ms` says so. A topic that is
/// deleted fails the job; one that was deleted and created again is written to, since an output is a topic by its name.
///
/// A broker that dies forgets producers whose newest record is dated more than a day ago (its `producer.id.expiration.ms`,
/// counted from timestamps). Of such records, what it had not acknowledged before may be written twice, too. That does not
/// concern [`crate::TransactionalKafkaSink`].
#[derive(Clone, Debug)]
pub struct KafkaSink<E = Unformatted> {
    connection: Connection,
    topic: String,
    in_flight: usize,
    encode: E,
}

impl KafkaSink {
    /// Writes to `topic`; choose a format next: [`KafkaSink::json`], [`KafkaSink::bytes`] or [`KafkaSink::encode`].
    pub fn new(bootstrap: impl Into<String>, topic: impl Into<String>) -> Self {
        Self { connection: Connection::new(bootstrap), topic: topic.into(), in_flight: IN_FLIGHT, encode: Unformatted }
    }

    /// Whether there is an option of this name here; the error says what else to write.
    ///
    /// ```
    /// let error = mailer_kafka::KafkaSink::check_option("compression.typ").unwrap_err();
    /// assert!(error.message().contains("compression.type"));
    /// ```
    pub fn check_option(name: &str) -> Result<()> {
        options::check_one(Role::Sink, name)
    }
}

impl<E> KafkaSink<E> {
    format_setters!(KafkaSink, r#"KafkaSink::new("localhost:9092", "mirror")"#);
    connection_setters!(connection, "compression.type");

    /// Bytes that may be unacknowledged, per worker; beyond it the pipeline waits. Default: 16 MiB.
    #[must_use]
    pub fn max_in_flight_bytes(mut self, bytes: usize) -> Self {
        self.in_flight = bytes;
        self
    }

    /// Whether addresses and options can be meant so, without reaching out: a job asks the same when it starts.
    pub fn check(&self) -> Result<()> {
        self.settings().map(drop)
    }

    fn settings(&self) -> Result<WriterSettings> {
        self.connection.check(Role::Sink)?;
        WriterSettings::of(&self.connection)
    }

    fn map<F>(self, change: impl FnOnce(E) -> F) -> KafkaSink<F> {
        let Self { connection, topic, in_flight, encode } = self;
        KafkaSink { connection, topic, in_flight, encode: change(encode) }
    }
}

impl<T: Send + 'static, E: Encode<T>> SinkFactory<T> for KafkaSink<E> {
    type Sink = KafkaWriter<T, E>;

    fn build(&self, context: &WorkerContext) -> Result<KafkaWriter<T, E>> {
        let settings = self.settings()?;
        let io = runtime::shared()?;
        let (connection, topic) = (self.connection.clone(), self.topic.clone());
        let (client, limits) = io.wait(async move {
            let client = Arc::new(Client::connect(&connection).await?);
            Ok((client.clone(), WatchedLimits::read(client, topic).await?))
        })?;
        // Records of an ordinary size must not be refused for the company they are in.
        let settings = settings.within(limits.now().max_bytes);
        let pump = Pump::start(io, client, self.topic.clone(), &settings, (self.in_flight, context.waker.clone()));
        let spread = Spread::new(context.worker);
        Ok(KafkaWriter {
            encode: self.encode.clone(),
            scratch: Encoded::default(),
            topic: self.topic.clone(),
            limits,
            spread,
            clock: context.clock.clone(),
            pump,
            item: PhantomData,
        })
    }

    fn describe(&self) -> String {
        format!("kafka {}@{}", self.topic, self.connection.bootstrap)
    }
}

/// Writes the records of one worker. Made by [`KafkaSink`].
pub struct KafkaWriter<T, E> {
    encode: E,
    scratch: Encoded,
    topic: String,
    /// How many partitions there are may change.
    limits: Arc<WatchedLimits>,
    spread: Spread,
    clock: Arc<dyn Clock>,
    pump: Arc<Pump>,
    item: PhantomData<fn(T)>,
}

impl<T: Send + 'static, E: Encode<T>> Sink<T> for KafkaWriter<T, E> {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let Self { encode, scratch, topic, limits, spread, clock, pump, .. } = self;
        let partitions = limits.now().partitions;
        let mut records = batch.iter();
        let next = |scratch: &mut Encoded| {
            let Some(record) = records.next() else { return Ok(None) };
            scratch.begin(record.timestamp.0);
            encode.encode(record, scratch)?;
            partitioner::choose(scratch, partitions, spread).map(Some).map_err(|why| poison(topic, &why))
        };
        let taken = pump.append(next, scratch, clock.wall().0)?;
        batch.drain(..taken);
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        self.pump.flush()
    }
}

impl<T, E> Drop for KafkaWriter<T, E> {
    fn drop(&mut self) {
        self.pump.close();
    }
}

impl<T, E: fmt::Debug> fmt::Debug for KafkaWriter<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaWriter").field("encode", &self.encode).finish_non_exhaustive()
    }
}
