//! From bytes to items: what a decoder is, and the two that take the record as it is.
//!
//! Decoding happens on the worker's thread, when the record is handed out. Key, value and headers are slices of the
//! response they came in: a format looks at them and copies only what its item keeps.

use crate::record::KafkaRecord;
use mailer_core::{Error, Result};
use std::fmt;

/// Makes an item out of a record. Errors need not say where: the source adds topic, partition and offset.
pub trait Decode: Clone + Send + Sync + 'static {
    /// What it makes.
    type Item: Send + 'static;

    /// Decodes one record.
    fn decode(&self, record: KafkaRecord) -> Result<Self::Item>;

    /// Decodes one record and gives it back when it does not decode, for dead letters. The default decodes a copy, which
    /// costs something where records have headers; a decoder that only looks at the record does better without.
    fn decode_or_return(&self, record: KafkaRecord) -> Result<Self::Item, Box<Undecoded>> {
        self.decode(record.clone()).map_err(|error| Undecoded::new(record, error))
    }

    /// Event time of an item, in ms since the Unix epoch. `timestamp` is the record's own: the producer's, or the broker's
    /// append time where the topic has `message.timestamp.type=LogAppendTime`.
    fn timestamp(&self, timestamp: i64, _item: &Self::Item) -> i64 {
        timestamp
    }
}

/// A record that does not decode, and why.
#[derive(Debug)]
pub struct Undecoded {
    /// The record, as it was.
    pub record: KafkaRecord,
    /// Why it does not decode.
    pub error: Error,
}

impl Undecoded {
    /// For implementations of [`Decode::decode_or_return`].
    pub fn new(record: KafkaRecord, error: Error) -> Box<Self> {
        Box::new(Self { record, error })
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
