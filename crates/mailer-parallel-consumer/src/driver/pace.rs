//! Whether handlers are quick enough to be driven one after the other where they start.
//!
//! Handing a future to the runtime costs more than a handler that never waits. So the first poll of a handler happens
//! where it is started, many in a row, as long as first polls are quick. Slow ones (handlers that compute, or block) end
//! that: each is then a task of its own, and the runtime spreads them over its threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A first poll that takes longer is slow.
const SLOW: Duration = Duration::from_micros(100);
/// So many quick ones make trust.
const TRUST: u32 = 1_000;
/// More is not remembered.
const MOST: u32 = 2_000;
/// What a slow one costs. One alone may be a thread that was preempted; four in a row are not.
const PENALTY: u32 = 300;

#[derive(Debug, Default)]
pub(super) struct Pace(AtomicU32);

impl Pace {
    pub(super) fn is_trusted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= TRUST
    }

    /// A first poll took so long; returns whether there is trust now. (An update that another thread overwrites only
    /// shifts the moment.)
    pub(super) fn polled(&self, took: Duration) -> bool {
        let score = self.0.load(Ordering::Relaxed);
        let after = if took > SLOW { score.saturating_sub(PENALTY) } else { (score + 1).min(MOST) };
        if after != score {
            self.0.store(after, Ordering::Relaxed);
        }
        after >= TRUST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_earned_slowly_and_lost_soon() {
        let pace = Pace::default();
        let quick = |times: u32| (0..times).map(|_| pace.polled(Duration::ZERO)).last();
        let slow = |times: u32| (0..times).map(|_| pace.polled(SLOW * 2)).last();
        assert_eq!(quick(TRUST - 1), Some(false));
        assert_eq!(quick(1), Some(true));
        assert_eq!(slow(1), Some(false));
        assert_eq!(quick(5_000), Some(true));
        assert_eq!((slow(3), slow(1)), (Some(true), Some(false)));
    }
}
