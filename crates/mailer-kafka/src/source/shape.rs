//! What becomes of a record's parts: which of them are in the item, what null means, where event time is, and what is
//! done with a record that does not decode.

use super::RecordRef;
use super::format::Decode;
use super::parse::Parse;
use crate::dead_letter::DeadLetter;
use crate::record::KafkaRecord;
use bytes::Bytes;
use mailer_core::{Error, Result};
use std::fmt;

/// The value; null is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct Value<P>(pub(crate) P);

impl<P: Parse> Value<P> {
    fn look(&self, value: Option<&Bytes>) -> Result<P::Value> {
        let null = || Error::user_function("the value is null (a tombstone); `or_null` makes it a `None`");
        parse(&self.0, "value", value.ok_or_else(null)?)
    }
}

/// The value; null is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrNull<P>(pub(crate) P);

impl<P: Parse> OrNull<P> {
    fn look(&self, value: Option<&Bytes>) -> Result<Option<P::Value>> {
        value.map(|value| parse(&self.0, "value", value)).transpose()
    }
}

fn parse<P: Parse>(format: &P, part: &str, bytes: &Bytes) -> Result<P::Value> {
    format.parse(bytes).map_err(|error| error.context(format!("the {part} does not decode")))
}

macro_rules! decoders_that_look {
    ($($shape:ident => $item:ty),* $(,)?) => {$(
        impl<P: Parse> Decode for $shape<P> {
            type Item = $item;

            fn decode(&self, record: KafkaRecord) -> Result<Self::Item> {
                self.look(record.value.as_ref())
            }

            fn decode_ref(&self, record: &RecordRef<'_>) -> Result<Self::Item> {
                self.look(record.shared_value().as_ref())
            }
        }
    )*};
}

decoders_that_look! {
    Value => P::Value,
    OrNull => Option<P::Value>,
}

/// The key beside what the inner decoder makes; a null key is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyedBy<D, P> {
    pub(crate) decode: D,
    pub(crate) key: P,
}

impl<D: Decode, P: Parse> KeyedBy<D, P> {
    fn key(&self, key: Option<&Bytes>) -> Result<Option<P::Value>> {
        key.map(|key| parse(&self.key, "key", key)).transpose()
    }
}

impl<D: Decode, P: Parse> Decode for KeyedBy<D, P> {
    type Item = (Option<P::Value>, D::Item);

    fn decode(&self, record: KafkaRecord) -> Result<Self::Item> {
        Ok((self.key(record.key.as_ref())?, self.decode.decode(record)?))
    }

    fn decode_ref(&self, record: &RecordRef<'_>) -> Result<Self::Item> {
        Ok((self.key(record.shared_key().as_ref())?, self.decode.decode_ref(record)?))
    }

    fn timestamp(&self, timestamp: i64, item: &Self::Item) -> i64 {
        self.decode.timestamp(timestamp, &item.1)
    }
}

/// Event time out of the item.
#[derive(Clone, Copy)]
pub struct Timestamped<D, F> {
    pub(crate) decode: D,
    pub(crate) timestamp: F,
}

impl<D: fmt::Debug, F> fmt::Debug for Timestamped<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamped({:?})", self.decode)
    }
}

impl<D, F> Decode for Timestamped<D, F>
where
    D: Decode,
    F: Fn(&D::Item) -> i64 + Clone + Send + Sync + 'static,
{
    type Item = D::Item;

    fn decode(&self, record: KafkaRecord) -> Result<D::Item> {
        self.decode.decode(record)
    }

    fn decode_ref(&self, record: &RecordRef<'_>) -> Result<D::Item> {
        self.decode.decode_ref(record)
    }

    fn timestamp(&self, _timestamp: i64, item: &D::Item) -> i64 {
        (self.timestamp)(item)
    }
}

/// Every record is an item: what decodes, or a [`DeadLetter`] at the record's own time.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeadLetters<D>(pub(crate) D);

impl<D: Decode> Decode for DeadLetters<D> {
    type Item = Result<D::Item, DeadLetter>;

    fn decode(&self, record: KafkaRecord) -> Result<Self::Item> {
        Ok(self.0.decode(record.clone()).map_err(|error| DeadLetter::new(&record, &error)))
    }

    fn decode_ref(&self, record: &RecordRef<'_>) -> Result<Self::Item> {
        match self.0.decode_ref(record) {
            Ok(item) => Ok(Ok(item)),
            Err(error) => Ok(Err(DeadLetter::new(&record.to_record()?, &error))),
        }
    }

    fn timestamp(&self, timestamp: i64, item: &Self::Item) -> i64 {
        item.as_ref().map_or(timestamp, |item| self.0.timestamp(timestamp, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Json, Mapped, Text};
    use bytes::Bytes;

    fn record(key: Option<&'static str>, value: Option<&'static str>) -> KafkaRecord {
        KafkaRecord {
            topic: "orders".into(),
            partition: 3,
            offset: 42,
            timestamp: 1_000,
            key: key.map(Bytes::from),
            value: value.map(Bytes::from),
            headers: vec![("h".into(), None)],
            leader_epoch: None,
        }
    }

    #[test]
    fn null_is_an_error_or_none() {
        let value = Value(Json::<u32>::default());
        assert_eq!(value.decode(record(None, Some("7"))).unwrap(), 7);
        assert!(value.decode(record(None, None)).unwrap_err().message().contains("`or_null`"));
        let or_null = OrNull(Json::<u32>::default());
        assert_eq!(or_null.decode(record(None, Some("7"))).unwrap(), Some(7));
        assert_eq!(or_null.decode(record(None, None)).unwrap(), None);
    }

    #[test]
    fn a_key_stands_beside_the_value() {
        let format = KeyedBy { decode: OrNull(Json::<u32>::default()), key: Text };
        assert_eq!(format.decode(record(Some("a"), Some("7"))).unwrap(), (Some("a".to_owned()), Some(7)));
        assert_eq!(format.decode(record(Some("a"), None)).unwrap(), (Some("a".to_owned()), None));
        assert_eq!(format.decode(record(None, None)).unwrap(), (None, None));
        let numbers = KeyedBy { decode: Value(Text), key: Json::<u32>::default() };
        assert!(
            numbers.decode(record(Some("a"), Some("7"))).unwrap_err().message().contains("the key does not decode")
        );
    }

    #[test]
    fn event_time_is_the_records_or_a_field() {
        let value = Value(Json::<i64>::default());
        assert_eq!(value.timestamp(1_000, &7), 1_000);
        let field = Timestamped { decode: value, timestamp: |item: &i64| item * 2 };
        assert_eq!(field.timestamp(1_000, &7), 14);
        let keyed = KeyedBy { decode: field.clone(), key: Text };
        assert_eq!(keyed.timestamp(1_000, &(None, 7)), 14);
        let letters = DeadLetters(field);
        let letter = letters.decode(record(None, None)).unwrap();
        assert_eq!((letters.timestamp(1_000, &Ok(7)), letters.timestamp(1_000, &letter)), (14, 1_000));
    }

    /// Whatever the decoder, the letter has the record as it was.
    #[test]
    fn a_dead_letter_has_the_record_and_the_reason() {
        fn letter<D: Decode<Item: fmt::Debug>>(decode: D) -> DeadLetter {
            DeadLetters(decode).decode(record(Some("key"), Some("bad"))).unwrap().unwrap_err()
        }
        let json = Value(Json::<u32>::default());
        let letters = [
            letter(json.clone()),
            letter(KeyedBy { decode: json.clone(), key: Text }),
            letter(KeyedBy { decode: Value(Text), key: Json::<u32>::default() }),
            letter(Timestamped { decode: json, timestamp: |_: &u32| 0 }),
            letter(Mapped(|_| -> Result<u32> { Err(Error::user_function("never")) })),
        ];
        for letter in letters {
            assert_eq!((letter.topic.as_str(), letter.partition, letter.offset), ("orders", 3, 42));
            assert_eq!((letter.key, letter.value), (Some(Bytes::from("key")), Some(Bytes::from("bad"))));
            assert_eq!((letter.timestamp, letter.headers), (1_000, vec![("h".to_owned(), None)]));
            assert!(!letter.error.is_empty());
        }
    }
}
