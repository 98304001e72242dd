//! What the worker and the task that writes share: the worker appends records to batches, `sender` takes them
//! away, and says what is acknowledged.

use super::progress::{Progress, Target};
use super::sender::Sender;
use crate::batch::BatchBuilder;
use crate::client::{Cause, Client, Failure, WriterSettings};
use crate::encode::Encoded;
use crate::gather::{Gather, Parted};
use crate::runtime::Io;
use mailer_core::{Error, ErrorKind, Flush, Result};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// What of the worker's batches is to be sent.
pub(super) struct Taken {
    pub(super) full: Vec<Parted>,
    /// Not compressed yet: that is not the worker's business.
    pub(super) open: Vec<(i32, BatchBuilder)>,
    /// Nothing more comes.
    pub(super) closed: bool,
}

/// What an open batch could wait for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Company {
    /// It must not wait.
    pub(super) wanted: bool,
    /// Nothing more comes for now.
    pub(super) alone: bool,
    /// A full batch goes before it.
    pub(super) full: bool,
}

/// See the module.
pub(crate) struct Pump {
    /// Keeps the task alive while a flush waits for it.
    _io: Arc<Io>,
    state: Mutex<State>,
    /// The task has something to do.
    work: Notify,
    progress: Condvar,
    budget: usize,
    waker: Waker,
}

struct State {
    gather: Gather,
    /// Bytes sent, or about to be, and not acknowledged.
    outbox: usize,
    progress: Progress,
    /// The worker waits for room.
    blocked: bool,
    closed: bool,
    failure: Option<(ErrorKind, String)>,
}

impl Pump {
    pub(crate) fn start(
        io: Arc<Io>,
        client: Arc<Client>,
        topic: String,
        settings: &WriterSettings,
        (budget, waker): (usize, Waker),
    ) -> Arc<Self> {
        let state = State {
            gather: Gather::new(settings.batch()),
            outbox: 0,
            progress: Progress::default(),
            blocked: false,
            closed: false,
            failure: None,
        };
        let (state, progress, work) = (Mutex::new(state), Condvar::new(), Notify::new());
        let pump = Arc::new(Self { _io: io.clone(), state, work, progress, budget: budget.max(1), waker });
        let task = run(pump.clone(), client, topic.clone(), settings.clone());
        io.spawn(supervise(pump.clone(), topic, task));
        pump
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends records as long as there is room: `next` fills in one, and says which partition, or `None` when there are no
    /// more. Returns how many were taken; when they were not all, the worker is woken once there is room.
    pub(crate) fn append(
        &self,
        mut next: impl FnMut(&mut Encoded) -> Result<Option<i32>>,
        scratch: &mut Encoded,
        now: i64,
    ) -> Result<usize> {
        let mut state = self.state();
        state.check()?;
        let mut taken = 0;
        while state.gather.bytes() + state.outbox < self.budget {
            let Some(partition) = next(scratch)? else {
                self.work.notify_one();
                return Ok(taken);
            };
            let timestamp = Some(scratch.timestamp()).filter(|timestamp| *timestamp >= 0).unwrap_or(now);
            state.gather.push(partition, timestamp, scratch)?;
            state.progress.appended(partition);
            taken += 1;
        }
        state.blocked = true;
        self.work.notify_one();
        Ok(taken)
    }

    pub(crate) fn flush(self: &Arc<Self>) -> Result<Flush> {
        let mut state = self.state();
        state.check()?;
        let target = state.progress.flush();
        if state.progress.has(&target) {
            return Ok(Flush::Done);
        }
        drop(state);
        self.work.notify_one();
        let pump = self.clone();
        Ok(Flush::Pending(Box::new(move || pump.wait(&target))))
    }

    /// Nothing more comes; what was appended is still sent.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.work.notify_one();
    }

    /// Every batch has an outcome within the delivery timeout, so this ends.
    fn wait(&self, target: &Target) -> Result<()> {
        let waiting = |state: &mut State| !state.progress.has(target) && state.failure.is_none();
        let state = self.progress.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner);
        state.check()
    }

    /// The task has something to do, or may have.
    pub(super) async fn work(&self) {
        self.work.notified().await;
    }

    /// Takes full batches, and of the open ones those that `is_due`: by their partition, whether a flush waits for it, and
    /// whether nobody brings more company.
    pub(super) fn take(&self, mut is_due: impl FnMut(i32, Company) -> bool) -> Taken {
        let mut state = self.state();
        let full = state.gather.take_done();
        let company = |state: &State, partition| Company {
            wanted: state.closed || state.progress.is_flushed(partition),
            // A worker that has no room for more brings none.
            alone: state.blocked,
            full: full.iter().any(|parted| parted.partition == partition),
        };
        let open: Vec<i32> = state.gather.open_partitions().collect();
        let due: Vec<i32> = open.into_iter().filter(|p| is_due(*p, company(&state, *p))).collect();
        let open: Vec<_> = due.into_iter().filter_map(|p| Some((p, state.gather.take_open(p)?))).collect();
        // Counted as out before it stops being counted as gathered: the budget holds.
        state.outbox += full.iter().map(|parted| parted.batch.bytes()).sum::<usize>();
        state.outbox += open.iter().map(|(_, builder)| builder.bytes()).sum::<usize>();
        Taken { full, open, closed: state.closed }
    }

    /// Records of these partitions are in the log; `outbox` bytes are not.
    pub(super) fn acknowledged(&self, records: &[(i32, u64)], outbox: usize) {
        let mut state = self.state();
        state.outbox = outbox;
        records.iter().for_each(|(partition, records)| state.progress.acknowledged(*partition, *records));
        let wake = state.gather.bytes() + outbox < self.budget && std::mem::take(&mut state.blocked);
        drop(state);
        self.progress.notify_all();
        if wake {
            self.waker.wake_by_ref();
        }
    }

    fn fail(&self, topic: &str, failure: Failure) {
        let error = failure.into_error(format!("writing to Kafka topic \"{topic}\""));
        self.state().failure.get_or_insert_with(|| (error.kind(), error.message().to_owned()));
        self.progress.notify_all();
        self.waker.wake_by_ref();
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.failure {
            Some((kind, message)) => Err(Error::new(*kind, message.clone())),
            None => Ok(()),
        }
    }
}

/// A task that panics must not leave a worker or a flush waiting for it.
pub(super) async fn supervise(pump: Arc<Pump>, topic: String, task: impl Future<Output = ()> + Send + 'static) {
    if let Err(died) = tokio::spawn(task).await {
        pump.fail(&topic, Failure::new(Cause::Other, format!("the task that writes ended: {died}")));
    }
}

async fn run(pump: Arc<Pump>, client: Arc<Client>, topic: String, settings: WriterSettings) {
    let outcome = match client.idempotent_identity().await {
        Ok(identity) => Sender::new(pump.clone(), client, &topic, settings, identity).run().await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = outcome {
        pump.fail(&topic, failure);
    }
}
