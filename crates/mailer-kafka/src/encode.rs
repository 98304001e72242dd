//! From items to bytes: the formats both sinks share.

use crate::batch::{Malformed, RecordView};
use crate::record::{Headers, KafkaRecord, OutRecord};
use bytes::Bytes;
use mailer_core::{Error, Record, Result};
use serde::Serialize;
use std::fmt;

/// Turns an item into the parts of a Kafka record.
pub trait Encode<T>: Clone + Send + Sync + 'static {
    /// Fills `out`, which is empty: no key, no value.
    fn encode(&self, record: &Record<T>, out: &mut Encoded) -> Result<()>;
}

/// The parts of a record being encoded; its buffers are used again for the next one.
#[derive(Debug, Default)]
pub struct Encoded {
    key: Vec<u8>,
    value: Vec<u8>,
    has_key: bool,
    has_value: bool,
    timestamp: i64,
    headers: Headers,
    partition: Option<i32>,
}

impl Encoded {
    /// Empties it for a record at `timestamp`.
    pub(crate) fn begin(&mut self, timestamp: i64) {
        self.key.clear();
        self.value.clear();
        self.headers.clear();
        (self.has_key, self.has_value, self.partition, self.timestamp) = (false, false, None, timestamp);
    }

    /// Gives the record a key and returns the buffer to write it into.
    pub fn write_key(&mut self) -> &mut Vec<u8> {
        self.has_key = true;
        &mut self.key
    }

    /// Gives the record a value and returns the buffer to write it into.
    pub fn write_value(&mut self) -> &mut Vec<u8> {
        self.has_value = true;
        &mut self.value
    }

    /// Takes over everything a whole record says.
    pub fn copy(&mut self, record: OutRecord) {
        if let Some(key) = &record.key {
            self.write_key().extend_from_slice(key);
        }
        if let Some(value) = &record.value {
            self.write_value().extend_from_slice(value);
        }
        self.timestamp = record.timestamp.unwrap_or(self.timestamp);
        self.headers = record.headers;
        self.partition = record.partition;
    }

    /// Takes over a record that was in a batch.
    pub(crate) fn take(&mut self, record: &RecordView<'_>) -> std::result::Result<(), Malformed> {
        if let Some(key) = record.key {
            self.write_key().extend_from_slice(key);
        }
        if let Some(value) = record.value {
            self.write_value().extend_from_slice(value);
        }
        self.headers = record.shared_headers()?;
        Ok(())
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.has_key.then_some(&self.key)
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.has_value.then_some(&self.value)
    }

    pub(crate) fn timestamp(&self) -> i64 {
        self.timestamp
    }

    pub(crate) fn headers(&self) -> &Headers {
        &self.headers
    }

    pub(crate) fn partition(&self) -> Option<i32> {
        self.partition
    }

    /// Payload bytes.
    pub(crate) fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.as_ref().map_or(0, Bytes::len));
        self.key.len() + self.value.len() + headers.sum::<usize>()
    }
}

/// No format was chosen yet: call `json`, `bytes`, `protobuf` or `encode` on the sink.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unformatted;

/// Turns a value into bytes: what a format does, whatever becomes of key and null. Formats of values are [`Encode`] too.
pub trait EncodeValue<T>: Clone + Send + Sync + 'static {
    /// Appends the bytes of `value` to `out`, which is empty.
    fn encode_value(&self, value: &T, out: &mut Vec<u8>) -> Result<()>;
}

/// The value as JSON.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsJson;

impl<T: Serialize> EncodeValue<T> for AsJson {
    fn encode_value(&self, value: &T, out: &mut Vec<u8>) -> Result<()> {
        serde_json::to_writer(out, value)
            .map_err(|e| Error::user_function("a value could not be written as JSON").caused_by(e))
    }
}

/// The value's own bytes: strings, byte vectors.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsBytes;

impl<T: AsRef<[u8]>> EncodeValue<T> for AsBytes {
    fn encode_value(&self, value: &T, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(value.as_ref());
        Ok(())
    }
}

/// The value as a protobuf message.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsProtobuf;

impl<T: prost::Message> EncodeValue<T> for AsProtobuf {
    fn encode_value(&self, value: &T, out: &mut Vec<u8>) -> Result<()> {
        let encoded = value.encode(out);
        encoded.map_err(|e| Error::user_function("a value could not be written as protobuf").caused_by(e))
    }
}

macro_rules! values_without_key {
    ($($format:ident),*) => {$(
        impl<T> Encode<T> for $format
        where
            $format: EncodeValue<T>,
        {
            fn encode(&self, record: &Record<T>, out: &mut Encoded) -> Result<()> {
                self.encode_value(&record.value, out.write_value())
            }
        }
    )*};
}

values_without_key!(AsJson, AsBytes, AsProtobuf);

/// Records as they were read: key, value and headers, in the order they had.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsRecord;

impl Encode<KafkaRecord> for AsRecord {
    fn encode(&self, record: &Record<KafkaRecord>, out: &mut Encoded) -> Result<()> {
        let KafkaRecord { key, value, headers, .. } = &record.value;
        if let Some(key) = key {
            out.write_key().extend_from_slice(key);
        }
        if let Some(value) = value {
            out.write_value().extend_from_slice(value);
        }
        out.headers.clone_from(headers);
        Ok(())
    }
}

/// `Option`s: a value in the inner format; `None` is a tombstone.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrTombstone<E>(pub(crate) E);

impl<T, E: EncodeValue<T>> Encode<Option<T>> for OrTombstone<E> {
    fn encode(&self, record: &Record<Option<T>>, out: &mut Encoded) -> Result<()> {
        optional(&self.0, &record.value, || out.write_value())
    }
}

/// Pairs of key and value, each in a format; `None` is Kafka's null on either side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pairs<K, E> {
    pub(crate) key: K,
    pub(crate) value: E,
}

impl<A, B, K: EncodeValue<A>, E: EncodeValue<B>> Encode<(Option<A>, Option<B>)> for Pairs<K, E> {
    fn encode(&self, record: &Record<(Option<A>, Option<B>)>, out: &mut Encoded) -> Result<()> {
        optional(&self.key, &record.value.0, || out.write_key())?;
        optional(&self.value, &record.value.1, || out.write_value())
    }
}

fn optional<'a, T, E: EncodeValue<T>>(
    format: &E,
    value: &Option<T>,
    part: impl FnOnce() -> &'a mut Vec<u8>,
) -> Result<()> {
    value.as_ref().map_or(Ok(()), |value| format.encode_value(value, part()))
}

/// A function of the user that makes whole records.
#[derive(Clone, Copy)]
pub struct Custom<F>(pub(crate) F);

impl<F> fmt::Debug for Custom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Custom")
    }
}

impl<T, F> Encode<T> for Custom<F>
where
    F: Fn(&Record<T>) -> Result<OutRecord> + Clone + Send + Sync + 'static,
{
    fn encode(&self, record: &Record<T>, out: &mut Encoded) -> Result<()> {
        out.copy((self.0)(record)?);
        Ok(())
    }
}

/// Another format, with a key.
#[derive(Clone, Copy)]
pub struct WithKey<E, F> {
    pub(crate) encode: E,
    pub(crate) key: F,
}

impl<E: fmt::Debug, F> fmt::Debug for WithKey<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WithKey({:?})", self.encode)
    }
}

impl<T, K, E, F> Encode<T> for WithKey<E, F>
where
    K: AsRef<[u8]>,
    E: Encode<T>,
    F: Fn(&T) -> K + Clone + Send + Sync + 'static,
{
    fn encode(&self, record: &Record<T>, out: &mut Encoded) -> Result<()> {
        self.encode.encode(record, out)?;
        let key = out.write_key();
        key.clear();
        key.extend_from_slice((self.key)(&record.value).as_ref());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::Timestamp;

    fn encoded<T>(encode: &impl Encode<T>, value: T) -> OutRecord {
        let mut out = Encoded::default();
        out.begin(5);
        encode.encode(&Record::new(Timestamp(5), value), &mut out).unwrap();
        let owned = |part: Option<&[u8]>| part.map(Bytes::copy_from_slice);
        let (key, value, timestamp) = (owned(out.key()), owned(out.value()), Some(out.timestamp()));
        OutRecord { key, value, timestamp, headers: out.headers().clone(), partition: out.partition() }
    }

    #[test]
    fn json_with_a_key() {
        let format = WithKey { encode: AsJson, key: |pair: &(String, u32)| pair.0.clone() };
        let record = encoded(&format, ("alice".to_owned(), 7));
        assert_eq!(record, OutRecord { timestamp: Some(5), ..OutRecord::value(r#"["alice",7]"#).with_key("alice") });
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Number {
        #[prost(int32, tag = "1")]
        a: i32,
    }

    #[test]
    fn protobuf_is_written() {
        // Protobuf's own example.
        assert_eq!(encoded(&AsProtobuf, Number { a: 150 }).value.unwrap(), &[8, 0x96, 1][..]);
    }

    #[test]
    fn none_is_null_on_either_side() {
        assert_eq!(encoded(&OrTombstone(AsJson), Some(7)).value.unwrap(), "7");
        assert_eq!(encoded(&OrTombstone(AsJson), None::<u32>).value, None);
        let pairs = Pairs { key: AsBytes, value: AsJson };
        let pair = |key: Option<&str>, value: Option<u32>| {
            let record = encoded(&pairs, (key.map(str::to_owned), value));
            (record.key, record.value)
        };
        assert_eq!(pair(Some("a"), Some(7)), (Some("a".into()), Some("7".into())));
        assert_eq!(pair(Some("a"), None), (Some("a".into()), None));
        assert_eq!(pair(None, Some(7)), (None, Some("7".into())));
        assert_eq!(pair(Some(""), None), (Some(Bytes::new()), None), "empty is not null");
    }

    #[test]
    fn a_custom_record_is_taken_whole() {
        let custom = Custom(|_: &Record<u32>| {
            Ok(OutRecord { partition: Some(3), ..OutRecord::tombstone("k").with_header("h", "x") })
        });
        let record = encoded(&custom, 1);
        assert_eq!((record.value, record.partition), (None, Some(3)));
        assert_eq!(record.headers, [("h".to_owned(), Some(Bytes::from("x")))]);
    }

    #[test]
    fn a_record_is_written_as_it_was_read() {
        let headers = vec![("h".to_owned(), Some("1".into())), ("h".to_owned(), None)];
        let read = KafkaRecord {
            topic: "orders".into(),
            partition: 3,
            offset: 42,
            timestamp: 5,
            key: Some("k".into()),
            value: None,
            headers: headers.clone(),
            leader_epoch: None,
        };
        let out = encoded(&AsRecord, read.clone());
        assert_eq!((out.key.as_deref(), out.value, out.timestamp), (Some(&b"k"[..]), None, Some(5)));
        assert_eq!((out.headers, out.partition), (headers, None));
        let out = encoded(&AsRecord, KafkaRecord { key: None, value: Some("v".into()), headers: Vec::new(), ..read });
        assert_eq!(out, OutRecord { timestamp: Some(5), ..OutRecord::value("v") });
    }

    #[test]
    fn buffers_forget_the_record_before() {
        let mut out = Encoded::default();
        out.write_key().extend_from_slice(b"old");
        out.begin(0);
        assert_eq!((out.key(), out.value()), (None, None));
    }
}
