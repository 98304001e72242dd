//! Between the job handle and the run behind it, which a restart replaces.

use super::board::StatusBoard;
use super::event::JobEvent;
use super::metrics::{Exporter, SharedRecorder};
use super::status::{JobState, JobStatus};
use crate::coordinator::Ticket;
use crate::report::Report;
use crate::shared::{JobShared, lock};
use mailer_checkpoint::manifest::Kind;
use mailer_core::{CheckpointId, Clock, Error, Result, SystemClock};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

/// Hears of everything that happens.
pub(crate) type Listener = Arc<dyn Fn(&JobEvent) + Send + Sync>;

/// Who is told what happens.
#[derive(Clone, Default)]
pub(crate) struct Audience {
    pub(crate) listener: Option<Listener>,
    pub(crate) recorders: Vec<SharedRecorder>,
}

pub(crate) struct JobControl {
    pub(crate) status: StatusBoard,
    listener: Option<Listener>,
    exporter: Mutex<Exporter>,
    clock: SystemClock,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    run: Option<Run>,
    /// The stop that was asked for; `StopNow` wins.
    stop: Option<StopRequest>,
    next_ticket: Ticket,
    answers: HashMap<Ticket, Option<Result<CheckpointId>>>,
    finished: bool,
}

impl Inner {
    fn request(&mut self, kind: Kind) -> Result<Ticket> {
        let Some(run) = &self.run else {
            let why = if self.finished { "the job has ended" } else { "the job is starting: try again" };
            return Err(Error::unavailable(why));
        };
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let _run_has_ended = run.reports.send(Report::Trigger { kind, ticket });
        self.answers.insert(ticket, None);
        Ok(ticket)
    }

    fn take_answer(&mut self, ticket: Ticket) -> Option<Result<CheckpointId>> {
        match self.answers.get(&ticket) {
            Some(Some(_)) => self.answers.remove(&ticket).flatten(),
            _ => None,
        }
    }
}

/// The run that listens now.
struct Run {
    reports: mpsc::Sender<Report>,
    shared: Arc<JobShared>,
}

impl Run {
    /// Recovery reads no reports: where it waits for a target, only the halt reaches it.
    fn stop(&self, report: Report) {
        let is_now = matches!(report, Report::StopNow);
        let _run_has_ended = self.reports.send(report);
        if is_now {
            self.shared.halt();
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum StopRequest {
    AtCheckpoint(Kind),
    Now,
}

impl JobControl {
    pub(crate) fn new(job: &str, audience: Audience) -> Arc<Self> {
        let Audience { listener, recorders } = audience;
        Arc::new(Self {
            status: StatusBoard::new(job),
            listener,
            exporter: Mutex::new(Exporter::new(recorders)),
            clock: SystemClock::default(),
            inner: Mutex::new(Inner::default()),
            changed: Condvar::new(),
        })
    }

    /// Brings the metrics up to date.
    pub(crate) fn export(&self, status: &JobStatus) {
        lock(&self.exporter).export(status, self.clock.wall());
    }

    pub(crate) fn export_now(&self) {
        self.export(&self.status.snapshot());
    }

    pub(crate) fn emit(&self, event: JobEvent) {
        tracing::info!(?event, "job event");
        if let Some(listener) = &self.listener {
            listener(&event);
        }
    }

    /// A new run listens now; a stop asked for before it counts for it too.
    pub(crate) fn attach(&self, reports: mpsc::Sender<Report>, shared: &Arc<JobShared>) {
        let mut inner = lock(&self.inner);
        let run = Run { reports, shared: shared.clone() };
        if let Some(stop) = inner.stop {
            run.stop(stop.report());
        }
        inner.run = Some(run);
        self.changed.notify_all();
    }

    /// The run has ended: who waits for one of its checkpoints is told so.
    pub(crate) fn detach(&self, why: &str) {
        let mut inner = lock(&self.inner);
        inner.run = None;
        for answer in inner.answers.values_mut().filter(|answer| answer.is_none()) {
            *answer = Some(Err(Error::unavailable(format!("the checkpoint was not completed: {why}"))));
        }
        self.changed.notify_all();
    }

    pub(crate) fn answer(&self, ticket: Ticket, result: Result<CheckpointId>) {
        if let Some(answer) = lock(&self.inner).answers.get_mut(&ticket) {
            *answer = Some(result);
            self.changed.notify_all();
        }
    }

    /// Asks for a checkpoint and waits for its completion. A job that starts or waits for its restart is waited for.
    pub(crate) fn trigger(&self, kind: Kind) -> Result<CheckpointId> {
        let between_runs = |inner: &mut Inner| inner.run.is_none() && !inner.finished;
        let inner = lock(&self.inner);
        let mut inner = self.changed.wait_while(inner, between_runs).unwrap_or_else(|poisoned| poisoned.into_inner());
        let ticket = inner.request(kind)?;
        loop {
            if let Some(answer) = inner.take_answer(ticket) {
                return answer;
            }
            inner = self.changed.wait(inner).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Asks for a checkpoint; [`JobControl::take_answer`] says what came of it.
    pub(crate) fn request(&self, kind: Kind) -> Result<Ticket> {
        lock(&self.inner).request(kind)
    }

    /// Asks for a checkpoint that nobody waits for.
    pub(crate) fn poke(&self, kind: Kind) -> Result<()> {
        let mut inner = lock(&self.inner);
        let ticket = inner.request(kind)?;
        inner.answers.remove(&ticket);
        Ok(())
    }

    pub(crate) fn take_answer(&self, ticket: Ticket) -> Option<Result<CheckpointId>> {
        lock(&self.inner).take_answer(ticket)
    }

    pub(crate) fn stop(&self, report: Report) {
        let mut inner = lock(&self.inner);
        let request = match report {
            Report::Stop { kind } => StopRequest::AtCheckpoint(kind),
            _ => StopRequest::Now,
        };
        if inner.stop != Some(StopRequest::Now) {
            inner.stop = Some(request);
        }
        if let Some(run) = &inner.run {
            run.stop(report);
        }
        if !inner.finished {
            self.status.set_state(JobState::Stopping);
        }
        self.changed.notify_all();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        lock(&self.inner).stop.is_some()
    }

    /// Waits out a restart delay; `false` when the job was told to stop meanwhile.
    pub(crate) fn wait_for_restart(&self, delay: Duration) -> bool {
        let inner = lock(&self.inner);
        let (inner, _) = self
            .changed
            .wait_timeout_while(inner, delay, |inner| inner.stop.is_none())
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        inner.stop.is_none()
    }

    pub(crate) fn finish(&self, state: JobState, error: Option<&Error>) {
        lock(&self.inner).finished = true;
        self.status.finish(state, error);
        self.export_now();
        self.detach("the job has ended");
    }
}

impl StopRequest {
    fn report(self) -> Report {
        match self {
            StopRequest::AtCheckpoint(kind) => Report::Stop { kind },
            StopRequest::Now => Report::StopNow,
        }
    }
}
