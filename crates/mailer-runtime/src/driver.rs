//! Drivers run tasks. One owns threads, one owns a seed; the tasks cannot tell which.

mod seeded;
mod threads;

pub use seeded::Seed;
pub(crate) use seeded::{SeededDriver, Turns};
pub(crate) use threads::ThreadDriver;

use crate::assembly::Placed;
use crate::beside::Beside;
use crate::executor::{Chance, Ended, Executor};
use crate::shared::JobShared;
use crate::task::{Progress, Task};
use mailer_core::{Clock, Error, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

pub(crate) trait Driver {
    /// One per thread; worker i runs on thread i mod threads.
    fn wakers(&self) -> Vec<Waker>;
    fn beside(&self) -> Arc<dyn Beside>;
    fn clock(&self) -> Arc<dyn Clock>;
    fn chance(&self) -> Chance;
    /// Steps the tasks until the executor says how it ended. Nothing of the run is left behind on return.
    fn run(&mut self, tasks: Vec<Placed>, executor: Executor, shared: &Arc<JobShared>) -> Result<Ended>;
}

/// Steps a task; a panic of user code becomes an error with the operator's name and the batch's origin, never the key.
fn step(task: &mut dyn Task) -> Result<Progress> {
    match catch_unwind(AssertUnwindSafe(|| task.step())) {
        Ok(Ok(progress)) => Ok(progress),
        Ok(Err(error)) => Err(error.context(format_args!("stage {}, {}", task.name(), task.origin()))),
        Err(panic) => Err(panicked(task, panic.as_ref())),
    }
}

#[cold]
fn panicked(task: &dyn Task, panic: &(dyn Any + Send)) -> Error {
    let text = crate::panics::text(panic);
    let place = format!("stage {}, {}", task.name(), task.origin());
    match mailer_operators::take_panic_site() {
        Some(operator) => Error::user_function(format!("operator {operator} panicked: {text} ({place})")),
        None => Error::internal(format!("a task panicked: {text} ({place})")),
    }
}
