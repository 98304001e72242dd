//! The source contract: splits with positions.

use crate::{Batch, CheckpointId, Result, WorkerContext};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt;

/// Names one independently positioned part of a source: a Kafka partition, a file, a range of a generator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SplitId {
    /// Stable name; positions are stored under it (`orders-3`).
    pub name: String,
    /// Stable number; worker `index % workers` reads the split.
    pub index: u32,
}

impl SplitId {
    /// A split called `name`, read by worker `index % workers`.
    pub fn new(name: impl Into<String>, index: u32) -> Self {
        Self { name: name.into(), index }
    }
}

impl fmt::Display for SplitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Where reading of a split begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAt<P> {
    /// A first start: at the place the source is configured to start from, resolved now.
    Configured,
    /// The split appeared while the job runs: at its beginning, so that nothing in it is missed.
    Discovered,
    /// At a position out of a checkpoint.
    Position(P),
}

/// What a source knows of one of its splits, for watermarks: only a split that is caught up can be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitState {
    /// There is, or may be, more to hand out now.
    Reading,
    /// Everything the split holds now has been handed out.
    CaughtUp,
    /// It will never have more: it holds no watermark back.
    Ended,
}

/// What one call of [`Source::poll`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Polled {
    /// The batch holds records of this split.
    Records {
        /// The split the whole batch came from.
        split: SplitId,
        /// Payload bytes of the batch, as near as the source knows them; edges are bounded by it.
        bytes: usize,
    },
    /// Nothing now; the source wakes the worker ([`WorkerContext::waker`]) when there is.
    Nothing {
        /// The source has read everything its splits hold (as opposed to: is waiting for an answer).
        caught_up: bool,
    },
    /// True end of input: no split of this instance will ever have more.
    Ended,
}

/// Reads splits. One instance per worker, on the worker's thread; no call waits except
/// [`Source::splits`] and [`Source::assign`] while the job starts.
///
/// **Resuming:** `assign(split, StartAt::Position(p))` with `p` from [`Source::position`] yields exactly the records that
/// had not been handed out when `position` was called: nothing twice, nothing lost.
pub trait Source: Send + 'static {
    /// What it reads.
    type Item: Send + 'static;
    /// Where in a split it stands; stored in checkpoints under (source name, split name).
    type Position: Serialize + DeserializeOwned + Clone + fmt::Debug + Send + 'static;

    /// All splits known now, of all workers. May grow. The first call may wait for an answer; later ones return what
    /// background discovery has found.
    fn splits(&mut self) -> Result<Vec<SplitId>>;

    /// Takes a split over and returns its resolved position. Everything the position promises is checked here (it exists,
    /// it has not been deleted or truncated away) and refused with what to change.
    fn assign(&mut self, split: &SplitId, start: StartAt<Self::Position>) -> Result<Self::Position>;

    /// Appends records of **one** split to the empty `out`, at most [`crate::MAX_BATCH_RECORDS`] and about
    /// [`crate::MAX_BATCH_BYTES`]. Never waits.
    fn poll(&mut self, out: &mut Batch<Self::Item>) -> Result<Polled>;

    /// The position behind the last record handed out of `split`.
    fn position(&self, split: &SplitId) -> Self::Position;

    /// What is known of a split now; asked after a poll. `None`: only what [`Polled::Nothing`] says of the instance.
    fn split_state(&self, _split: &SplitId) -> Option<SplitState> {
        None
    }

    /// Records of the split that are waiting to be read, where the source can tell.
    fn lag(&self, _split: &SplitId) -> Option<u64> {
        None
    }

    /// Where it stands in the split as one number that only grows: an offset, bytes, records; for those who watch. `None`
    /// where its position is not such a number.
    fn offset(&self, _split: &SplitId) -> Option<u64> {
        None
    }

    /// Stops handing out records of one split, or goes on: its event time is too far ahead of the others. `false` when
    /// the source cannot do that: the job then refuses to align it.
    fn pause(&mut self, _split: &SplitId, _paused: bool) -> bool {
        false
    }

    /// A checkpoint whose positions were taken by `position` is completed: for outside monitors only (group offsets).
    fn on_completed(&mut self, _id: CheckpointId) -> Result<()> {
        Ok(())
    }
}

/// Makes one [`Source`] per worker, again at every restart.
pub trait SourceFactory: Send + Sync + 'static {
    /// The source it makes.
    type Source: Source;

    /// Makes the instance for one worker. May wait for the outside to answer.
    fn build(&self, context: &WorkerContext) -> Result<Self::Source>;

    /// Whether [`StartAt::Position`] is honoured. `false` under an exactly-once sink is a planning error.
    fn is_replayable(&self) -> bool {
        true
    }

    /// One line for `explain`: `kafka orders@localhost:9092`.
    fn describe(&self) -> String;
}
