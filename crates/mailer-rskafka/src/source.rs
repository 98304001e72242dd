//! Reads a topic: partitions are assigned by the engine, fetched from offsets, never by a consumer group.

mod fetcher;
mod instance;

pub use instance::KafkaReader;

use crate::connection::Connection;
use crate::io;
use crate::record::KafkaRecord;
use mailer_core::{Error, Result, SourceFactory, WorkerContext};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Resume here: the next offset to hand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The next offset.
    pub offset: i64,
}

/// Where the first start of a job begins.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Start {
    /// At the first record that is left.
    #[default]
    Earliest,
    /// At the end: only what is written from now on.
    Latest,
    /// At these offsets, by partition; partitions that are not named begin at the first record.
    Offsets(BTreeMap<i32, i64>),
}

/// Everything a source was told, whatever its format.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) connection: Connection,
    pub(crate) start: Start,
    pub(crate) until_end: bool,
    pub(crate) fetch_bytes: i32,
}

/// A replayable source over the partitions of one topic that no transaction writes to.
///
/// ```
/// use mailer_rskafka::{KafkaSource, Start};
/// #[derive(serde::Deserialize)]
/// struct Order { id: u64, total: f64 }
///
/// let orders = KafkaSource::new("localhost:9092", "orders").start(Start::Latest).json::<Order>();
/// ```
///
/// Record timestamps become event time. A record that does not decode fails the job, with its topic, partition and offset.
#[derive(Clone)]
pub struct KafkaSource<D = fn(KafkaRecord) -> Result<KafkaRecord>> {
    settings: Settings,
    decode: D,
}

impl KafkaSource {
    /// Reads `topic`; its items are [`KafkaRecord`] until a format is chosen.
    pub fn new(bootstrap: impl Into<String>, topic: impl Into<String>) -> Self {
        let connection = Connection::new(bootstrap.into(), topic.into());
        let settings = Settings { connection, start: Start::Earliest, until_end: false, fetch_bytes: 1 << 20 };
        Self { settings, decode: Ok }
    }
}

impl<D> KafkaSource<D> {
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

    /// The client id brokers see in their logs and quotas. Default: `mailer`.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.settings.connection.client_id = id.into();
        self
    }

    /// How long requests are repeated while no broker can answer, before the job fails. Default: 30 s.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connection.request_timeout = timeout;
        self
    }

    /// Most bytes of one response. Up to three responses are kept per partition. Default: 1 MiB.
    #[must_use]
    pub fn max_partition_fetch_bytes(mut self, bytes: u32) -> Self {
        self.settings.fetch_bytes = i32::try_from(bytes).unwrap_or(i32::MAX).max(1);
        self
    }

    /// Items are values parsed as JSON; a tombstone is an error.
    pub fn json<T: DeserializeOwned + Send + 'static>(self) -> KafkaSource<fn(KafkaRecord) -> Result<T>> {
        self.with(|record| {
            serde_json::from_slice(&value(record)?)
                .map_err(|e| Error::user_function("the value is not the expected JSON").caused_by(e))
        })
    }

    /// Items are values as UTF-8 text; a tombstone is an error.
    pub fn string(self) -> KafkaSource<fn(KafkaRecord) -> Result<String>> {
        self.with(|record| {
            String::from_utf8(value(record)?)
                .map_err(|e| Error::user_function("the value is not UTF-8 text").caused_by(e))
        })
    }

    /// Items are what `decode` makes of each record.
    pub fn map<T, F>(self, decode: F) -> KafkaSource<F>
    where
        T: Send + 'static,
        F: Fn(KafkaRecord) -> Result<T> + Clone + Send + Sync + 'static,
    {
        KafkaSource { settings: self.settings, decode }
    }

    fn with<T>(self, decode: fn(KafkaRecord) -> Result<T>) -> KafkaSource<fn(KafkaRecord) -> Result<T>> {
        KafkaSource { settings: self.settings, decode }
    }
}

fn value(record: KafkaRecord) -> Result<Vec<u8>> {
    record
        .value
        .ok_or_else(|| Error::user_function("the value is null (a tombstone); decode with `map` to handle tombstones"))
}

impl<T, D> SourceFactory for KafkaSource<D>
where
    T: Send + 'static,
    D: Fn(KafkaRecord) -> Result<T> + Clone + Send + Sync + 'static,
{
    type Source = KafkaReader<D>;

    fn build(&self, context: &WorkerContext) -> Result<KafkaReader<D>> {
        let (io, connection) = (io::shared()?, self.settings.connection.clone());
        let (client, partitions) = io.wait(async move {
            let client = connection.connect().await?;
            let partitions = connection.partitions(&client).await?;
            Ok((client, partitions))
        })?;
        Ok(KafkaReader::new(io, client, partitions, self.settings.clone(), self.decode.clone(), context.waker.clone()))
    }

    fn describe(&self) -> String {
        self.settings.connection.describe()
    }
}

impl<D> fmt::Debug for KafkaSource<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSource").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::codec;

    /// Checkpoints hold these bytes.
    #[test]
    fn the_stored_form_of_a_position_stays() {
        let mut bytes = Vec::new();
        codec::encode(&Position { offset: 42 }, &mut bytes).unwrap();
        assert_eq!(bytes, [84]);
    }

    #[test]
    fn formats_say_what_is_wrong() {
        let record = |value: Option<&str>| KafkaRecord {
            topic: "orders".into(),
            partition: 0,
            offset: 0,
            timestamp: 0,
            key: None,
            value: value.map(Into::into),
            headers: BTreeMap::new(),
        };
        let json = KafkaSource::new("a:1", "orders").json::<u32>().decode;
        assert_eq!(json(record(Some("7"))).unwrap(), 7);
        assert!(json(record(Some("seven"))).unwrap_err().message().contains("JSON"));
        let text = KafkaSource::new("a:1", "orders").string().decode;
        assert_eq!(text(record(Some("7"))).unwrap(), "7");
        assert!(text(record(None)).unwrap_err().message().contains("tombstone"));
    }
}
