//! Checkpoint ids and the in-band elements of an edge.

use crate::{Batch, Watermark};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Names one checkpoint of a job. Ids grow and are never used twice; 0 means "none yet".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CheckpointId(pub u64);

impl CheckpointId {
    /// The id after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts the owners of a checkpoint root: every start of a job takes the next one. A higher epoch fences a lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OwnerEpoch(pub u64);

impl fmt::Display for OwnerEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a barrier was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierKind {
    /// An ordinary checkpoint.
    Checkpoint,
    /// The last barrier of a run: after it every task finishes. End of input, drain and savepoint-and-stop send it.
    Final,
}

/// Separates what belongs to a checkpoint from what follows. Never overtakes a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Barrier {
    /// The checkpoint this barrier closes.
    pub checkpoint: CheckpointId,
    /// Why it was sent.
    pub kind: BarrierKind,
}

/// What an edge carries, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Element<T> {
    /// Records.
    Batch(Batch<T>),
    /// Event time has moved.
    Watermark(Watermark),
    /// This input has nothing to say and must not hold the watermark back.
    Idle,
    /// See [`Barrier`].
    Barrier(Barrier),
    /// Nothing follows. Always after a [`BarrierKind::Final`] barrier.
    End,
}
