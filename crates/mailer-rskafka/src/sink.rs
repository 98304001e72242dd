//! The at-least-once sink: acknowledged by all replicas in sync before a checkpoint completes.

mod lanes;

use crate::connection::Connection;
use crate::io;
use crate::partitioner;
use crate::record::OutRecord;
use lanes::Lanes;
use mailer_core::{Batch, Error, Flush, Record, Result, Sink, SinkFactory, WorkerContext};
use rskafka::client::partition::Compression;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Bytes the worker may be ahead of the brokers.
const IN_FLIGHT: usize = 16 << 20;

/// A format of this crate.
pub type Format<T> = fn(&Record<T>) -> Result<OutRecord>;

/// Writes records to a topic, at least once: those since the last checkpoint are written again after a crash, and some are
/// written twice when an answer of the broker is lost.
///
/// ```
/// use mailer_rskafka::KafkaSink;
/// #[derive(serde::Serialize)]
/// struct Total { user: String, total: f64 }
///
/// let totals = KafkaSink::new("localhost:9092", "totals").json().key(|total: &Total| total.user.clone());
/// ```
///
/// Event time becomes the record's timestamp. Records with a key go to the partition the Java client would choose.
#[derive(Clone)]
pub struct KafkaSink<E = ()> {
    connection: Connection,
    in_flight: usize,
    compression: Compression,
    encode: E,
}

impl KafkaSink {
    /// Writes to `topic`; choose a format next: [`KafkaSink::json`], [`KafkaSink::bytes`] or [`KafkaSink::encode`].
    pub fn new(bootstrap: impl Into<String>, topic: impl Into<String>) -> Self {
        let connection = Connection::new(bootstrap.into(), topic.into());
        Self { connection, in_flight: IN_FLIGHT, compression: Compression::NoCompression, encode: () }
    }

    /// Values are written as JSON.
    pub fn json<T: Serialize>(self) -> KafkaSink<Format<T>> {
        self.with(|record| {
            let value = serde_json::to_vec(&record.value);
            let value = value.map_err(|e| Error::user_function("a value could not be written as JSON").caused_by(e))?;
            Ok(OutRecord::value(value))
        })
    }

    /// Values are written as they are: strings, byte vectors.
    pub fn bytes<T: AsRef<[u8]>>(self) -> KafkaSink<Format<T>> {
        self.with(|record| Ok(OutRecord::value(record.value.as_ref())))
    }

    /// `encode` makes the whole record: key, value, headers, timestamp.
    pub fn encode<T, F>(self, encode: F) -> KafkaSink<F>
    where
        F: Fn(&Record<T>) -> Result<OutRecord> + Clone + Send + Sync + 'static,
    {
        self.with(encode)
    }
}

impl<E> KafkaSink<E> {
    /// Gives every record a key.
    pub fn key<T, K, F>(
        self,
        key: F,
    ) -> KafkaSink<impl Fn(&Record<T>) -> Result<OutRecord> + Clone + Send + Sync + 'static>
    where
        K: Into<Vec<u8>>,
        F: Fn(&T) -> K + Clone + Send + Sync + 'static,
        E: Fn(&Record<T>) -> Result<OutRecord> + Clone + Send + Sync + 'static,
    {
        let encode = self.encode.clone();
        self.with(move |record: &Record<T>| Ok(encode(record)?.with_key(key(&record.value))))
    }

    /// The client id brokers see in their logs and quotas. Default: `mailer`.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.connection.client_id = id.into();
        self
    }

    /// How long a write is repeated while no broker can take it, before the job fails. Default: 30 s.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.connection.request_timeout = timeout;
        self
    }

    /// Bytes that may be unacknowledged, per worker; beyond it the pipeline waits. Default: 16 MiB.
    #[must_use]
    pub fn max_in_flight_bytes(mut self, bytes: usize) -> Self {
        self.in_flight = bytes.max(1);
        self
    }

    /// How batches are compressed. Default: not at all.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    fn with<F>(self, encode: F) -> KafkaSink<F> {
        let Self { connection, in_flight, compression, .. } = self;
        KafkaSink { connection, in_flight, compression, encode }
    }
}

impl<T, E> SinkFactory<T> for KafkaSink<E>
where
    T: Send + 'static,
    E: Fn(&Record<T>) -> Result<OutRecord> + Clone + Send + Sync + 'static,
{
    type Sink = KafkaWriter<E>;

    fn build(&self, context: &WorkerContext) -> Result<KafkaWriter<E>> {
        let (io, connection) = (io::shared()?, self.connection.clone());
        let clients = io.wait(async move {
            let client = connection.connect().await?;
            let mut clients = Vec::new();
            for partition in connection.partitions(&client).await? {
                clients.push(connection.partition(&client, partition).await?);
            }
            Ok(clients)
        })?;
        let lanes = Lanes::start(io, clients, &self.connection, self.compression, context.waker.clone());
        Ok(KafkaWriter { encode: self.encode.clone(), lanes, in_flight: self.in_flight, turn: context.worker.into() })
    }

    fn describe(&self) -> String {
        self.connection.describe()
    }
}

impl<E> fmt::Debug for KafkaSink<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink").field("connection", &self.connection).finish_non_exhaustive()
    }
}

/// Writes the records of one worker. Made by [`KafkaSink`].
pub struct KafkaWriter<E> {
    encode: E,
    lanes: Lanes,
    in_flight: usize,
    /// Records without a key go to one partition per batch, in turn.
    turn: usize,
}

impl<T, E> Sink<T> for KafkaWriter<E>
where
    T: Send + 'static,
    E: Fn(&Record<T>) -> Result<OutRecord> + Clone + Send + Sync + 'static,
{
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let mut room = self.lanes.room(self.in_flight)?;
        let mut taken = 0;
        for record in batch.iter() {
            if room == 0 {
                break;
            }
            let out = (self.encode)(record)?;
            let lane = out.key.as_ref().map_or(self.turn, |key| partitioner::of_key(key, self.lanes.count()));
            room = room.saturating_sub(self.lanes.add(lane, out.into_record(record.timestamp.0)?));
            taken += 1;
        }
        batch.drain(..taken);
        self.turn += 1;
        self.lanes.send(!batch.is_empty())
    }

    fn flush(&mut self) -> Result<Flush> {
        self.lanes.flush()
    }
}

impl<E> fmt::Debug for KafkaWriter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaWriter").finish_non_exhaustive()
    }
}
