//! Dead letters as records of a topic: what they were, where they were, and why they are here.

use super::errors;
use super::plan::{Kafka, client, topics_exist};
use crate::dead_letter::{DynDeadLetter, MakingDeadLetter};
use crate::{BoxError, DeadLetter, Error, Failure, IntoDeadLetter, Options, Record};
use krafka::producer::Producer;
use std::fmt;

/// Names of the headers that [`DeadLetterTopic`] adds behind a record's own.
pub mod provenance {
    /// The topic it was read from.
    pub const TOPIC: &str = "dlq.topic";
    /// The partition, in decimal digits.
    pub const PARTITION: &str = "dlq.partition";
    /// The offset, in decimal digits.
    pub const OFFSET: &str = "dlq.offset";
    /// The record's own timestamp, milliseconds since 1970.
    pub const TIMESTAMP: &str = "dlq.timestamp";
    /// The group that could not handle it.
    pub const GROUP: &str = "dlq.group";
    /// How the last attempt failed: `error`, `rejected`, `panic` or `timeout`.
    pub const REASON: &str = "dlq.reason";
    /// What it said, the first 1,000 bytes.
    pub const ERROR: &str = "dlq.error";
    /// Attempts that were made.
    pub const ATTEMPTS: &str = "dlq.attempts";
}

/// Bytes of an error's text that are kept.
const LONGEST_ERROR: usize = 1_000;

/// Dead letters go to this topic of the same cluster, with key, value and headers as they were and headers that say where
/// they come from ([`provenance`]). A dead letter is complete when all in-sync replicas have it.
///
/// The topic must be there when the consumer is built.
#[derive(Clone, Debug)]
pub struct DeadLetterTopic {
    topic: String,
}

impl DeadLetterTopic {
    /// Dead letters go to `topic`.
    pub fn new(topic: impl Into<String>) -> Self {
        Self { topic: topic.into() }
    }
}

impl IntoDeadLetter<Kafka> for DeadLetterTopic {
    fn into_dead_letter(self: Box<Self>, connect: &Kafka, _: &Options) -> MakingDeadLetter {
        let settings = connect.settings.clone();
        Box::pin(async move {
            if settings.topics.contains(&self.topic) {
                let words = format!("{} is consumed: dead letters in it would come back for ever", self.topic);
                return Err(Error::invalid_options(words));
            }
            let kafka = client(&settings).await?;
            topics_exist(&kafka, std::slice::from_ref(&self.topic)).await?;
            let producer = kafka.producer().build().await;
            let producer = producer.map_err(|error| errors::unavailable("the dead letters' producer", &error))?;
            let letters = Letters { topic: self.topic, group: settings.group, producer };
            Ok(Box::new(letters) as Box<dyn DynDeadLetter>)
        })
    }
}

/// The topic with what writes to it.
struct Letters {
    topic: String,
    group: String,
    producer: Producer,
}

impl DeadLetter for Letters {
    async fn put(&self, record: &Record, failure: &Failure) -> Result<(), BoxError> {
        let written = self.producer.send(letter(&self.topic, &self.group, record, failure)).await?;
        tracing::debug!(?record, topic = %self.topic, offset = written.offset, "dead letter");
        Ok(())
    }
}

impl fmt::Debug for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letters").field("topic", &self.topic).finish_non_exhaustive()
    }
}

fn letter(topic: &str, group: &str, record: &Record, failure: &Failure) -> krafka::Record {
    let mut letter = krafka::Record::new(topic, bytes::Bytes::new());
    (letter.key, letter.value) = (record.key.clone(), record.value.clone());
    letter.headers = record.headers.iter().map(|header| (header.name.to_string(), header.value.clone())).collect();
    let mut text = failure.error.to_string();
    text.truncate(text.floor_char_boundary(LONGEST_ERROR));
    let added = [
        (provenance::TOPIC, record.partition.topic.to_string()),
        (provenance::PARTITION, record.partition.index.to_string()),
        (provenance::OFFSET, record.offset.to_string()),
        (provenance::TIMESTAMP, record.timestamp.millis.to_string()),
        (provenance::GROUP, group.to_owned()),
        (provenance::REASON, format!("{:?}", failure.kind).to_lowercase()),
        (provenance::ERROR, text),
        (provenance::ATTEMPTS, failure.attempts.to_string()),
    ];
    letter.headers.extend(added.into_iter().map(|(name, value)| (name.to_owned(), Some(value.into()))));
    letter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Header;
    use crate::{FailureKind, Partition};

    #[test]
    fn a_letter_is_the_record_and_where_it_was() {
        let header = Header { name: "trace".into(), value: None };
        let record = Record {
            key: None,
            value: Some("v".into()),
            headers: [header.clone(), header].into_iter().collect(),
            ..Record::at(Partition::new("orders", 3), 41)
        };
        let failure = Failure { kind: FailureKind::Rejected, error: "é".repeat(600).into(), attempts: 2 };
        let letter = letter("orders.dlq", "svc", &record, &failure);
        assert_eq!((&*letter.topic, &letter.key, letter.value.as_deref()), ("orders.dlq", &None, Some(&b"v"[..])));
        assert_eq!(letter.headers[..2], [("trace".to_owned(), None), ("trace".to_owned(), None)]);
        let added: Vec<_> = letter.headers[2..]
            .iter()
            .map(|(name, value)| (name.as_str(), std::str::from_utf8(value.as_deref().unwrap()).unwrap()))
            .collect();
        let expected = [
            (provenance::TOPIC, "orders"),
            (provenance::PARTITION, "3"),
            (provenance::OFFSET, "41"),
            (provenance::TIMESTAMP, "-1"),
            (provenance::GROUP, "svc"),
            (provenance::REASON, "rejected"),
            (provenance::ERROR, &"é".repeat(500)),
            (provenance::ATTEMPTS, "2"),
        ];
        assert_eq!(added, expected);
    }
}
