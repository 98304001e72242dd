//! What a topic takes. A record it would never take must be refused while it is staged: once the checkpoint is decided,
//! there is no way to say no.

use crate::client::{Cause, Client, Failure};
use crate::encode::Encoded;
use crate::topics;
use mailer_core::{Error, Result, Timestamp};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often limits are read again, where `metadata.max.age.ms` does not ask for more.
const REFRESH: Duration = Duration::from_secs(60);

const MAX_BYTES: &str = "max.message.bytes";
const AFTER: &str = "message.timestamp.after.max.ms";
const BEFORE: &str = "message.timestamp.before.max.ms";
const STAMP: &str = "message.timestamp.type";
const POLICY: &str = "cleanup.policy";

/// The limits of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) partitions: u32,
    pub(crate) max_bytes: usize,
    after: i64,
    before: i64,
    compacted: bool,
}

impl Limits {
    /// Kafka's own defaults where the broker does not tell.
    fn of(partitions: u32, settings: &HashMap<String, String>) -> Self {
        let number = |key: &str, default: i64| settings.get(key).and_then(|text| text.parse().ok()).unwrap_or(default);
        let is = |key: &str, word: &str| settings.get(key).is_some_and(|text| text.contains(word));
        // The broker's own clock is used: event time is not looked at.
        let unchecked = is(STAMP, "LogAppendTime");
        let window = |key: &str, default: i64| if unchecked { i64::MAX } else { number(key, default) };
        Self {
            partitions,
            max_bytes: usize::try_from(number(MAX_BYTES, 1_048_588)).unwrap_or(usize::MAX),
            after: window(AFTER, 3_600_000),
            before: window(BEFORE, i64::MAX),
            compacted: is(POLICY, "compact"),
        }
    }

    /// Refuses a record that the topic would refuse.
    pub(crate) fn check(&self, record: &Encoded, now: Timestamp) -> std::result::Result<(), String> {
        let size = batch_size(record);
        if size > self.max_bytes {
            return Err(format!("it takes {size} bytes, and {MAX_BYTES} is {}", self.max_bytes));
        }
        if self.compacted && record.key().is_none() {
            return Err(format!("it has no key, and {POLICY} is compact: give the sink a `key`"));
        }
        self.check_time(record.timestamp(), now.0)
    }

    fn check_time(&self, timestamp: i64, now: i64) -> std::result::Result<(), String> {
        // Written with the time of publishing.
        if timestamp < 0 {
            return Ok(());
        }
        if timestamp.saturating_sub(now) > self.after {
            return Err(format!(
                "its timestamp {timestamp} is {} ms ahead of the clock, and {AFTER} is {}",
                timestamp.saturating_sub(now),
                self.after
            ));
        }
        if now.saturating_sub(timestamp) > self.before {
            return Err(format!(
                "its timestamp {timestamp} is {} ms behind the clock, and {BEFORE} is {}",
                now.saturating_sub(timestamp),
                self.before
            ));
        }
        Ok(())
    }
}

/// The size of a batch that holds this record alone, uncompressed: what the broker compares with its limit.
fn batch_size(record: &Encoded) -> usize {
    const HEADER: usize = 61;
    let part = |part: Option<&[u8]>| part.map_or(1, |bytes| varint_size(bytes.len()) + bytes.len());
    let header = |(name, value): &(String, Option<bytes::Bytes>)| part(Some(name.as_bytes())) + part(value.as_deref());
    let body = 3
        + part(record.key())
        + part(record.value())
        + varint_size(record.headers().len())
        + record.headers().iter().map(header).sum::<usize>();
    HEADER + varint_size(body) + body
}

/// Of a zigzag varint.
fn varint_size(value: usize) -> usize {
    let bits = usize::BITS - (value << 1).leading_zeros();
    bits.max(1).div_ceil(7) as usize
}

/// Limits that are read again from time to time, for as long as somebody uses them.
#[derive(Debug)]
pub(crate) struct WatchedLimits(Mutex<Limits>);

impl WatchedLimits {
    /// Reads them; a topic that is not there is an error. Must run on the connector's runtime.
    pub(crate) async fn read(client: Arc<Client>, topic: String) -> Result<Arc<Self>> {
        let found =
            look(&client, &topic).await.map_err(|f| f.into_error(format!("reading Kafka topic \"{topic}\"")))?;
        let limits = found.ok_or_else(|| topics::missing(client.bootstrap(), &topic))?;
        let watched = Arc::new(Self(Mutex::new(limits)));
        tokio::spawn(refresh(Arc::downgrade(&watched), client, topic));
        Ok(watched)
    }

    pub(crate) fn now(&self) -> Limits {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn refresh(watched: Weak<WatchedLimits>, client: Arc<Client>, topic: String) {
    loop {
        tokio::time::sleep(REFRESH.min(client.net().metadata_max_age())).await;
        let found = look(&client, &topic).await;
        let Some(watched) = watched.upgrade() else { return };
        match found {
            Ok(Some(limits)) => *watched.0.lock().unwrap_or_else(PoisonError::into_inner) = limits,
            Ok(None) => tracing::warn!(topic, "the output topic is not in the cluster any more"),
            Err(failure) => tracing::warn!(topic, %failure, "the limits of the output topic could not be read again"),
        }
    }
}

async fn look(client: &Client, topic: &str) -> std::result::Result<Option<Limits>, Failure> {
    let Some(found) = client.topic(topic).await? else { return Ok(None) };
    let partitions = found.partitions.len() as u32;
    match client.topic_settings(topic, &[MAX_BYTES, AFTER, BEFORE, STAMP, POLICY]).await {
        Ok(settings) => Ok(Some(Limits::of(partitions, &settings))),
        Err(failure) if matches!(failure.cause, Cause::Denied | Cause::Unsupported) => {
            tracing::warn!(topic, %failure, "the topic's settings cannot be read: Kafka's defaults are assumed");
            Ok(Some(Limits::of(partitions, &HashMap::new())))
        }
        Err(failure) => Err(failure),
    }
}

/// The largest batch a topic takes, where the broker tells.
pub(crate) async fn max_bytes(client: &Client, topic: &str) -> std::result::Result<Option<usize>, Failure> {
    match client.topic_settings(topic, &[MAX_BYTES]).await {
        Ok(settings) => Ok(settings.get(MAX_BYTES).and_then(|text| text.parse().ok())),
        Err(failure) if matches!(failure.cause, Cause::Denied | Cause::Unsupported) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The error of a refused record.
pub(crate) fn poison(topic: &str, why: &str) -> Error {
    Error::user_function(format!("a record cannot be written to Kafka topic \"{topic}\": {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::OutRecord;

    const NOW: Timestamp = Timestamp(10_000_000);

    fn limits(settings: &[(&str, &str)]) -> Limits {
        Limits::of(3, &settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    fn check(limits: &Limits, timestamp: i64, record: OutRecord) -> std::result::Result<(), String> {
        let mut encoded = Encoded::default();
        encoded.begin(timestamp);
        encoded.copy(record);
        limits.check(&encoded, NOW)
    }

    #[test]
    fn size_is_checked_to_the_byte() {
        let mut encoded = Encoded::default();
        encoded.begin(0);
        encoded.copy(OutRecord::value(vec![0; 100]));
        // 61 header, then length (2), attributes, timestamp and offset delta (3), null key (1), length (2) and value, no headers (1)
        assert_eq!(batch_size(&encoded), 61 + 2 + 3 + 1 + 2 + 100 + 1);
        let exact = limits(&[(MAX_BYTES, "170")]);
        check(&exact, 0, OutRecord::value(vec![0; 100])).unwrap();
        let why = check(&exact, 0, OutRecord::value(vec![0; 101])).unwrap_err();
        assert!(why.contains("171 bytes") && why.contains("max.message.bytes is 170"), "{why}");
    }

    #[test]
    fn times_the_broker_refuses_are_refused() {
        let default = limits(&[]);
        check(&default, NOW.0 + 3_600_000, OutRecord::value("v")).unwrap();
        let why = check(&default, NOW.0 + 3_600_001, OutRecord::value("v")).unwrap_err();
        assert!(why.contains("message.timestamp.after.max.ms is 3600000"), "{why}");
        check(&default, 0, OutRecord::value("v")).unwrap();
        assert!(check(&limits(&[(BEFORE, "1000")]), 0, OutRecord::value("v")).is_err());
        check(&limits(&[(STAMP, "LogAppendTime")]), i64::MAX, OutRecord::value("v")).unwrap();
        check(&default, i64::MIN, OutRecord::value("v")).unwrap();
    }

    #[test]
    fn a_compacted_topic_needs_keys() {
        let compacted = limits(&[(POLICY, "compact,delete")]);
        assert!(check(&compacted, 0, OutRecord::value("v")).unwrap_err().contains("no key"));
        check(&compacted, 0, OutRecord::value("v").with_key("")).unwrap();
    }
}
