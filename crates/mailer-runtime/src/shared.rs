//! What the tasks, the coordinator's executor and the job handle of one run share: flags, counters and mailboxes.
//!
//! Nothing in here is touched per record.

use crate::alignment::AlignmentGroups;
use crate::beside::{Beside, Job};
use crate::job::publishes::Publishes;
use crate::panics;
use crate::report::Report;
use mailer_core::{Barrier, CheckpointId, Clock, Error, Result, Watermark};
use mailer_operators::Spawner;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::task::Waker;
use std::time::Duration;

/// Planted faults. The simulation proves with them that its checkers can fail; nothing else sets one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mutations {
    /// Recovery publishes a prepared checkpoint without looking at the marker.
    pub skip_marker: bool,
    /// Input gates do not hold an input that has reached the barrier.
    pub skip_alignment: bool,
    /// Output is published before the manifest is durable.
    pub publish_early: bool,
    /// Segments of a failed checkpoint are left out of the next manifest.
    pub forget_segments: bool,
    /// A restored job does not know how far event time had come.
    pub forget_watermarks: bool,
}

/// Locks, whatever a panicking thread left: all shared data here is valid between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Bytes staged by exactly-once sinks and not yet written to a segment.
#[derive(Debug)]
pub(crate) struct Staged {
    bytes: AtomicUsize,
    budget: usize,
}

impl Staged {
    pub(crate) fn new(budget: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), budget }
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// Sources pause: the budget is a bound on memory, kept by not reading.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.bytes() >= self.budget
    }
}

/// What the coordinator tells a source task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SourceCommand {
    Barrier(Barrier),
    Completed(CheckpointId),
    /// Every split has come so far: said by a test.
    Watermark(Watermark),
    /// What the source has now is all it will ever have: said by a test.
    EndWhenCaughtUp,
}

#[derive(Default)]
pub(crate) struct Mailbox {
    commands: Mutex<VecDeque<SourceCommand>>,
    filled: AtomicBool,
}

impl Mailbox {
    /// The next command, without a lock when there is none.
    pub(crate) fn take(&self) -> Option<SourceCommand> {
        if !self.filled.load(SeqCst) {
            return None;
        }
        let mut commands = lock(&self.commands);
        let command = commands.pop_front();
        self.filled.store(!commands.is_empty(), SeqCst);
        command
    }

    fn put(&self, command: SourceCommand) {
        let mut commands = lock(&self.commands);
        commands.push_back(command);
        self.filled.store(true, SeqCst);
    }
}

pub(crate) struct JobShared {
    cancelled: AtomicU64,
    reading: AtomicBool,
    draining: AtomicBool,
    halted: Mutex<bool>,
    halt_signal: Condvar,
    pub(crate) staged: Staged,
    pub(crate) mutations: Mutations,
    pub(crate) alignment: AlignmentGroups,
    mailboxes: Vec<Mailbox>,
    wakers: Vec<Waker>,
    pub(crate) publishes: Publishes,
    reports: mpsc::Sender<Report>,
    beside: Arc<dyn Beside>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl JobShared {
    pub(crate) fn new(
        sources: usize,
        wakers: Vec<Waker>,
        reports: mpsc::Sender<Report>,
        beside: Arc<dyn Beside>,
        clock: Arc<dyn Clock>,
        (staging_budget, mutations): (usize, Mutations),
        publishes: Publishes,
    ) -> Arc<Self> {
        Arc::new(Self {
            cancelled: AtomicU64::new(0),
            reading: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            halted: Mutex::new(false),
            halt_signal: Condvar::new(),
            staged: Staged::new(staging_budget),
            mutations,
            alignment: AlignmentGroups::default(),
            mailboxes: (0..sources).map(|_| Mailbox::default()).collect(),
            wakers,
            publishes,
            reports,
            beside,
            clock,
        })
    }

    /// Barriers up to this id are dropped at the gates.
    pub(crate) fn cancelled(&self) -> CheckpointId {
        CheckpointId(self.cancelled.load(SeqCst))
    }

    pub(crate) fn cancel(&self, id: CheckpointId) {
        self.cancelled.fetch_max(id.0, SeqCst);
        self.wake_all();
    }

    /// Whether sources may read: not before the first manifest is durable, not while draining or over the budget.
    pub(crate) fn may_read(&self) -> bool {
        self.reading.load(SeqCst) && !self.draining.load(SeqCst) && !self.staged.is_over_budget()
    }

    pub(crate) fn release_sources(&self) {
        self.reading.store(true, SeqCst);
        self.wake_all();
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, SeqCst);
        self.wake_all();
    }

    pub(crate) fn command_sources(&self, command: SourceCommand) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.put(command));
        self.wake_all();
    }

    pub(crate) fn command_source(&self, source: usize, command: SourceCommand) {
        self.mailboxes[source].put(command);
        self.wake_all();
    }

    pub(crate) fn mailbox(&self, source: usize) -> &Mailbox {
        &self.mailboxes[source]
    }

    /// The waker of a worker's thread.
    pub(crate) fn waker(&self, worker: u16) -> Waker {
        self.wakers[usize::from(worker) % self.wakers.len()].clone()
    }

    pub(crate) fn wake_all(&self) {
        self.wakers.iter().for_each(Waker::wake_by_ref);
    }

    /// Tells the coordinator. After the run has ended nobody listens, and nobody needs to.
    pub(crate) fn report(&self, report: Report) {
        let _run_has_ended = self.reports.send(report);
    }

    pub(crate) fn fail(&self, error: Error) {
        self.report(Report::Failed(error));
    }

    /// Runs beside the workers. The report of a job that panics would be waited for without end: the run ends instead.
    pub(crate) fn spawn_beside(self: &Arc<Self>, job: Job) {
        let shared = self.clone();
        self.beside.spawn(Box::new(move || {
            let run = || {
                job();
                Ok(())
            };
            if let Err(error) = panics::caught("work beside the workers", run) {
                shared.fail(error);
            }
        }));
    }

    /// Who runs the futures of asynchronous operators.
    pub(crate) fn spawner(&self) -> Result<Arc<dyn Spawner>> {
        self.beside.spawner()
    }

    /// Stops every loop of the run.
    pub(crate) fn halt(&self) {
        *lock(&self.halted) = true;
        self.halt_signal.notify_all();
        self.wake_all();
    }

    pub(crate) fn is_halted(&self) -> bool {
        *lock(&self.halted)
    }

    /// Waits beside the workers before another try; `false` when the run was halted meanwhile.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        if !self.beside.may_wait() {
            return !self.is_halted();
        }
        let halted = lock(&self.halted);
        let (halted, _) = self
            .halt_signal
            .wait_timeout_while(halted, time, |halted| !*halted)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        !*halted
    }
}

#[cfg(test)]
impl JobShared {
    pub(crate) fn for_tests() -> Arc<Self> {
        struct Never;
        impl Beside for Never {
            fn spawn(&self, _job: crate::beside::Job) {}

            fn spawner(&self) -> Result<Arc<dyn Spawner>> {
                Err(Error::internal("there are no futures in this test"))
            }

            fn may_wait(&self) -> bool {
                false
            }
        }
        let (reports, _) = mpsc::channel();
        let clock = Arc::new(mailer_core::ManualClock::default());
        let (wakers, settings) = (vec![Waker::noop().clone()], (usize::MAX, Mutations::default()));
        Self::new(1, wakers, reports, Arc::new(Never), clock, settings, Publishes::default())
    }
}
