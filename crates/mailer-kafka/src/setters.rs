//! Setters that several builders have, written once: how to reach the cluster, and in what format to write.
//!
//! Macros, because the builders are types of their own: a trait would have to be imported by whoever calls a setter.

/// The setters of a [`Connection`](crate::connection::Connection), which the builder has in `$connection`.
macro_rules! connection_setters {
    ($($connection:ident).+, $property:literal) => {
        /// The client id brokers see in their logs and quotas. Default: `mailer`.
        #[must_use]
        pub fn client_id(mut self, id: impl Into<String>) -> Self {
            self.$($connection).+.client_id = id.into();
            self
        }

        /// How long one request may take, and how long the start waits for a broker. Default: 30 s.
        #[must_use]
        pub fn request_timeout(mut self, timeout: std::time::Duration) -> Self {
            self.$($connection).+.request_timeout = timeout;
            self
        }

        /// TLS and SASL. Default: neither. The same can be said with options such as `security.protocol`, not with both.
        #[must_use]
        pub fn security(mut self, security: crate::security::Security) -> Self {
            self.$($connection).+.security = Some(security);
            self
        }

        #[doc = concat!("Passes a Kafka property through, e.g. `", $property, "`. Unknown names, and names a setter owns, are")]
        /// refused when the job starts.
        #[must_use]
        pub fn option(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
            self.$($connection).+.set(key, value);
            self
        }
    };
}

/// The formats of a sink, which turns its `encode` into another with a private `map`. `$new` makes one, for examples.
macro_rules! format_setters {
    ($sink:ident, $new:literal) => {
        /// Values are written as JSON.
        pub fn json(self) -> $sink<crate::AsJson> {
            self.map(|_| crate::AsJson)
        }

        /// Values are written as they are: strings, byte vectors.
        pub fn bytes(self) -> $sink<crate::AsBytes> {
            self.map(|_| crate::AsBytes)
        }

        /// Values are written as protobuf messages.
        pub fn protobuf(self) -> $sink<crate::AsProtobuf> {
            self.map(|_| crate::AsProtobuf)
        }

        /// Items are [`crate::KafkaRecord`]s, as a source without a format makes them: written with their key, value and
        /// headers. The key chooses the partition, event time is the timestamp.
        ///
        /// ```
        #[doc = concat!("use mailer_kafka::{KafkaSource, ", stringify!($sink), "};")]
        /// let orders = KafkaSource::new("localhost:9092", "orders");
        #[doc = concat!("let mirror = ", $new, ".records();")]
        /// ```
        pub fn records(self) -> $sink<crate::AsRecord> {
            self.map(|_| crate::AsRecord)
        }

        /// Items are [`crate::DeadLetter`]s, as [`crate::KafkaSource::dead_letters`] makes them: written with key, value and
        /// headers of the record, and with its provenance in further headers.
        pub fn dead_letters(self) -> $sink<crate::AsDeadLetter> {
            self.map(|_| crate::AsDeadLetter)
        }

        /// Items are `Option`s; `None` is written as a tombstone. Call it behind `json`, `bytes` or `protobuf`.
        pub fn or_tombstone(self) -> $sink<crate::OrTombstone<E>> {
            self.map(crate::OrTombstone)
        }

        /// Items are pairs `(Option<K>, Option<V>)`: the key in this format, the value in the sink's; `None` is Kafka's
        /// null.
        ///
        /// ```
        #[doc = concat!("use mailer_kafka::{AsBytes, ", stringify!($sink), "};")]
        /// // (Option<String>, Option<f64>)
        #[doc = concat!("let prices = ", $new, ".json().pairs(AsBytes);")]
        /// ```
        pub fn pairs<K>(self, key: K) -> $sink<crate::Pairs<K, E>> {
            self.map(|value| crate::Pairs { key, value })
        }

        /// `encode` makes the whole record: key, value, headers, timestamp, partition.
        pub fn encode<T, F>(self, encode: F) -> $sink<crate::Custom<F>>
        where
            F: Fn(&mailer_core::Record<T>) -> mailer_core::Result<crate::OutRecord> + Clone + Send + Sync + 'static,
        {
            self.map(|_| crate::Custom(encode))
        }

        /// Gives every record a key.
        pub fn key<T, K, F>(self, key: F) -> $sink<crate::WithKey<E, F>>
        where
            K: AsRef<[u8]>,
            F: Fn(&T) -> K + Clone + Send + Sync + 'static,
        {
            self.map(|encode| crate::WithKey { encode, key })
        }
    };
}

pub(crate) use {connection_setters, format_setters};
