//! The seam: everything the connectors need of a Kafka cluster, in our own words.
//!
//! Metadata, offsets, groups, configurations and topics ([`Client`]), identities to write under ([`Identity`]) and transactions
//! ([`Transactions`]), on the connections of `net`. [`Failure`] says what went wrong in terms a caller can act on.

mod codes;
mod configs;
mod connect;
mod deliver;
mod failure;
#[cfg(test)]
mod faults;
mod groups;
mod offsets;
mod producer;
#[cfg(test)]
mod real;
mod retry;
mod seen;
mod topics;
mod transactions;
mod writer;

pub(crate) use deliver::{OnSent, after as sequence_after, failure as produce_failure};
pub(crate) use failure::{Cause, Failure};
pub(crate) use producer::Identity;
pub(crate) use seen::TransactionSeen;
pub(crate) use transactions::Transactions;
pub(crate) use writer::WriterSettings;

use std::sync::Arc;
use std::time::Duration;

/// The name of a partition across the seam.
pub(crate) type Place<'a> = (&'a str, i32);

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
    cluster: Arc<crate::net::Cluster>,
    bootstrap: String,
    request_timeout: Duration,
}

impl Client {
    /// The cluster itself: leaders, coordinators, connections.
    pub(crate) fn net(&self) -> &Arc<crate::net::Cluster> {
        &self.cluster
    }
}
