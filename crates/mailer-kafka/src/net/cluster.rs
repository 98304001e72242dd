//! A cluster: its brokers, who leads what, and a connection to each.

use super::{Address, Connection, Settings};
use crate::client::{Failure, Topic};
use std::sync::Arc;

/// A broker as metadata shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broker {
    pub(crate) id: i32,
    pub(crate) address: Address,
    pub(crate) rack: Option<String>,
}

/// Who leads a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) broker: i32,
    /// -1 where the broker does not tell it.
    pub(crate) epoch: i32,
}

/// Whose coordinator is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoordinatorOf<'a> {
    Group(&'a str),
    Transactions(&'a str),
}

/// A cluster that was reached. Shared by everything of one connector.
pub(crate) struct Cluster {}

impl Cluster {
    /// Finds the cluster through its bootstrap servers: each of them and each of their addresses in turn, with growing pauses,
    /// until the request timeout has passed. What cannot change by waiting (a refused login) ends it at once.
    pub(crate) async fn connect(settings: Settings) -> Result<Arc<Self>, Failure> {
        unimplemented!()
    }

    pub(crate) fn settings(&self) -> &Settings {
        unimplemented!()
    }

    /// The connection to a broker that all share: for short questions.
    pub(crate) async fn connection(&self, broker: i32) -> Result<Connection, Failure> {
        unimplemented!()
    }

    /// A connection of the caller's own: for fetching and producing. Attempts after a failure are paced with growing pauses.
    pub(crate) async fn open(&self, broker: i32) -> Result<Connection, Failure> {
        unimplemented!()
    }

    /// A shared connection to any broker that answers.
    pub(crate) async fn any(&self) -> Result<Connection, Failure> {
        unimplemented!()
    }

    /// The brokers as last told.
    pub(crate) fn brokers(&self) -> Vec<Broker> {
        unimplemented!()
    }

    /// A topic as it is now: id and partitions; `None` when there is none. Never creates it.
    pub(crate) async fn topic(&self, name: &str) -> Result<Option<Topic>, Failure> {
        unimplemented!()
    }

    /// Who leads a partition, from the cache; asks when it is not there, too old, or was told to be wrong. A partition between
    /// two leaders is `Cause::Retriable`.
    pub(crate) async fn leader(&self, topic: &str, partition: i32) -> Result<Leader, Failure> {
        unimplemented!()
    }

    /// What the cache knows of a topic's partitions: enough to choose one. Asks when it knows nothing.
    pub(crate) async fn partitions(&self, topic: &str) -> Result<i32, Failure> {
        unimplemented!()
    }

    /// A broker said (NOT_LEADER, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC, or no answer at all) that `seen` leads no more: the next
    /// look asks anew, unless a newer leader is known already.
    pub(crate) fn leader_is_wrong(&self, topic: &str, partition: i32, seen: Leader) {
        unimplemented!()
    }

    /// A broker named the new leader beside its error (KIP-951); taken when its epoch is newer.
    pub(crate) fn leader_is(&self, topic: &str, partition: i32, leader: Leader) {
        unimplemented!()
    }

    /// Asks anew about all topics that were asked for. Callers at the same time share one request.
    pub(crate) async fn refresh(&self) -> Result<(), Failure> {
        unimplemented!()
    }

    /// Which broker coordinates a group or a transactional id now. Not cached: the caller keeps it while it works.
    pub(crate) async fn coordinator(&self, of: CoordinatorOf<'_>) -> Result<i32, Failure> {
        unimplemented!()
    }
}
