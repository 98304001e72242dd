//! From bytes to items: what a decoder is, and the two that take the record as it is.
//!
//! Decoding happens on the worker's thread, when the record is handed out. Key, value and headers are slices of the
//! response they came in: a format looks at them and copies only what its item keeps.

use super::RecordRef;
use crate::record::KafkaRecord;
use mailer_core::Result;
use std::fmt;

/// Makes an item out of a record. Errors need not say where: the source adds topic, partition and offset.
pub trait Decode: Clone + Send + Sync + 'static {
    /// What it makes.
    type Item: Send + 'static;

    /// Decodes one record.
    fn decode(&self, record: KafkaRecord) -> Result<Self::Item>;

    /// Decodes one record where it lies. The default makes a record of its own first; a decoder that only looks at key or
    /// value does better without.
    fn decode_ref(&self, record: &RecordRef<'_>) -> Result<Self::Item> {
        self.decode(record.to_record()?)
    }

    /// Event time of an item, in ms since the Unix epoch. `timestamp` is the record's own: the producer's, or the broker's
    /// append time where the topic has `message.timestamp.type=LogAppendTime`.
    fn timestamp(&self, timestamp: i64, _item: &Self::Item) -> i64 {
        timestamp
    }
}

/// The record itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl Decode for Raw {
    type Item = KafkaRecord;

    fn decode(&self, record: KafkaRecord) -> Result<KafkaRecord> {
        Ok(record)
    }
}

/// A function of the user.
#[derive(Clone, Copy)]
pub struct Mapped<F>(pub(crate) F);

impl<F> fmt::Debug for Mapped<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mapped")
    }
}

impl<T, F> Decode for Mapped<F>
where
    T: Send + 'static,
    F: Fn(KafkaRecord) -> Result<T> + Clone + Send + Sync + 'static,
{
    type Item = T;

    fn decode(&self, record: KafkaRecord) -> Result<T> {
        (self.0)(record)
    }
}
