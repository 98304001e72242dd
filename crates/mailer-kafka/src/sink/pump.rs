//! From the worker to the producer and back: records go out in order, acknowledgements come back in order.

use crate::client::{Delivery, Failure, Writer};
use crate::record::OutRecord;
use crate::runtime::Io;
use mailer_core::{Error, ErrorKind, Flush, Result};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::mpsc;

/// Counted for every record beside its payload, so that many empty ones are bounded too.
pub(crate) const OVERHEAD: usize = 64;

enum Job {
    Write(Vec<OutRecord>),
    /// Do not wait for full batches.
    Hurry,
}

#[derive(Default)]
struct State {
    in_flight: usize,
    /// Records ever pushed, and of those the first so many that are acknowledged.
    written: u64,
    acknowledged: u64,
    blocked: bool,
    failure: Option<(ErrorKind, String)>,
}

/// What worker and tasks share.
pub(crate) struct Pump {
    /// Keeps the tasks alive while a flush waits for them.
    _io: Arc<Io>,
    jobs: Mutex<Option<mpsc::UnboundedSender<Job>>>,
    state: Mutex<State>,
    progress: Condvar,
    budget: usize,
    waker: Waker,
}

impl Pump {
    pub(crate) fn start(io: Arc<Io>, writer: Writer, topic: String, budget: usize, waker: Waker) -> Arc<Self> {
        let (jobs, taken) = mpsc::unbounded_channel();
        let (sent, sending) = mpsc::unbounded_channel();
        let jobs = Mutex::new(Some(jobs));
        let (state, progress) = (Mutex::default(), Condvar::new());
        let pump = Arc::new(Self { _io: io.clone(), jobs, state, progress, budget: budget.max(1), waker });
        io.spawn(send(pump.clone(), writer, topic.clone(), taken, sent));
        io.spawn(acknowledge(pump.clone(), topic, sending));
        pump
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that may be pushed now; 0 is followed by a wake-up. A failed delivery shows here.
    pub(crate) fn room(&self) -> Result<usize> {
        let mut state = self.state();
        state.check()?;
        let room = self.budget.saturating_sub(state.in_flight);
        state.blocked = room == 0;
        Ok(room)
    }

    /// Sends records on their way; `left` when the worker keeps some for which there is no room.
    pub(crate) fn push(&self, records: Vec<OutRecord>, bytes: usize, left: bool) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let mut state = self.state();
        state.in_flight += bytes;
        // What is left with the worker is offered again when one of these is acknowledged.
        state.blocked = left;
        state.written += records.len() as u64;
        // Still locked: what is pushed is counted in the order in which it is sent.
        self.job(Job::Write(records))
    }

    pub(crate) fn flush(self: &Arc<Self>) -> Result<Flush> {
        let state = self.state();
        state.check()?;
        let target = state.written;
        if state.acknowledged >= target {
            return Ok(Flush::Done);
        }
        drop(state);
        self.job(Job::Hurry)?;
        let pump = self.clone();
        Ok(Flush::Pending(Box::new(move || pump.wait(target))))
    }

    /// Nothing more comes; what was pushed is still sent.
    pub(crate) fn close(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn job(&self, job: Job) -> Result<()> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        match jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok()) {
            true => Ok(()),
            false => Err(Error::internal("the Kafka sink was used after it was closed")),
        }
    }

    /// Every delivery has an outcome within the producer's delivery timeout, so this ends.
    fn wait(&self, target: u64) -> Result<()> {
        let waiting = |state: &mut State| state.acknowledged < target && state.failure.is_none();
        let state = self.progress.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner);
        state.check()
    }

    fn acknowledged(&self, bytes: usize) {
        let mut state = self.state();
        state.in_flight -= bytes;
        state.acknowledged += 1;
        let wake = std::mem::take(&mut state.blocked);
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

/// Hands records to the producer, which waits while its own buffer is full.
async fn send(
    pump: Arc<Pump>,
    writer: Writer,
    topic: String,
    mut jobs: mpsc::UnboundedReceiver<Job>,
    sent: mpsc::UnboundedSender<(Delivery, usize)>,
) {
    let writer = Arc::new(writer);
    while let Some(job) = jobs.recv().await {
        match job {
            Job::Write(records) => {
                if let Err(failure) = write(&writer, &topic, records, &sent).await {
                    pump.fail(&topic, failure);
                }
            }
            Job::Hurry => hurry(writer.clone()),
        }
    }
    writer.close().await;
}

/// Flushes beside the sending: records that follow need not wait for it.
fn hurry(writer: Arc<Writer>) {
    tokio::spawn(async move {
        let _ = writer.flush().await;
    });
}

async fn write(
    writer: &Writer,
    topic: &str,
    records: Vec<OutRecord>,
    sent: &mpsc::UnboundedSender<(Delivery, usize)>,
) -> Result<(), Failure> {
    for record in records {
        let bytes = record.bytes() + OVERHEAD;
        let delivery = writer.send(topic, record).await?;
        let _ = sent.send((delivery, bytes));
    }
    Ok(())
}

/// Waits for deliveries in the order they were sent.
async fn acknowledge(pump: Arc<Pump>, topic: String, mut sent: mpsc::UnboundedReceiver<(Delivery, usize)>) {
    while let Some((delivery, bytes)) = sent.recv().await {
        match delivery.done().await {
            Ok(()) => pump.acknowledged(bytes),
            Err(failure) => pump.fail(&topic, failure),
        }
    }
}
