//! The status of a job while it changes: told by supervisor and executor, read by whoever asks.

use super::counters::RunCounters;
use super::errors::ErrorLog;
use super::publishes::Publishes;
use super::status::{JobState, JobStatus, RecoveryReport, StandingSource};
use super::timeline::Timeline;
use crate::bottleneck::Bottleneck;
use crate::executor::AssignedSplit;
use crate::shared::lock;
use mailer_core::{CheckpointId, Clock, Error, SystemClock};
use std::collections::VecDeque;
use std::sync::Mutex;

/// So many starts are remembered.
const RECOVERIES: usize = 10;

pub(crate) struct StatusBoard {
    board: Mutex<Board>,
    publishes: Publishes,
}

struct Board {
    status: JobStatus,
    run: RunCounters,
    timeline: Timeline,
    errors: ErrorLog,
    recoveries: VecDeque<RecoveryReport>,
    /// Dates what happens between runs, when no driver has a clock.
    clock: SystemClock,
}

impl Board {
    fn fill(&mut self, publishes: &Publishes) {
        self.run.read_into(&mut self.status);
        for (at, kind, message) in publishes.take_troubles() {
            self.errors.note_text(at, "publish", kind, message);
        }
        self.status.checkpoints = self.timeline.snapshot();
        self.status.recoveries = self.recoveries.iter().cloned().collect();
        self.status.publishes = publishes.snapshot();
        self.status.errors = self.errors.snapshot();
        self.status.error_counts = self.errors.counts();
    }

    /// The run has ended with an error.
    fn note_end(&mut self, error: &Error) {
        self.timeline.abandon(&format!("the run ended: {error}"));
        self.errors.note(self.clock.wall(), "run", error);
        self.status.error = Some(error.to_string());
    }
}

impl StatusBoard {
    pub(crate) fn new(job: &str) -> Self {
        let board = Board {
            status: JobStatus::new(job),
            run: RunCounters::default(),
            timeline: Timeline::default(),
            errors: ErrorLog::default(),
            recoveries: VecDeque::new(),
            clock: SystemClock::default(),
        };
        Self { board: Mutex::new(board), publishes: Publishes::default() }
    }

    pub(crate) fn snapshot(&self) -> JobStatus {
        let mut board = lock(&self.board);
        board.fill(&self.publishes);
        board.status.clone()
    }

    pub(crate) fn start_run(&self, run: RunCounters) {
        lock(&self.board).run = run;
    }

    /// Who reads what.
    pub(crate) fn splits(&self) -> Vec<AssignedSplit> {
        lock(&self.board).run.splits()
    }

    /// Where publish jobs count.
    pub(crate) fn publishes(&self) -> &Publishes {
        &self.publishes
    }

    pub(crate) fn note_look(&self, bottleneck: Option<Bottleneck>, standing: Vec<StandingSource>) {
        let mut board = lock(&self.board);
        board.status.bottleneck = bottleneck;
        board.status.standing = standing;
    }

    pub(crate) fn note_recovery(&self, report: RecoveryReport) {
        let mut board = lock(&self.board);
        let report = RecoveryReport { after: board.status.error.clone(), ..report };
        board.status.last_completed = report.from;
        board.recoveries.push_back(report.clone());
        while board.recoveries.len() > RECOVERIES {
            board.recoveries.pop_front();
        }
        board.status.recovery = Some(report);
    }

    pub(crate) fn set_state(&self, state: JobState) {
        lock(&self.board).status.state = state;
    }

    pub(crate) fn note_phase(&self, phase: &'static str, publishing: Option<CheckpointId>) {
        let mut board = lock(&self.board);
        board.status.phase = phase;
        board.status.publishing = publishing;
    }

    /// What the checkpoints of the run do.
    pub(crate) fn timeline<T>(&self, change: impl FnOnce(&mut Timeline) -> T) -> T {
        change(&mut lock(&self.board).timeline)
    }

    pub(crate) fn note_completed(&self, id: CheckpointId) {
        let mut board = lock(&self.board);
        board.status.completed += 1;
        board.status.last_completed = Some(id);
    }

    /// Checkpoints completed so far.
    pub(crate) fn completed(&self) -> u64 {
        lock(&self.board).status.completed
    }

    pub(crate) fn note_failed_checkpoint(&self, id: CheckpointId, error: &Error) {
        let mut board = lock(&self.board);
        board.status.failed += 1;
        let at = board.clock.wall();
        board.errors.note_text(at, "checkpoint", error.kind(), format!("checkpoint {id}: {error}"));
    }

    pub(crate) fn count_skipped(&self) {
        lock(&self.board).status.skipped += 1;
    }

    pub(crate) fn note_restart(&self, error: &Error) {
        let mut board = lock(&self.board);
        board.status.restarts += 1;
        board.status.state = JobState::Restarting;
        board.status.bottleneck = None;
        board.status.standing.clear();
        board.note_end(error);
    }

    /// The end: the last counts are kept, the run itself is let go.
    pub(crate) fn finish(&self, state: JobState, error: Option<&Error>) {
        let mut board = lock(&self.board);
        board.fill(&self.publishes);
        board.run = RunCounters::default();
        board.status.state = state;
        board.status.bottleneck = None;
        board.status.standing.clear();
        if let Some(error) = error {
            board.note_end(error);
        }
        board.timeline.abandon("the job was stopped");
    }
}
