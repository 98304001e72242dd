//! What tasks and jobs beside them tell the coordinator's executor. Markers travel in band; only this goes beside.

use crate::coordinator::{PublishFigures, Ticket};
use crate::task::Place;
use mailer_checkpoint::manifest::{Kind, Split};
use mailer_core::{CheckpointId, Error, PublishedId, Result, Segment, Watermark};
use mailer_state::{SnapshotPart, StateSnapshot};

/// One message.
pub(crate) enum Report {
    /// A task has passed the barrier of `id`; `parts` jobs follow.
    Snapshot {
        id: CheckpointId,
        positions: Option<SourcePositions>,
        reached: Reached,
        parts: Vec<PartKind>,
    },
    /// One of them is done.
    Part {
        id: CheckpointId,
        place: Place,
        kind: PartKind,
        result: Result<PartDone, PartFailed>,
    },
    /// A source instance has truly ended.
    SourceEnded,
    /// A task will not step again.
    TaskFinished,
    /// Steps of the coordinator's own work.
    Linked {
        id: CheckpointId,
        result: Result<StateSnapshot>,
    },
    Prepared {
        id: CheckpointId,
        result: Result<()>,
    },
    Published {
        id: CheckpointId,
        target: usize,
        result: Result<(PublishedId, PublishFigures)>,
    },
    Completed {
        id: CheckpointId,
        result: Result<()>,
    },
    /// From the job handle.
    Trigger {
        kind: Kind,
        ticket: Ticket,
    },
    Stop {
        kind: Kind,
    },
    /// Stop at once: nothing is drained, the newest checkpoint counts.
    StopNow,
    Failed(Error),
}

/// Where the splits of one source instance stood at a barrier.
pub(crate) struct SourcePositions {
    pub(crate) source: String,
    pub(crate) splits: Vec<Split>,
}

/// How far event time had come at the gate of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached {
    pub(crate) place: Place,
    pub(crate) watermark: Watermark,
}

/// What a part of a snapshot writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PartKind {
    State,
    Flush,
    Seal,
}

pub(crate) enum PartDone {
    State(SnapshotPart),
    Flushed,
    Sealed(Vec<Segment>),
}

pub(crate) struct PartFailed {
    pub(crate) error: Error,
    pub(crate) lost: bool,
}
