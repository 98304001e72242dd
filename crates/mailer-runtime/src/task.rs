//! Tasks: running stages. One method, `step()`, that never waits; who calls it is the driver's business.

mod event_time;
mod source;
mod stage;

pub(crate) use event_time::EventTime;
pub(crate) use source::{RestoredSources, SourcePlace, SourceTask};
pub(crate) use stage::StageTask;

use crate::job::counters::{StageMeter, StateMeter};
use crate::node::{NoStore, PartJob, TaskContext};
use crate::report::{PartDone, PartFailed, Reached, Report, SourcePositions};
use crate::shared::JobShared;
use crate::store::MeteredStore;
use mailer_core::{Barrier, Result, Watermark};
use mailer_state::{SnapshotJob, SnapshotPart, StateStore};
use std::sync::Arc;
use std::time::Duration;

/// What a step achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Worked,
    /// There is nothing to take in.
    Waiting,
    /// There is no room for what is to go out.
    Blocked,
    Finished,
}

pub(crate) trait Task: Send {
    /// `stage[worker]`, for messages.
    fn name(&self) -> &str;
    fn step(&mut self) -> Result<Progress>;
    /// Where the batch in hand came from, for the message of a panic.
    fn origin(&self) -> String;
    /// Where its time is put down.
    fn meter(&self) -> &StageMeter;
}

/// What every task has, whatever its input.
pub(crate) struct TaskCore {
    pub(crate) name: String,
    pub(crate) context: TaskContext,
    pub(crate) stateful: bool,
    pub(crate) durable: bool,
    /// How much its store holds, put down at every barrier.
    pub(crate) state: StateMeter,
    /// The watermark of the checkpoint at this task's gate.
    pub(crate) restored: Watermark,
    pub(crate) place: Place,
    pub(crate) shared: Arc<JobShared>,
}

/// A stage and a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) stage: usize,
    pub(crate) worker: u16,
}

impl TaskCore {
    pub(crate) fn new(
        name: String,
        place: Place,
        store: Option<Box<dyn StateStore>>,
        durable: bool,
        state: StateMeter,
        restored: Watermark,
        shared: Arc<JobShared>,
    ) -> Self {
        let stateful = store.is_some();
        let store: Box<dyn StateStore> = match store {
            Some(store) => Box::new(MeteredStore::new(store, state.clone())),
            None => Box::new(NoStore),
        };
        let (now, clock, flushing) = (shared.clock.wall(), shared.clock.clone(), Duration::ZERO);
        let context = TaskContext { store, bytes_per_record: 0, now, clock, flushing, jobs: Vec::new() };
        Self { name, context, stateful, durable, state, restored, place, shared }
    }

    /// Reports the snapshot of `barrier` and starts its jobs. The nodes have handled the barrier already.
    fn hand_in(&mut self, barrier: Barrier, positions: Option<SourcePositions>, watermark: Watermark) -> Result<()> {
        if self.stateful && self.durable {
            self.freeze(barrier)?;
        }
        let jobs = std::mem::take(&mut self.context.jobs);
        let id = barrier.checkpoint;
        let reached = Reached { place: self.place, watermark };
        let parts = jobs.iter().map(PartJob::kind).collect();
        self.shared.report(Report::Snapshot { id, positions, reached, parts });
        for job in jobs {
            self.spawn(barrier, job);
        }
        Ok(())
    }

    /// Takes the store's part of the checkpoint, and puts down what the barrier has cost so far.
    fn freeze(&mut self, barrier: Barrier) -> Result<()> {
        let began = self.shared.clock.monotonic();
        self.state.set(self.context.store.usage());
        let job = self.context.store.snapshot(barrier.checkpoint)?;
        self.context.jobs.push(PartJob::State(job));
        let frozen = self.shared.clock.monotonic().saturating_sub(began);
        self.state.note_flush(std::mem::take(&mut self.context.flushing) + frozen);
        Ok(())
    }

    fn spawn(&self, barrier: Barrier, job: PartJob) {
        let shared = self.shared.clone();
        let (id, place, kind) = (barrier.checkpoint, self.place, job.kind());
        self.shared.spawn_beside(Box::new(move || {
            let result = run_part(job, &shared);
            shared.report(Report::Part { id, place, kind, result });
        }));
    }
}

fn run_part(job: PartJob, shared: &JobShared) -> Result<PartDone, PartFailed> {
    fail::fail_point!("snapshot-part");
    match job {
        PartJob::State(job) => run_state(job).map(PartDone::State).map_err(|error| PartFailed { error, lost: false }),
        PartJob::Flush(job) => job().map(|()| PartDone::Flushed).map_err(|error| PartFailed { error, lost: true }),
        PartJob::Seal { job, bytes } => {
            let sealed = job();
            shared.staged.remove(bytes);
            shared.wake_all();
            sealed.map(PartDone::Sealed).map_err(|error| PartFailed { error, lost: true })
        }
    }
}

fn run_state(job: SnapshotJob) -> Result<SnapshotPart> {
    fail::fail_point!("snapshot-state-error", |_| Err(mailer_core::Error::unavailable("injected: no space left")));
    job()
}
