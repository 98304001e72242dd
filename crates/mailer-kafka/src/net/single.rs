//! One question at a time, one answer for all who asked meanwhile.

use super::backoff::Backoff;
use crate::client::Failure;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Runs one call at a time. Who comes while one is under way shares the next, not that one: it may have been answered before
/// their reason to ask came up. Calls are paced: the more of them follow each other closely, the longer the pauses.
pub(super) struct SingleFlight {
    started: AtomicU64,
    last: Mutex<Last>,
}

struct Last {
    /// Its number: calls are counted from 1.
    number: u64,
    result: Result<(), Failure>,
    not_before: Instant,
    backoff: Backoff,
}

impl SingleFlight {
    pub(super) fn new() -> Self {
        let last = Last { number: 0, result: Ok(()), not_before: Instant::now(), backoff: Backoff::new() };
        Self { started: AtomicU64::new(0), last: Mutex::new(last) }
    }

    /// The result of a call that began after this was called: one's own, or another's.
    pub(super) async fn run<F>(&self, call: impl FnOnce() -> F) -> Result<(), Failure>
    where
        F: Future<Output = Result<(), Failure>>,
    {
        let before = self.started.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if last.number > before {
            return last.result.clone();
        }
        last.wait().await;
        let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        last.result = call().await;
        last.number = number;
        last.result.clone()
    }
}

impl Last {
    /// Pauses grow while calls come as soon as they may, and begin anew after a quiet time.
    async fn wait(&mut self) {
        let now = Instant::now();
        if now > self.not_before + super::backoff::LONGEST {
            self.backoff.reset();
        }
        tokio::time::sleep_until(self.not_before).await;
        self.not_before = Instant::now() + self.backoff.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Cause;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    async fn count(calls: &AtomicUsize, fails: bool) -> Result<(), Failure> {
        calls.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        if fails { Err(Failure::new(Cause::Retriable, "no")) } else { Ok(()) }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_share_one_call_that_began_after_they_came() {
        let (flight, calls) = (Arc::new(SingleFlight::new()), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let (flight, calls) = (Arc::clone(&flight), Arc::clone(&calls));
            tokio::spawn(async move { flight.run(|| count(&calls, true)).await })
        };
        let first = ask();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let others: Vec<_> = (0..20).map(|_| ask()).collect();
        assert!(first.await.unwrap().is_err());
        for other in others {
            assert!(other.await.unwrap().is_err());
        }
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_in_a_row_are_paced() {
        let (flight, calls) = (SingleFlight::new(), AtomicUsize::new(0));
        let started = Instant::now();
        for _ in 0..10 {
            flight.run(|| count(&calls, false)).await.unwrap();
        }
        assert_eq!(calls.load(Ordering::SeqCst), 10);
        assert!(started.elapsed() > Duration::from_secs(3), "{:?}", started.elapsed());
        tokio::time::sleep(Duration::from_secs(60)).await;
        let quiet = Instant::now();
        flight.run(|| count(&calls, false)).await.unwrap();
        assert!(quiet.elapsed() < Duration::from_millis(20));
    }
}
