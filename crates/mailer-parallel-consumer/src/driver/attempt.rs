//! One attempt, from the call of the handler to a result that always comes back: a panic, a timeout and an error are
//! results like any other.

use super::executor::{Order, Shared};
use crate::handler::Work;
use crate::scheduler::{Done, Failed, Job, NotPut, Outcome, Several};
use crate::{BatchError, BoxError, Context, Failure, FailureKind, HandlerError, Record, Traits};
use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::time::{Instant, timeout};

/// Runs a job that began at `begin`, or begins with the first poll. Never panics, so no key is ever lost.
pub(super) async fn attempt<W: Work>(shared: Arc<Shared<W>>, order: Order, begin: Option<Instant>) -> Done {
    let Order { job, cancel } = order;
    let Job { dead_letter, refs, records, queue, attempt, first_seen } = job;
    let begin = begin.unwrap_or_else(Instant::now);
    let is_dead_letter = dead_letter.is_some();
    let (outcome, traits) = match dead_letter {
        Some(failure) => (put(&shared, records, failure).await, Traits::NONE),
        None => {
            let cx = Context {
                attempt,
                first_seen: shared.control.clock.instant(first_seen),
                deadline: shared.timeout.map(|timeout| begin + timeout),
                cancel: &cancel,
                control: &shared.control,
                marks: AtomicU64::new(0),
            };
            let result = handle(&shared, records.as_slice(), &cx).await;
            (result.map_or_else(|failure| failure.outcome(records), |()| Outcome::Success), cx.traits())
        }
    };
    let took = crate::clock::nanos(begin.elapsed());
    Done { refs, queue, is_dead_letter, took, traits, outcome }
}

/// Why an attempt failed, without the records.
struct Broken {
    kind: FailureKind,
    error: BatchError,
}

impl Broken {
    fn new(kind: FailureKind, words: impl Into<BoxError>) -> Self {
        Self { kind, error: HandlerError::retry(words).into() }
    }

    fn outcome(self, records: Several<Record>) -> Outcome {
        let Self { kind, error: BatchError { completed, error } } = self;
        let (kind, error, after, is_fatal) = match error {
            HandlerError::Retry { source, after } => (kind, source, after, false),
            HandlerError::Reject { source } => (FailureKind::Rejected, source, None, false),
            HandlerError::Fatal { source } => (kind, source, None, true),
        };
        Outcome::Failed(Box::new(Failed { records, completed, kind, error, after, is_fatal }))
    }
}

async fn handle<W: Work>(shared: &Shared<W>, records: &[Record], cx: &Context<'_>) -> Result<(), Broken> {
    let call = async { shared.work.run(records, cx).await };
    let limit = shared.timeout.filter(|_| W::INTERRUPTIBLE);
    let result = match limit {
        None => unwind(call).await.map(Ok),
        Some(limit) => unwind(timeout(limit, call)).await,
    };
    match result {
        Err(words) => Err(Broken::new(FailureKind::Panic, words)),
        Ok(Err(_)) => Err(Broken::new(FailureKind::Timeout, format!("the attempt took longer than {limit:?}"))),
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(Broken { kind: kind_of_error(cx), error }),
    }
}

/// An error of an attempt that was told to end, because its time was over, is a timeout.
fn kind_of_error(cx: &Context<'_>) -> FailureKind {
    match cx.deadline {
        Some(deadline) if deadline <= Instant::now() => FailureKind::Timeout,
        _ => FailureKind::Error,
    }
}

async fn put<W: Work>(shared: &Shared<W>, record: Several<Record>, failure: Box<Failure>) -> Outcome {
    let call = async { shared.dead_letter.put_dyn(&record.as_slice()[0], &failure).await };
    let error = match unwind(call).await {
        Ok(Ok(())) => return Outcome::Success,
        Ok(Err(error)) => error,
        Err(words) => words.into(),
    };
    Outcome::NotPut(Box::new(NotPut { record, failure, error }))
}

/// Drives a future; a panic in it, or in dropping it, is an error with the words of the panic.
async fn unwind<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(Some(future));
    let result = poll_fn(|cx| {
        let Some(future) = future.as_mut().as_pin_mut() else { unreachable!("it is taken away below") };
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(words(panic))),
        }
    });
    let result = result.await;
    catch_unwind(AssertUnwindSafe(|| future.set(None))).map_err(words)?;
    result
}

fn words(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    // What was thrown may itself panic when it is dropped.
    drop(catch_unwind(AssertUnwindSafe(|| drop(panic))));
    format!("panic: {}", text.as_deref().unwrap_or("(not a text)"))
}
