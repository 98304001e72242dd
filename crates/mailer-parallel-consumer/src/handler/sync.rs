//! Blocking functions as handlers, on a bounded number of threads.

use crate::{Context, Handler, HandlerError, Record};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// A blocking function as a handler; see [`sync`].
pub struct SyncHandler<F> {
    function: Arc<F>,
    threads: Arc<Semaphore>,
}

/// Runs a blocking function on tokio's blocking threads, on at most `threads` of them (at least 1).
///
/// A thread cannot be stopped from outside: at the handler timeout [`Context::is_cancelled`] becomes true, and the
/// attempt ends when the function returns.
///
/// ```
/// use mailer_parallel_consumer::{Context, Record, sync};
/// let handler = sync(16, |record: &Record, _: &Context<'_>| {
///     std::fs::write("last", record.value.as_deref().unwrap_or_default())?;
///     Ok(())
/// });
/// ```
pub fn sync<F>(threads: usize, function: F) -> SyncHandler<F>
where
    F: Fn(&Record, &Context<'_>) -> Result<(), HandlerError> + Send + Sync + 'static,
{
    SyncHandler { function: Arc::new(function), threads: Arc::new(Semaphore::new(threads.max(1))) }
}

impl<F> Handler for SyncHandler<F>
where
    F: Fn(&Record, &Context<'_>) -> Result<(), HandlerError> + Send + Sync + 'static,
{
    const INTERRUPTIBLE: bool = false;

    async fn handle(&self, record: &Record, cx: &Context<'_>) -> Result<(), HandlerError> {
        let thread = Arc::clone(&self.threads).acquire_owned().await.map_err(HandlerError::fatal)?;
        let (function, record) = (Arc::clone(&self.function), record.clone());
        let (cancel, control) = (Arc::clone(cx.cancel), cx.control.clone());
        let (attempt, first_seen, deadline) = (cx.attempt, cx.first_seen, cx.deadline);
        let task = spawn_blocking(move || {
            let _thread = thread; // given back when the function has returned, not when its result is dropped
            let marks = AtomicU64::new(0);
            let cx = Context { attempt, first_seen, deadline, cancel: &cancel, control: &control, marks };
            let result = function(&record, &cx);
            (result, cx.traits())
        });
        match task.await {
            Ok((result, traits)) => {
                cx.marks.fetch_or(traits.0, Ordering::Relaxed);
                result
            }
            Err(stopped) if stopped.is_panic() => std::panic::resume_unwind(stopped.into_panic()),
            Err(stopped) => Err(HandlerError::retry(stopped)),
        }
    }
}

impl<F> fmt::Debug for SyncHandler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sync ({} threads free)", self.threads.available_permits())
    }
}
