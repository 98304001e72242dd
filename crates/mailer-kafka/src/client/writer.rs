//! Writing outside of transactions: idempotent, acknowledged by all replicas in sync.

use super::{Client, Failure};
use crate::connection::Connection;
use crate::options;
use crate::record::OutRecord;
use krafka::producer::{DeliveryHandle, Producer, ProducerBuilder};
use krafka::{Compression, Record};
use mailer_core::Error;
use std::time::Duration;

/// Bytes in one batch unless `batch.size` says otherwise.
const BATCH: usize = 128 << 10;

/// How to write, inside and outside of transactions.
#[derive(Clone, Debug)]
pub(crate) struct WriterSettings {
    batch_bytes: usize,
    linger: Option<Duration>,
    compression: Option<Compression>,
    buffer_bytes: Option<usize>,
    request_bytes: Option<usize>,
    delivery_timeout: Option<Duration>,
}

impl WriterSettings {
    /// Reads the options a sink passes through.
    pub(crate) fn of(connection: &Connection) -> mailer_core::Result<Self> {
        let millis =
            |key: &str| Ok::<_, Error>(options::number(key, connection.option(key))?.map(Duration::from_millis));
        let bytes = |key: &str| options::number(key, connection.option(key));
        Ok(Self {
            batch_bytes: bytes("batch.size")?.unwrap_or(BATCH),
            linger: millis("linger.ms")?,
            compression: connection.option("compression.type").map(compression).transpose()?,
            buffer_bytes: bytes("buffer.memory")?,
            request_bytes: bytes("max.request.size")?,
            delivery_timeout: millis("delivery.timeout.ms")?,
        })
    }

    /// Makes batches no larger than a topic takes; whether they were.
    pub(crate) fn shrink_batches(&mut self, limit: usize) -> bool {
        let larger = self.batch_bytes > limit;
        self.batch_bytes = self.batch_bytes.min(limit);
        larger
    }

    pub(super) fn apply(&self, mut builder: ProducerBuilder) -> ProducerBuilder {
        builder = builder.batch_size(self.batch_bytes);
        if let Some(linger) = self.linger {
            builder = builder.linger(linger);
        }
        if let Some(compression) = self.compression {
            builder = builder.compression(compression);
        }
        if let Some(bytes) = self.buffer_bytes {
            builder = builder.buffer_memory(bytes);
        }
        if let Some(bytes) = self.request_bytes {
            builder = builder.max_request_size(bytes);
        }
        builder.metrics_push(false)
    }
}

fn compression(name: &str) -> mailer_core::Result<Compression> {
    match name.to_ascii_lowercase().as_str() {
        "none" => Ok(Compression::None),
        "gzip" => Ok(Compression::Gzip),
        "snappy" => Ok(Compression::Snappy),
        "lz4" => Ok(Compression::Lz4),
        "zstd" => Ok(Compression::Zstd),
        other => Err(Error::invalid_plan(format!(
            "Kafka option \"compression.type\" is {other:?}; known: none, gzip, snappy, lz4, zstd"
        ))),
    }
}

/// An idempotent producer.
pub(crate) struct Writer(Producer);

/// A record on its way.
pub(crate) struct Delivery(DeliveryHandle);

impl Client {
    pub(crate) async fn writer(&self, settings: &WriterSettings) -> Result<Writer, Failure> {
        let mut builder = settings.apply(self.krafka().await?.producer());
        if let Some(timeout) = settings.delivery_timeout {
            builder = builder.delivery_timeout(timeout);
        }
        Ok(Writer(builder.build().await?))
    }
}

impl Writer {
    /// Queues a record in order; waits while the buffer is full.
    pub(crate) async fn send(&self, topic: &str, record: OutRecord) -> Result<Delivery, Failure> {
        Ok(Delivery(self.0.enqueue(outgoing(topic, record)).await?))
    }

    /// Sends what is queued without waiting for full batches.
    pub(crate) async fn flush(&self) -> Result<(), Failure> {
        Ok(self.0.flush().await?)
    }

    pub(crate) async fn close(&self) {
        let _ = self.0.close().await;
    }
}

impl Delivery {
    pub(super) fn new(handle: DeliveryHandle) -> Self {
        Self(handle)
    }

    /// Waits for the broker.
    pub(crate) async fn done(self) -> Result<(), Failure> {
        let _ = self.0.await?;
        Ok(())
    }
}

/// Our record in the client's words. A negative timestamp means the time of writing.
pub(super) fn outgoing(topic: &str, record: OutRecord) -> Record {
    let OutRecord { key, value, timestamp, headers, partition } = record;
    let mut out = Record::new(topic, bytes::Bytes::new());
    out.key = key;
    out.value = value;
    out.partition = partition;
    out.timestamp = timestamp.filter(|timestamp| *timestamp >= 0);
    out.headers = headers;
    out
}
