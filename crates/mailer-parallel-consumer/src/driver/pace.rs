//! Whether handlers are quick enough to be driven one after the other where they start.
//!
//! Handing a future to the runtime costs more than a handler that never waits. So the first poll of a handler happens
//! where it is started, many in a row, as long as first polls are quick. A slow one (a handler that computes, or blocks)
//! ends that for the next thousand: each is then a task of its own, and the runtime spreads them over its threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A first poll that takes longer is slow.
const SLOW: Duration = Duration::from_micros(100);
/// So many quick ones in a row make trust.
const TRUST: u32 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Pace(AtomicU32);

impl Pace {
    pub(super) fn is_trusted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= TRUST
    }

    /// A first poll took so long; returns whether there is trust now.
    pub(super) fn polled(&self, took: Duration) -> bool {
        if took > SLOW {
            self.0.store(0, Ordering::Relaxed);
            return false;
        }
        let quick = self.0.load(Ordering::Relaxed);
        if quick < TRUST {
            self.0.store(quick + 1, Ordering::Relaxed); // a lost update only delays trust
        }
        quick >= TRUST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_earned_slowly_and_lost_at_once() {
        let pace = Pace::default();
        (0..TRUST).for_each(|_| assert!(!pace.polled(Duration::ZERO)));
        assert!(pace.polled(Duration::ZERO) && pace.is_trusted());
        assert!(!pace.polled(SLOW * 2) && !pace.is_trusted());
    }
}
