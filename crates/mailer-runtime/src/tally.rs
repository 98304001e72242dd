//! Counters that one thread writes and anybody reads: an addition without a locked instruction.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A number. Only one thread may change it: two would lose additions, and nothing worse.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Takes back what was added a moment ago.
    #[inline]
    pub(crate) fn take_back(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(n), Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Adds a time, in nanoseconds.
    #[inline]
    pub(crate) fn add_time(&self, time: Duration) {
        self.add(time.as_nanos() as u64);
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.get())
    }
}
