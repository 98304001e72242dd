//! From bytes to items.

use super::RecordRef;
use crate::record::KafkaRecord;
use mailer_core::{Error, Result};
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;

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

/// The value as UTF-8 text; a tombstone is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text;

impl Decode for Text {
    type Item = String;

    fn decode(&self, record: KafkaRecord) -> Result<String> {
        self.parse(record.value.as_deref())
    }

    fn decode_ref(&self, record: &RecordRef<'_>) -> Result<String> {
        self.parse(record.value())
    }
}

impl Text {
    fn parse(&self, bytes: Option<&[u8]>) -> Result<String> {
        let text = std::str::from_utf8(value(bytes)?);
        text.map(str::to_owned).map_err(|e| Error::user_function("the value is not UTF-8 text").caused_by(e))
    }
}

/// The value as JSON; a tombstone is an error.
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T> Default for Json<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T> Clone for Json<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> fmt::Debug for Json<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Json")
    }
}

impl<T: DeserializeOwned + Send + 'static> Decode for Json<T> {
    type Item = T;

    fn decode(&self, record: KafkaRecord) -> Result<T> {
        self.parse(record.value.as_deref())
    }

    fn decode_ref(&self, record: &RecordRef<'_>) -> Result<T> {
        self.parse(record.value())
    }
}

impl<T: DeserializeOwned> Json<T> {
    fn parse(&self, bytes: Option<&[u8]>) -> Result<T> {
        serde_json::from_slice(value(bytes)?)
            .map_err(|e| Error::user_function("the value is not the expected JSON").caused_by(e))
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

fn value(bytes: Option<&[u8]>) -> Result<&[u8]> {
    bytes.ok_or_else(|| Error::user_function("the value is null (a tombstone); decode with `map` to handle tombstones"))
}
