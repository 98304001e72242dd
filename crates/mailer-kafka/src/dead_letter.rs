//! A record that did not decode, on its way to a topic where somebody looks at it.

use crate::encode::{Encode, Encoded};
use crate::record::{Headers, KafkaRecord, OutRecord};
use bytes::Bytes;
use mailer_core::{Error, Record, Result};

/// Header: the topic the record was read from.
pub const DEAD_LETTER_TOPIC: &str = "mailer.dead-letter.topic";
/// Header: its partition, in decimal digits.
pub const DEAD_LETTER_PARTITION: &str = "mailer.dead-letter.partition";
/// Header: its offset, in decimal digits.
pub const DEAD_LETTER_OFFSET: &str = "mailer.dead-letter.offset";
/// Header: its timestamp in ms since the Unix epoch, in decimal digits.
pub const DEAD_LETTER_TIMESTAMP: &str = "mailer.dead-letter.timestamp";
/// Header: why it did not decode.
pub const DEAD_LETTER_ERROR: &str = "mailer.dead-letter.error";

/// A record that did not decode: its bytes, where they came from, and why. It owns its bytes and keeps no response alive.
///
/// Written to a topic it keeps key, value and headers; behind the headers stand `mailer.dead-letter.topic`, `….partition`,
/// `….offset`, `….timestamp` and `….error`, all text. Of a record that is a dead letter for the second time, the last ones
/// count. Headers need room: give the topic a larger `max.message.bytes` than that of the input, and no compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The topic it was read from.
    pub topic: String,
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
    /// Milliseconds since the Unix epoch, as the record had it.
    pub timestamp: i64,
    /// The key; `None` is Kafka's null.
    pub key: Option<Bytes>,
    /// The value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// The headers.
    pub headers: Headers,
    /// Why it did not decode.
    pub error: String,
}

impl DeadLetter {
    pub(crate) fn new(record: &KafkaRecord, error: &Error) -> Self {
        let own = |bytes: &Option<Bytes>| bytes.as_deref().map(Bytes::copy_from_slice);
        Self {
            topic: record.topic.to_string(),
            partition: record.partition,
            offset: record.offset,
            timestamp: record.timestamp,
            key: own(&record.key),
            value: own(&record.value),
            headers: record.headers.iter().map(|(name, value)| (name.clone(), own(value))).collect(),
            error: error.message().to_owned(),
        }
    }
}

/// The record with provenance headers, at the time it had. A record without time (Kafka's -1) gets the event time.
impl From<DeadLetter> for OutRecord {
    fn from(letter: DeadLetter) -> Self {
        let DeadLetter { topic, partition, offset, timestamp, key, value, headers, error } = letter;
        let record = OutRecord { key, value, headers, timestamp: Some(timestamp).filter(|t| *t >= 0), partition: None };
        record
            .with_header(DEAD_LETTER_TOPIC, topic)
            .with_header(DEAD_LETTER_PARTITION, partition.to_string())
            .with_header(DEAD_LETTER_OFFSET, offset.to_string())
            .with_header(DEAD_LETTER_TIMESTAMP, timestamp.to_string())
            .with_header(DEAD_LETTER_ERROR, error)
    }
}

/// Dead letters, with their provenance in headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsDeadLetter;

impl Encode<DeadLetter> for AsDeadLetter {
    fn encode(&self, record: &Record<DeadLetter>, out: &mut Encoded) -> Result<()> {
        out.copy(record.value.clone().into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(timestamp: i64) -> DeadLetter {
        let record = KafkaRecord {
            topic: "orders".into(),
            partition: 3,
            offset: 42,
            timestamp,
            key: Some("k".into()),
            value: None,
            headers: vec![("h".into(), Some("1".into())), ("h".into(), None)],
            leader_epoch: Some(1),
        };
        DeadLetter::new(&record, &Error::user_function("no"))
    }

    #[test]
    fn a_letter_is_the_record_with_its_provenance() {
        let out = OutRecord::from(letter(1_000));
        assert_eq!((out.key, out.value, out.timestamp), (Some("k".into()), None, Some(1_000)));
        let headers: Vec<_> = out.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
        let text = |text: &'static str| Some(text.as_bytes());
        assert_eq!(
            headers,
            [
                ("h", text("1")),
                ("h", None),
                ("mailer.dead-letter.topic", text("orders")),
                ("mailer.dead-letter.partition", text("3")),
                ("mailer.dead-letter.offset", text("42")),
                ("mailer.dead-letter.timestamp", text("1000")),
                ("mailer.dead-letter.error", text("no")),
            ]
        );
    }

    /// Kafka's "no timestamp" would be refused by brokers.
    #[test]
    fn a_record_without_time_takes_the_event_time() {
        assert_eq!(OutRecord::from(letter(-1)).timestamp, None);
    }
}
