//! Nodes: what a stage is made of. One virtual call per batch from a node to the next.

mod chain;
mod fanout;
mod plain_sink;
mod side;
mod staged_sink;

pub(crate) use chain::ChainNode;
pub(crate) use fanout::Fanout;
pub(crate) use plain_sink::PlainSink;
pub(crate) use side::{SideReader, Tagged};
pub(crate) use staged_sink::StagedSink;

use crate::report::PartKind;
use mailer_core::{Barrier, Batch, Clock, FlushJob, Result, SealJob, Timestamp, Watermark};
use mailer_state::{SnapshotJob, StateStore};
use std::sync::Arc;
use std::time::Duration;

/// Takes a stream of elements. The task calls [`Node::flush`] until it returns `true`, then exactly one other method: so
/// a node has at most the output of one element to hold back, and nothing is held back when a marker arrives.
pub(crate) trait Node<T>: Send {
    /// Drains `batch`.
    fn push(&mut self, batch: &mut Batch<T>, cx: &mut TaskContext) -> Result<()>;
    /// Moves what is held back; `true` when nothing is left and the next element may come.
    fn flush(&mut self, cx: &mut TaskContext) -> Result<bool>;
    /// The task has no input now: send partial batches instead of letting them wait.
    fn flush_partial(&mut self, cx: &mut TaskContext) -> Result<()>;
    fn watermark(&mut self, watermark: Watermark, cx: &mut TaskContext) -> Result<()>;
    fn idle(&mut self, cx: &mut TaskContext) -> Result<()>;
    /// Closes a checkpoint: write back state, hand over jobs, pass the barrier on.
    fn barrier(&mut self, barrier: Barrier, cx: &mut TaskContext) -> Result<()>;
    fn end(&mut self, cx: &mut TaskContext) -> Result<()>;
}

/// What a task lends to its nodes while it calls them.
pub(crate) struct TaskContext {
    /// The worker's keyed state.
    pub(crate) store: Box<dyn StateStore>,
    /// Payload bytes of one record of the batch in hand, as near as known.
    pub(crate) bytes_per_record: usize,
    /// Processing time: the clock when the step in hand began.
    pub(crate) now: Timestamp,
    /// Measures what lasts: waiting for room, writing state back.
    pub(crate) clock: Arc<dyn Clock>,
    /// Time spent on writing state back at the barrier in hand.
    pub(crate) flushing: Duration,
    /// Jobs handed over at the barrier in hand.
    pub(crate) jobs: Vec<PartJob>,
}

/// A part of a task's snapshot that is finished beside the worker.
pub(crate) enum PartJob {
    State(SnapshotJob),
    Flush(FlushJob),
    Seal { job: SealJob, bytes: usize },
}

impl PartJob {
    pub(crate) fn kind(&self) -> PartKind {
        match self {
            PartJob::State(_) => PartKind::State,
            PartJob::Flush(_) => PartKind::Flush,
            PartJob::Seal { .. } => PartKind::Seal,
        }
    }
}

/// The store of a task without keyed state: being asked is a bug of the planner.
pub(crate) struct NoStore;

impl NoStore {
    fn refuse<T>() -> Result<T> {
        Err(mailer_core::Error::internal("a stateless task was asked for keyed state"))
    }
}

impl StateStore for NoStore {
    fn get(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<bool> {
        Self::refuse()
    }

    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
        Self::refuse()
    }

    fn delete(&mut self, _: &[u8]) -> Result<()> {
        Self::refuse()
    }

    fn scan(&mut self, _: &[u8], _: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        Self::refuse()
    }

    fn snapshot(&mut self, _: mailer_core::CheckpointId) -> Result<SnapshotJob> {
        Self::refuse()
    }
}
