//! Where a job stands, for people and for tests. Counters are updated per batch.

pub(crate) use super::counters::{RunCounters, SourceMeter, Spent, StageMeter};

use super::errors::ErrorStatus;
use super::publishes::PublishStatus;
use super::timeline::CheckpointStatus;
use crate::bottleneck::Bottleneck;
use mailer_core::{CheckpointId, ErrorKind, Timestamp, Watermark};
use std::time::Duration;

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Recovering, or building its tasks.
    Starting,
    /// Tasks run.
    Running,
    /// A stop was asked for.
    Stopping,
    /// Waiting for the restart delay.
    Restarting,
    /// Ended by itself or by a drain; everything is published.
    Finished,
    /// Stopped at once.
    Stopped,
    /// Ended by an error.
    Failed,
    /// A target will never take what was decided; a person must repair it. See [`JobStatus::error`].
    Blocked,
}

impl JobState {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Starting,
        Self::Running,
        Self::Stopping,
        Self::Restarting,
        Self::Finished,
        Self::Stopped,
        Self::Failed,
        Self::Blocked,
    ];

    /// Its name in metrics and in the JSON of the dashboard.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Restarting => "restarting",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }

    /// Whether the job has ended.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Stopped | Self::Failed | Self::Blocked)
    }
}

/// What recovery found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// When it was done, in milliseconds since the Unix epoch.
    pub at: Timestamp,
    /// The error that ended the run before; `None` at the first start.
    pub after: Option<String>,
    /// The checkpoint the run started from; `None` for a fresh start.
    pub from: Option<CheckpointId>,
    /// Its output had been decided but was not known to be visible; it is now.
    pub rolled_forward: bool,
    /// Sources and operators whose state was found.
    pub restored: Vec<String>,
    /// Those that begin empty.
    pub new: Vec<String>,
    /// State in the checkpoint that the program does not use any more.
    pub dropped: Vec<String>,
    /// From the lock to tasks ready to run.
    pub took: Duration,
}

/// A stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageStatus {
    /// Its name in the plan.
    pub name: String,
    /// Its workers.
    pub workers: u16,
    /// Records taken in.
    pub records: u64,
    /// How far event time has come at its slowest worker, in milliseconds since the Unix epoch; `None` before the first
    /// watermark, `i64::MAX` at true end of input.
    pub watermark: Option<Timestamp>,
    /// Records reach it by key.
    pub is_keyed: bool,
    /// Time its workers have spent on writing keyed state back and freezing it, at barriers; zero without keyed state.
    pub flushing: Duration,
    /// Its workers one by one.
    pub by_worker: Vec<WorkerStatus>,
}

/// One worker of a stage, since the job was started or restarted.
///
/// The three times are what it spent; together they are less than the time that passed, because stages that share a
/// thread take turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Records taken in.
    pub records: u64,
    /// Batches they came in.
    pub batches: u64,
    /// How far event time has come here.
    pub watermark: Option<Timestamp>,
    /// Time spent working.
    pub busy: Duration,
    /// Time spent without input.
    pub waiting: Duration,
    /// Time spent with output that nobody takes.
    pub blocked: Duration,
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// The author's name.
    pub name: String,
    /// Its splits, by name; renewed a few times a second.
    pub splits: Vec<SplitStatus>,
}

/// A split of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitStatus {
    /// Its name.
    pub split: String,
    /// The worker that reads it.
    pub worker: u16,
    /// How far event time has come in it.
    pub watermark: Option<Watermark>,
    /// It has been silent for so long that it holds no watermark back.
    pub idle: bool,
    /// It is ahead of the others and waits for them.
    pub paused: bool,
    /// Records waiting to be read, where the source can tell.
    pub lag: Option<u64>,
    /// How far it has been read, where that is one number: an offset, bytes, records.
    pub position: Option<u64>,
}

/// What an operator has counted, over all workers and since the job was started or restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorStatus {
    /// The author's name.
    pub name: String,
    /// What was counted: `late`, `expired`, …
    pub counts: &'static str,
    /// How many.
    pub count: u64,
}

/// Keyed state, as the backend knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateStatus {
    /// The operator; `None` where the backend knows only of all together.
    pub operator: Option<String>,
    /// Entries: values by key, window and state. An estimate where `operator` is `None`.
    pub entries: u64,
    /// Bytes of keys and values. An estimate where `operator` is `None`.
    pub bytes: u64,
}

/// How often an operator asked its keyed state for an entry, up to the last barrier of each worker and since the job was
/// started or restarted. Windows, which hold all of theirs in memory, say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupStatus {
    /// The author's name.
    pub operator: String,
    /// The entry was there, decoded.
    pub hits: u64,
    /// The backend had to be asked.
    pub misses: u64,
}

/// A source that has records and does not move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingSource {
    /// The author's name.
    pub source: String,
    /// For how long.
    pub standing: Duration,
    /// What it waits for.
    pub waits_for: String,
}

/// A sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkStatus {
    /// The author's name.
    pub name: String,
    /// Records accepted (staged, for an exactly-once sink).
    pub records: u64,
}

/// An edge: all rings between two stages together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeStatus {
    /// `from→to`.
    pub name: String,
    /// The stage that sends.
    pub from: String,
    /// The stage that receives.
    pub to: String,
    /// Elements queued.
    pub batches: usize,
    /// Most elements it may queue.
    pub capacity_batches: usize,
    /// Bytes queued.
    pub bytes: usize,
    /// Most bytes it may queue.
    pub capacity_bytes: usize,
    /// Records sent into it.
    pub records: u64,
    /// How often a sender was refused.
    pub refused: u64,
    /// Time in which a sender had something that did not fit: of all senders together.
    pub blocked: Duration,
}

impl EdgeStatus {
    /// How full it is, from 0 to 1, by whichever of its bounds is nearer.
    pub fn fullness(&self) -> f64 {
        let share = |used: usize, most: usize| if most == 0 { 0.0 } else { used as f64 / most as f64 };
        share(self.batches, self.capacity_batches).max(share(self.bytes, self.capacity_bytes)).min(1.0)
    }
}

/// A picture of a job.
#[derive(Clone, Debug)]
pub struct JobStatus {
    /// The job.
    pub job: String,
    /// What it is doing.
    pub state: JobState,
    /// Starts after a failure.
    pub restarts: u32,
    /// What the last start found.
    pub recovery: Option<RecoveryReport>,
    /// The coordinator's phase: idle, aligning, linking, linked, preparing, over.
    pub phase: &'static str,
    /// The checkpoint being published.
    pub publishing: Option<CheckpointId>,
    /// The newest completed checkpoint.
    pub last_completed: Option<CheckpointId>,
    /// Checkpoints completed since the job was started.
    pub completed: u64,
    /// Checkpoints that failed.
    pub failed: u64,
    /// Intervals that passed while a checkpoint was under way.
    pub skipped: u64,
    /// Bytes staged for the next barrier.
    pub staged_bytes: usize,
    /// Most bytes that may be staged; sources wait when they are used up.
    pub staging_budget: usize,
    /// What is slow, renewed every second while the job runs; `None` while it keeps up.
    pub bottleneck: Option<Bottleneck>,
    /// Sources in plan order.
    pub sources: Vec<SourceStatus>,
    /// Stages in plan order.
    pub stages: Vec<StageStatus>,
    /// Counters of operators, in plan order.
    pub operators: Vec<OperatorStatus>,
    /// Sinks in plan order.
    pub sinks: Vec<SinkStatus>,
    /// Edges in plan order.
    pub edges: Vec<EdgeStatus>,
    /// Keyed state at the last barrier, by operator where the backend can tell.
    pub state_sizes: Vec<StateStatus>,
    /// Look-ups of keyed state, by operator.
    pub lookups: Vec<LookupStatus>,
    /// The last checkpoints, oldest first.
    pub checkpoints: Vec<CheckpointStatus>,
    /// The last starts, oldest first.
    pub recoveries: Vec<RecoveryReport>,
    /// Targets of exactly-once output.
    pub publishes: Vec<PublishStatus>,
    /// Sources that have records and do not move.
    pub standing: Vec<StandingSource>,
    /// The last errors, oldest first.
    pub errors: Vec<ErrorStatus>,
    /// How many errors of each kind there were.
    pub error_counts: Vec<(ErrorKind, u64)>,
    /// The last error.
    pub error: Option<String>,
}

impl JobStatus {
    /// Before the first start.
    pub(crate) fn new(job: &str) -> Self {
        Self {
            job: job.to_owned(),
            state: JobState::Starting,
            restarts: 0,
            recovery: None,
            phase: "idle",
            publishing: None,
            last_completed: None,
            completed: 0,
            failed: 0,
            skipped: 0,
            staged_bytes: 0,
            staging_budget: 0,
            bottleneck: None,
            sources: Vec::new(),
            stages: Vec::new(),
            operators: Vec::new(),
            sinks: Vec::new(),
            edges: Vec::new(),
            state_sizes: Vec::new(),
            lookups: Vec::new(),
            checkpoints: Vec::new(),
            recoveries: Vec::new(),
            publishes: Vec::new(),
            standing: Vec::new(),
            errors: Vec::new(),
            error_counts: Vec::new(),
            error: None,
        }
    }
}
