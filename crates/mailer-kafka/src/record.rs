//! What is read from Kafka and what is written to it, as the user sees it.

use bytes::Bytes;
use std::sync::Arc;

/// Headers in order, duplicates kept; a value may be null.
pub type Headers = Vec<(String, Option<Bytes>)>;

/// One record as it stands in a partition.
///
/// Key, value and header values are slices of the response they arrived in: whoever keeps one keeps the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaRecord {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// Milliseconds since the Unix epoch, as the producer or the broker set them.
    pub timestamp: i64,
    /// The key; `None` is Kafka's null.
    pub key: Option<Bytes>,
    /// The value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// The headers.
    pub headers: Headers,
    /// The leader epoch of its batch, where the broker told it.
    pub leader_epoch: Option<i32>,
}

impl KafkaRecord {
    /// Where it stands, for messages: `orders-3@42`.
    pub fn place(&self) -> String {
        format!("{}-{}@{}", self.topic, self.partition, self.offset)
    }
}

/// One record to be written, as a custom encoder returns it.
///
/// ```
/// use mailer_kafka::OutRecord;
/// let record = OutRecord::value("paid").with_key("order-7").with_header("source", "shop");
/// assert_eq!(record.partition, None, "chosen by the key, as the Java client does");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutRecord {
    /// The key; `None` is Kafka's null.
    pub key: Option<Bytes>,
    /// The value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Milliseconds since the Unix epoch; `None` takes the record's event time.
    pub timestamp: Option<i64>,
    /// The headers.
    pub headers: Headers,
    /// The partition; `None` lets the key decide (murmur2, as the Java client), and spreads records without a key.
    pub partition: Option<i32>,
}

impl OutRecord {
    /// A record without key.
    pub fn value(value: impl Into<Bytes>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// The deletion of a key in a compacted topic.
    pub fn tombstone(key: impl Into<Bytes>) -> Self {
        Self { key: Some(key.into()), ..Self::default() }
    }

    /// With this key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// With one more header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }
}
