//! The contract of plain (at-least-once) sinks, and what a connector is told about its place.

use crate::{Batch, Clock, OwnerEpoch, Result};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// Completes a flush beside the worker.
pub type FlushJob = Box<dyn FnOnce() -> Result<()> + Send>;

/// What [`Sink::flush`] achieved.
pub enum Flush {
    /// Everything written before is delivered.
    Done,
    /// It is delivered when this job, run beside the worker, returns `Ok`.
    Pending(FlushJob),
}

impl fmt::Debug for Flush {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flush::Done => "Done",
            Flush::Pending(_) => "Pending",
        })
    }
}

/// Writes records out at least once. One instance per worker.
pub trait Sink<T>: Send + 'static {
    /// Drains what it can take; what is left was not accepted and is offered again (backpressure). Never waits.
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()>;

    /// Called at every barrier: done, or a job that completes it. The checkpoint waits for it.
    fn flush(&mut self) -> Result<Flush>;
}

/// Makes one [`Sink`] per worker, again at every restart.
pub trait SinkFactory<T>: Send + Sync + 'static {
    /// The sink it makes.
    type Sink: Sink<T>;

    /// Makes the instance for one worker. May wait for the outside to answer.
    fn build(&self, context: &WorkerContext) -> Result<Self::Sink>;

    /// One line for `explain`.
    fn describe(&self) -> String;
}

/// Where an instance of a connector runs.
#[derive(Clone)]
pub struct WorkerContext {
    /// The job's name.
    pub job: String,
    /// The author's name for this source or sink.
    pub name: String,
    /// This worker, from 0.
    pub worker: u16,
    /// How many workers this source or sink has.
    pub workers: u16,
    /// The start of the job this instance belongs to; 0 without checkpoints.
    pub epoch: OwnerEpoch,
    /// Wakes the worker's thread: call it when [`crate::Source::poll`] or [`Sink::write`] would now do something.
    pub waker: Waker,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl fmt::Debug for WorkerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}/{}]@{}", self.name, self.worker, self.workers, self.epoch)
    }
}
