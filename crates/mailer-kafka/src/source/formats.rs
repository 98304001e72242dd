//! How a source is told its format.

use super::format::{Decode, Mapped};
use super::parse::{Json, Parse, Plain, Protobuf, Text};
use super::shape::{DeadLetters, KeyedBy, OrNull, Timestamped, Value};
use super::{KafkaSource, Raw};
use crate::record::KafkaRecord;
use mailer_core::Result;
use serde::de::DeserializeOwned;

impl KafkaSource<Raw> {
    /// Items are values as they are. A value that is kept keeps the response it came in.
    pub fn bytes(self) -> KafkaSource<Value<Plain>> {
        self.parse(Plain)
    }

    /// Items are values as UTF-8 text.
    pub fn string(self) -> KafkaSource<Value<Text>> {
        self.parse(Text)
    }

    /// Items are values parsed as JSON.
    pub fn json<T: DeserializeOwned + Send + 'static>(self) -> KafkaSource<Value<Json<T>>> {
        self.parse(Json::default())
    }

    /// Items are values parsed as protobuf messages.
    ///
    /// ```
    /// use mailer_kafka::KafkaSource;
    ///
    /// #[derive(Clone, PartialEq, prost::Message)]
    /// struct Order {
    ///     #[prost(uint64, tag = "1")]
    ///     id: u64,
    /// }
    ///
    /// let orders = KafkaSource::new("localhost:9092", "orders").protobuf::<Order>();
    /// ```
    pub fn protobuf<M: prost::Message + Default + 'static>(self) -> KafkaSource<Value<Protobuf<M>>> {
        self.parse(Protobuf::default())
    }

    /// Items are values in a format of your own.
    pub fn parse<P: Parse>(self, format: P) -> KafkaSource<Value<P>> {
        self.decode(Value(format))
    }

    /// Items are what `decode` makes of each record.
    ///
    /// ```
    /// use mailer_kafka::KafkaSource;
    /// let lengths = KafkaSource::new("localhost:9092", "orders")
    ///     .map(|record| Ok(record.value.map_or(0, |value| value.len())));
    /// ```
    pub fn map<T, F>(self, decode: F) -> KafkaSource<Mapped<F>>
    where
        T: Send + 'static,
        F: Fn(KafkaRecord) -> Result<T> + Clone + Send + Sync + 'static,
    {
        self.decode(Mapped(decode))
    }

    /// Items are decoded by `decode`.
    pub fn decode<D: Decode>(self, decode: D) -> KafkaSource<D> {
        self.with(|_| decode)
    }
}

impl<P: Parse> KafkaSource<Value<P>> {
    /// Values may be null: items are `Option`s, and a tombstone is `None`. Without it a tombstone does not decode.
    pub fn or_null(self) -> KafkaSource<OrNull<P>> {
        self.with(|Value(format)| OrNull(format))
    }
}

impl<D: Decode> KafkaSource<D> {
    /// Items are pairs of key and value; a null key is `None`.
    ///
    /// ```
    /// use mailer_kafka::{KafkaSource, Text};
    ///
    /// // Items are `(Option<String>, Option<f64>)`: the changelog of a table.
    /// let prices = KafkaSource::new("localhost:9092", "prices").json::<f64>().or_null().with_key(Text);
    /// ```
    pub fn with_key<P: Parse>(self, key: P) -> KafkaSource<KeyedBy<D, P>> {
        self.with(|decode| KeyedBy { decode, key })
    }

    /// Event time is in the item, in ms since the Unix epoch. Without it the record's timestamp is taken: the producer's,
    /// or the time of the broker's append where the topic has `message.timestamp.type=LogAppendTime`.
    ///
    /// ```
    /// use mailer_kafka::KafkaSource;
    /// #[derive(serde::Deserialize)]
    /// struct Order { paid_at: i64 }
    ///
    /// let orders = KafkaSource::new("localhost:9092", "orders").json::<Order>().timestamp(|order| order.paid_at);
    /// ```
    pub fn timestamp<F>(self, timestamp: F) -> KafkaSource<Timestamped<D, F>>
    where
        F: Fn(&D::Item) -> i64 + Clone + Send + Sync + 'static,
    {
        self.with(|decode| Timestamped { decode, timestamp })
    }

    /// Items are `Result`s: a record that does not decode is a [`crate::DeadLetter`], to be written to a topic of its own.
    /// Call it last. [`KafkaSource::on_error`] has nothing to decide then.
    ///
    /// ```
    /// use mailer_kafka::{KafkaSource, TransactionalKafkaSink};
    /// #[derive(serde::Deserialize)]
    /// struct Order { id: u64 }
    ///
    /// // Items are `Result<Order, DeadLetter>`.
    /// let orders = KafkaSource::new("localhost:9092", "orders").json::<Order>().dead_letters();
    /// // With the transactional id of the job's other sink, letters are published in its transaction.
    /// let letters = TransactionalKafkaSink::new("localhost:9092", "orders-dead", "orders-1").dead_letters();
    /// ```
    pub fn dead_letters(self) -> KafkaSource<DeadLetters<D>> {
        self.with(DeadLetters)
    }

    fn with<E: Decode>(self, change: impl FnOnce(D) -> E) -> KafkaSource<E> {
        KafkaSource { settings: self.settings, decode: change(self.decode) }
    }
}
