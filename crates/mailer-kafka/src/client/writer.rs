//! How to write, inside and outside of transactions.

use crate::batch::{Codec, Settings};
use crate::connection::Connection;
use crate::options;
use mailer_core::{Error, Result};
use std::time::Duration;

/// Bytes in one batch unless `batch.size` says otherwise.
const BATCH: usize = 128 << 10;
/// Bytes in one request unless `max.request.size` says otherwise; a larger batch goes alone.
const REQUEST: usize = 1 << 20;
/// How long an unacknowledged record is tried for unless `delivery.timeout.ms` says otherwise.
const DELIVERY: Duration = Duration::from_secs(120);

/// What the options of a sink say about batches and requests.
#[derive(Clone, Debug)]
pub(crate) struct WriterSettings {
    batch: Settings,
    linger: Duration,
    request_bytes: usize,
    delivery_timeout: Duration,
}

impl WriterSettings {
    /// Reads the options a sink passes through.
    pub(crate) fn of(connection: &Connection) -> Result<Self> {
        let millis = |key: &str, default: Duration| {
            Ok::<_, Error>(options::number(key, connection.option(key))?.map_or(default, Duration::from_millis))
        };
        let bytes =
            |key: &str, default| Ok::<_, Error>(options::number(key, connection.option(key))?.unwrap_or(default));
        let codec = connection.option("compression.type").map(codec).transpose()?.unwrap_or_default();
        Ok(Self {
            batch: Settings { codec, max_bytes: bytes("batch.size", BATCH)? },
            linger: millis("linger.ms", Duration::ZERO)?,
            request_bytes: bytes("max.request.size", REQUEST)?,
            delivery_timeout: millis("delivery.timeout.ms", DELIVERY)?,
        })
    }

    /// The same for a topic that takes no larger batches than `max_bytes`.
    pub(crate) fn within(mut self, max_bytes: usize) -> Self {
        self.batch.max_bytes = max_bytes.min(self.batch.max_bytes);
        self
    }

    /// How batches are made.
    pub(crate) fn batch(&self) -> Settings {
        self.batch
    }

    /// Bytes of one request.
    pub(crate) fn request_bytes(&self) -> usize {
        self.request_bytes
    }

    /// How long a batch that is not full may wait for more.
    pub(crate) fn linger(&self) -> Duration {
        self.linger
    }

    /// How long a batch is tried for.
    pub(crate) fn delivery_timeout(&self) -> Duration {
        self.delivery_timeout
    }
}

fn codec(name: &str) -> Result<Codec> {
    let known = Codec::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, codec)| *codec);
    known.ok_or_else(|| {
        let names = Codec::NAMES.map(|(name, _)| name).join(", ");
        Error::invalid_plan(format!("Kafka option \"compression.type\" is {name:?}; known: {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[(&str, &str)]) -> Result<WriterSettings> {
        let mut connection = Connection::new("localhost:9092");
        options.iter().for_each(|(key, value)| connection.set(*key, *value));
        WriterSettings::of(&connection)
    }

    #[test]
    fn options_are_read_and_the_others_have_defaults() {
        let settings = of(&[("compression.type", "ZSTD"), ("batch.size", "1000"), ("linger.ms", "5")]).unwrap();
        assert_eq!((settings.batch().codec, settings.batch().max_bytes), (Codec::Zstd, 1_000));
        assert_eq!((settings.linger(), settings.request_bytes()), (Duration::from_millis(5), REQUEST));
        assert_eq!(of(&[]).unwrap().delivery_timeout(), DELIVERY);
    }

    #[test]
    fn a_topic_bounds_batches() {
        let settings = of(&[("batch.size", "1000")]).unwrap();
        let within = |limit| settings.clone().within(limit).batch().max_bytes;
        assert_eq!([within(700), within(2_000)], [700, 1_000]);
    }

    #[test]
    fn an_unknown_codec_lists_the_known() {
        let error = of(&[("compression.type", "brotli")]).unwrap_err();
        assert!(error.message().contains("none, gzip, snappy, lz4, zstd"), "{error}");
    }
}
