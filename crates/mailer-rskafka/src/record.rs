//! What is read from Kafka and what is written to it, as the user sees it.

use mailer_core::{Error, Result};
use rskafka::chrono::DateTime;
use rskafka::record::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One record as it stands in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaRecord {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// Milliseconds since the Unix epoch, as the producer set them.
    pub timestamp: i64,
    /// The key; `None` is Kafka's null.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// The headers; of several with one name rskafka keeps the last.
    pub headers: BTreeMap<String, Vec<u8>>,
}

/// One record to be written.
///
/// ```
/// use mailer_rskafka::OutRecord;
/// let record = OutRecord::value("paid").with_key("order-7");
/// assert_eq!(record.timestamp, None, "the event time");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutRecord {
    /// The key; decides the partition, as in the Java client. `None` is Kafka's null.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Milliseconds since the Unix epoch; `None` takes the record's event time.
    pub timestamp: Option<i64>,
    /// The headers, each name once.
    pub headers: BTreeMap<String, Vec<u8>>,
}

impl OutRecord {
    /// A record without key.
    pub fn value(value: impl Into<Vec<u8>>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// With this key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// As rskafka writes it.
    pub(crate) fn into_record(self, event_time: i64) -> Result<Record> {
        let Self { key, value, timestamp, headers } = self;
        let milliseconds = timestamp.unwrap_or(event_time);
        let timestamp = DateTime::from_timestamp_millis(milliseconds);
        let timestamp = timestamp.ok_or_else(|| {
            Error::user_function(format!("the timestamp {milliseconds} ms is beyond the years rskafka can write"))
        })?;
        Ok(Record { key, value, headers, timestamp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_time_is_the_timestamp_unless_the_record_has_one() {
        let millis = |record: OutRecord| record.into_record(1_000).unwrap().timestamp.timestamp_millis();
        assert_eq!(millis(OutRecord::value("a")), 1_000);
        assert_eq!(millis(OutRecord { timestamp: Some(-5), ..OutRecord::value("a") }), -5);
    }

    #[test]
    fn an_impossible_timestamp_is_an_error() {
        assert!(OutRecord::value("a").into_record(i64::MAX).unwrap_err().message().contains("timestamp"));
    }
}
