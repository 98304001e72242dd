//! A light Kafka source and sink for Mailer, on `rskafka`: plain topics, at least once.
//!
//! [`KafkaSource`] and [`KafkaSink`] have the names they have in `mailer-kafka`, and the setters both have in common: a
//! program changes from one connector to the other in its `use` line.
//!
//! ```
//! use mailer_rskafka::{KafkaSink, KafkaSource, Start}; // or: use mailer_kafka::{KafkaSink, KafkaSource, Start};
//!
//! let orders = KafkaSource::new("localhost:9092", "orders").start(Start::Earliest).string();
//! let lengths = KafkaSink::new("localhost:9092", "lengths").json().key(|order: &String| order.clone());
//! ```
//!
//! # When it is enough, and when not
//!
//! It is enough for topics that no transaction writes to, on brokers without TLS and passwords, in jobs whose output may
//! be repeated after a crash. It needs no transaction, no group, no idempotent producer; rskafka has none of them.
//!
//! - **A topic that holds transaction markers is refused**, with an error that points to `mailer-kafka`: rskafka cannot
//!   read a marker, and does not leave out aborted records. A partition is refused before its first record when its last
//!   entry is a marker, as it is behind a finished transaction. One further in ends the job when it is reached, and an open
//!   transaction does when it is the next to be read. Until then records of an aborted transaction may have been handed
//!   out, if it is longer than [`KafkaSource::max_partition_fetch_bytes`]; no position is ever behind a marker.
//! - **Of several headers with one name the last one is kept**, and their order is lost: rskafka keeps headers in a map.
//!   `mailer-kafka` keeps all, in order. A record with a null header cannot be read, and is refused like a marker.
//! - Timestamps of a topic with `message.timestamp.type=LogAppendTime` are the producer's, not the broker's.
//! - A retry of the sink may write records twice, without a crash.
//! - Partitions are those that exist when the job starts.
//! - A topic that was deleted and created again is not noticed: rskafka knows no topic ids.

mod connection;
mod failure;
mod io;
mod partitioner;
mod record;
mod sink;
mod source;

pub use record::{KafkaRecord, OutRecord};
pub use sink::{Format, KafkaSink, KafkaWriter};
pub use source::{KafkaReader, KafkaSource, Position, Start};
