//! A record as it lies in the response it came in.

use crate::batch::{Malformed, RecordView};
use crate::record::KafkaRecord;
use bytes::Bytes;
use mailer_core::Result;
use std::fmt;
use std::sync::Arc;

/// A record that has not been copied, not even by reference count: a decoder that only looks at it costs nothing more.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    pub(super) topic: &'a Arc<str>,
    pub(super) partition: i32,
    pub(super) leader_epoch: Option<i32>,
    pub(super) view: RecordView<'a>,
}

impl<'a> RecordRef<'a> {
    /// The topic.
    pub fn topic(&self) -> &'a str {
        self.topic
    }

    /// The partition.
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// The offset.
    pub fn offset(&self) -> i64 {
        self.view.offset
    }

    /// Milliseconds since the Unix epoch, as the producer or the broker set them.
    pub fn timestamp(&self) -> i64 {
        self.view.timestamp
    }

    /// The key; `None` is Kafka's null.
    pub fn key(&self) -> Option<&'a [u8]> {
        self.view.key
    }

    /// The value; `None` is a tombstone.
    pub fn value(&self) -> Option<&'a [u8]> {
        self.view.value
    }

    /// Headers in order, duplicates kept: the name's bytes and the value, which may be null. They are read only now; an item
    /// is an error where they do not hold together.
    pub fn headers(&self) -> impl Iterator<Item = Result<(&'a [u8], Option<&'a [u8]>)>> + use<'a> {
        let place = self.place();
        self.view.headers().map(move |header| header.map_err(|malformed| malformed.into_error(&place)))
    }

    /// The key, to keep: it keeps the response.
    pub fn shared_key(&self) -> Option<Bytes> {
        self.view.shared_key()
    }

    /// The value, to keep: it keeps the response.
    pub fn shared_value(&self) -> Option<Bytes> {
        self.view.shared_value()
    }

    /// A record of its own: key, value and header values are slices of the response and keep it.
    pub fn to_record(&self) -> Result<KafkaRecord> {
        let headers = self.view.shared_headers().map_err(|malformed: Malformed| malformed.into_error(self.place()))?;
        Ok(KafkaRecord {
            topic: self.topic.clone(),
            partition: self.partition,
            offset: self.view.offset,
            timestamp: self.view.timestamp,
            key: self.view.shared_key(),
            value: self.view.shared_value(),
            headers,
            leader_epoch: self.leader_epoch,
        })
    }

    /// Where it stands, for messages: `orders-3@42`.
    pub fn place(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for RecordRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}@{}", self.topic, self.partition, self.view.offset)
    }
}
