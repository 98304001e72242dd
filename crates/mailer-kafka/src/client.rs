//! The seam: everything this crate needs of a Kafka client, in our own words. Only the files below it name `krafka`.
//!
//! A codec of our own replaces these files and nothing else: metadata, offsets and topics ([`Client`]), reading
//! ([`Reader`]), idempotent writing ([`Writer`]), transactions ([`Transactions`]), and [`Failure`], which says what went wrong in terms a
//! caller can act on.

mod admin;
mod connect;
mod failure;
mod reader;
mod transactions;
mod writer;

pub(crate) use failure::{Cause, Failure};
pub(crate) use reader::{Progress, Reader, ReaderSettings};
pub(crate) use transactions::Transactions;
pub(crate) use writer::{Delivery, Writer, WriterSettings};

use std::time::Duration;

/// A topic's id; all zero where the broker does not tell it.
pub(crate) type TopicId = [u8; 16];

/// A topic as the cluster shows it now.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) id: TopicId,
    /// Their indexes, in order.
    pub(crate) partitions: Vec<i32>,
}

/// The cluster behind the bootstrap servers.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// `None` where the broker does not tell it.
    pub(crate) id: Option<String>,
    pub(crate) brokers: Vec<i32>,
}

/// Which offset of a partition to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The first that is still there.
    Earliest,
    /// The high watermark.
    HighWatermark,
    /// Where a read-committed reader stops: below any open transaction.
    LastStable,
    /// The first at or after this time; the caller handles "none so late".
    Timestamp(i64),
}

/// An offset that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) offset: i64,
    pub(crate) leader_epoch: Option<i32>,
}

/// A topic to be created.
#[derive(Clone, Debug)]
pub(crate) struct NewTopic {
    pub(crate) name: String,
    pub(crate) partitions: i32,
    pub(crate) replication: i16,
    pub(crate) configs: Vec<(&'static str, String)>,
}

/// A connected client: its own connections, shared by what is made from it.
pub(crate) struct Client {
    kafka: krafka::Kafka,
    admin: krafka::admin::AdminClient,
    bootstrap: String,
    request_timeout: Duration,
}
