//! Kafka for Mailer: a replayable source, an idempotent sink, and an exactly-once sink.
//!
//! - [`KafkaSource`] reads the partitions of one or several topics. The engine assigns them and keeps their positions in
//!   its checkpoints; there is no consumer group. Only committed records are read.
//! - [`KafkaSink`] writes at least once: idempotent, acknowledged by all replicas in sync before a checkpoint completes.
//! - [`TransactionalKafkaSink`] writes exactly once: output is staged with the checkpoint and published in one short
//!   transaction that also carries a marker record. After a crash the marker says what was published.
//! - [`KafkaAdmin`] is for tools: a look at topics, rights and transactions.
//! - [`Security`] says whom they trust and who they are: TLS, and SASL with a password or a token.
//!
//! What it is not: a general Kafka client. It creates no topic but its marker topic (`__mailer_marker.<job>`), knows no
//! schema registry, and balances no group.
//!
//! ```
//! use mailer_kafka::{KafkaSource, Start, TransactionalKafkaSink};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize)]
//! struct Order { user: String, total: f64 }
//! #[derive(Serialize)]
//! struct Total { user: String, total: f64 }
//!
//! let orders = KafkaSource::new("localhost:9092", "orders").start(Start::Earliest).json::<Order>();
//! let totals = TransactionalKafkaSink::new("localhost:9092", "totals", "order-totals")
//!     .option("compression.type", "zstd")
//!     .json()
//!     .key(|total: &Total| total.user.clone());
//! ```
//!
//! Both go to `mailer-runtime`: a source where a stream begins, a sink where it ends.
//!
//! Inside: `batch` is the record format, without I/O; everything above the private module `client` is written against it
//! and knows no client library; tokio runs on two threads of its own (`runtime`), and the data path meets it only at bounded
//! queues. Records are unpacked and decoded on the worker's thread, straight from the response they came in.

mod admin;
mod batch;
mod client;
mod connection;
mod dead_letter;
mod encode;
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod net;
mod options;
mod partitioner;
mod record;
mod runtime;
mod security;
mod setters;
mod sink;
mod source;
mod spares;
mod topics;
mod transactional;

pub use admin::{KafkaAdmin, KafkaTransaction, TopicSeen};
pub use dead_letter::{
    AsDeadLetter, DEAD_LETTER_ERROR, DEAD_LETTER_OFFSET, DEAD_LETTER_PARTITION, DEAD_LETTER_TIMESTAMP,
    DEAD_LETTER_TOPIC, DeadLetter,
};
pub use encode::{
    AsBytes, AsJson, AsProtobuf, AsRecord, Custom, Encode, EncodeValue, Encoded, OrTombstone, Pairs, Unformatted,
    WithKey,
};
pub use record::{Headers, KafkaRecord, OutRecord};
pub use security::{OidcClientCredentials, Pem, Sasl, Security, Token};
pub use sink::{KafkaSink, KafkaWriter};
pub use source::{
    DeadLetters, Decode, Json, KafkaReader, KafkaSource, KeyedBy, Mapped, OnError, OnMissingOffset, OrNull, Parse,
    Plain, Position, Protobuf, Raw, RecordRef, Skipped, Start, Text, Timestamped, Value,
};
pub use transactional::{KafkaStager, TransactionalKafkaSink};
