//! What the scheduler needs of a broker, and nothing more: events come in, short commands go out, answers are events.
//!
//! No command waits. A slow broker therefore delays its own answer and nothing else. The Kafka binding, the in-memory
//! [`testing`](crate::testing) source and the simulation implement the same trait.

use crate::{Error, Options, Partition, Record};
use std::fmt;
use std::future::Future;
use std::task::{Context, Poll};
use std::time::Duration;

/// A member of a consumer group, as the scheduler sees it.
///
/// The contract:
/// - After [`pause`](Source::pause) no [`Event::Records`] of that partition may follow until
///   [`resume`](Source::resume): what was fetched already waits inside the source (which bounds it).
/// - One `Records` event carries at most [`Options::poll_bytes`], unless one record alone is larger.
/// - Every [`commit`](Source::commit) is answered by exactly one [`Event::Committed`], also when the partition has gone.
/// - A partition named in [`Event::Revoked`] stays with this member until [`release`](Source::release) names it; then
///   the source lets the rebalance go on. Commits issued before `release` must still reach the broker.
/// - After [`close`](Source::close) the source leaves the group and ends with [`Event::Closed`].
pub trait Source: Send + 'static {
    /// The next event. Whoever polls does not poll again after [`Event::Closed`].
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event>;
    /// Deliver nothing of this partition until `resume`.
    fn pause(&mut self, partition: &Partition);
    /// Deliver again.
    fn resume(&mut self, partition: &Partition);
    /// Begin to commit; the answer is an event.
    fn commit(&mut self, commit: OffsetCommit);
    /// This member is done with revoked partitions.
    fn release(&mut self, partitions: &[Partition]);
    /// Leave the group (a static member only disconnects) and end.
    fn close(&mut self);
}

/// What happens at the broker.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The group has given partitions to this member, in addition to those it has. An empty list means: joined, and
    /// standing by.
    Assigned(Vec<Assignment>),
    /// Records of one partition, in the order of their offsets.
    Records(Fetched),
    /// The group asks for partitions back; they are this member's until it releases them.
    Revoked(Vec<Partition>),
    /// Partitions are another member's already: nothing may be committed for them.
    Lost(Vec<Partition>),
    /// The position of a partition was reset, because its offset is not in the log: it goes on there.
    Reset {
        /// Which partition.
        partition: Partition,
        /// The offset of the next record that will be fetched.
        position: i64,
    },
    /// The answer to a commit.
    Committed {
        /// Which partition.
        partition: Partition,
        /// The offset that was to be committed.
        offset: i64,
        /// Whether the broker has it.
        result: Result<(), CommitError>,
    },
    /// Something at the broker did not work; the source goes on trying. `Healthy` ends it.
    PollFailed(String),
    /// The broker answered: fetches and heartbeats work.
    Healthy,
    /// The source cannot go on: not authorised, fenced, topic deleted.
    Failed(Error),
    /// The source has ended after `close`.
    Closed,
}

/// Records of one partition and where fetching stands behind them.
#[derive(Debug)]
pub struct Fetched {
    /// Which partition.
    pub partition: Partition,
    /// Its records, offsets rising. May be empty, when only the position moved (transaction markers, compaction).
    pub records: Vec<Record>,
    /// The offset of the next record that will be fetched: behind the records and behind markers that follow them.
    pub next: i64,
    /// The end of the log, as far as known (the last stable offset under read_committed).
    pub log_end: Option<i64>,
    /// The broker that sent them, where known.
    pub broker: Option<i32>,
}

/// A partition as it is given to this member.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Which partition.
    pub partition: Partition,
    /// The id of the topic; all zero where the broker does not know ids.
    pub topic_id: [u8; 16],
    /// The offset where fetching begins: that of the commit, or where the reset policy says.
    pub position: i64,
    /// The metadata string of the group's commit at `position`; empty where there is none.
    pub metadata: String,
    /// The end of the log; `None` where it could not be asked for, and then no offset map is believed.
    pub log_end: Option<i64>,
}

/// What is to be committed for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetCommit {
    /// Which partition.
    pub partition: Partition,
    /// The offset of the first record that is not complete.
    pub offset: i64,
    /// The offset map, or empty.
    pub metadata: String,
}

/// Why a commit did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitError {
    /// What to do about it.
    pub kind: CommitErrorKind,
    /// The broker's words.
    pub message: String,
}

/// What follows a failed commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitErrorKind {
    /// Try again with the next interval.
    Retriable,
    /// The metadata is longer than the broker takes: send the offset again without it.
    MetadataTooLarge,
    /// The partition is not this member's any more: a rebalance will say so.
    NotOwned,
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommitError {}

/// How a [`Source`] comes to be: the builder holds the plan, `build` carries it out.
pub trait Connect: Send + 'static {
    /// What it makes.
    type Source: Source;
    /// Connects, checks options and credentials against the broker, and begins to join the group.
    fn connect(self, options: &Options) -> impl Future<Output = Result<Self::Source, Error>> + Send;
    /// How long the group waits for this member in a rebalance, which must be longer than the drain timeout; `None`
    /// where nothing waits.
    fn rebalance_timeout(&self) -> Option<Duration> {
        None
    }
    /// What is wrong with its own options; `build` reports it with everything else, before anything connects.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A source that is there already, such as one in memory.
#[derive(Debug)]
pub struct Connected<S>(pub S);

impl<S: Source> Connect for Connected<S> {
    type Source = S;
    async fn connect(self, _: &Options) -> Result<S, Error> {
        Ok(self.0)
    }
}
