//! Who runs the futures of asynchronous operators: tokio in a job, a seed in a simulation, the test itself in the harness.

use mailer_core::{Clock, ManualClock};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A future on the heap.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs futures beside the workers.
pub trait Spawner: Send + Sync + 'static {
    /// Runs `future` to its end, or until the job ends.
    fn spawn(&self, future: BoxFuture<()>);
    /// Is ready after `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<()>;
}

/// A future that is ready when a clock says so; for spawners that poll again and again instead of being woken.
pub fn sleep_by(clock: Arc<dyn Clock>, duration: Duration) -> BoxFuture<()> {
    let until = clock.monotonic() + duration;
    Box::pin(poll_fn(move |_| if clock.monotonic() >= until { Poll::Ready(()) } else { Poll::Pending }))
}

/// Polls every future whenever it is told to, with a clock that is moved by hand.
#[derive(Default)]
pub(crate) struct ByHand {
    futures: Mutex<Vec<BoxFuture<()>>>,
    pub(crate) clock: Arc<ManualClock>,
}

impl ByHand {
    pub(crate) fn poll_all(&self) {
        let mut futures = std::mem::take(&mut *self.lock());
        let mut context = Context::from_waker(Waker::noop());
        futures.retain_mut(|future| future.as_mut().poll(&mut context).is_pending());
        self.lock().append(&mut futures);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<BoxFuture<()>>> {
        self.futures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spawner for ByHand {
    fn spawn(&self, future: BoxFuture<()>) {
        self.lock().push(future);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<()> {
        sleep_by(self.clock.clone(), duration)
    }
}
