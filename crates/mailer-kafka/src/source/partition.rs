//! One partition as the fetching task sees it. No I/O.

use super::health::Health;
use super::request::Part;
use crate::client::TopicId;
use crate::net::Leader;
use std::sync::Arc;
use std::time::Duration;

/// Where a partition stands between leader, request and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A leader has to be looked for. After trouble it is also checked whether topic and log are still those that were read.
    Lost { suspect: bool },
    /// Its leader or its offset is being looked up.
    Asked,
    /// It can be part of the next request to this broker.
    Ready(Served),
    /// It is part of a request that is on its way.
    Fetching(Served),
    /// It has been read to its end.
    Finished,
}

/// Who serves a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) leader: Leader,
    /// A replica that is nearer, and how long it is asked before the leader is asked for a better one.
    pub(crate) replica: Option<(i32, Duration)>,
}

impl Served {
    /// The broker to ask at `now`.
    pub(crate) fn broker(&self, now: Duration) -> i32 {
        match self.replica {
            Some((broker, until)) if now < until => broker,
            _ => self.leader.broker,
        }
    }
}

/// A partition being read.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    pub(crate) topic_id: TopicId,
    /// The next offset to fetch.
    pub(crate) next: i64,
    /// The leader epoch of what is before it.
    pub(crate) leader_epoch: Option<i32>,
    /// How far it may be read, as last told.
    pub(crate) end: Option<i64>,
    pub(crate) state: State,
    pub(crate) health: Health,
    /// After a failure, nothing is asked before this time.
    pub(crate) not_before: Duration,
    /// A stalled fetch is tried over a new connection at this time.
    pub(crate) reconnect_at: Duration,
    /// Bytes the next batch takes where it is larger than a fetch.
    pub(crate) needs: Option<i32>,
}

impl Partition {
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// The broker that serves it, when one does.
    pub(crate) fn broker(&self, now: Duration) -> Option<i32> {
        match self.state {
            State::Ready(served) | State::Fetching(served) => Some(served.broker(now)),
            _ => None,
        }
    }

    /// Becomes a part of a request, if it can.
    pub(crate) fn join(&mut self, slot: usize, partition_bytes: i32) -> Option<Part> {
        let State::Ready(served) = self.state else { return None };
        self.state = State::Fetching(served);
        Some(Part {
            slot,
            topic: self.topic.clone(),
            topic_id: self.topic_id,
            partition: self.partition,
            offset: self.next,
            leader_epoch: served.leader.epoch,
            max_bytes: self.needs.unwrap_or_default().max(partition_bytes),
        })
    }

    /// The request it was a part of is over. Returns who served it, unless nobody is interested any more.
    pub(crate) fn leave(&mut self) -> Option<Served> {
        let State::Fetching(served) = self.state else { return None };
        self.state = State::Ready(served);
        Some(served)
    }

    /// Whether the worker can have everything there is.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.is_finished() || (self.end.is_some_and(|end| self.next >= end) && self.health.is_well())
    }
}
