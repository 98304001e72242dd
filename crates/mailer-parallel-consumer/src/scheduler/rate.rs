//! A rate limit without a timer of its own: the generic cell rate algorithm (ITU-T I.371), in nanoseconds.

use crate::RateLimit;
use crate::clock::Nanos;

/// In any interval of length t at most `burst + rate × t` are allowed.
#[derive(Debug)]
pub(super) struct Rate {
    /// Between two, at the full rate.
    increment: Nanos,
    /// How far the theoretical arrival may lie ahead.
    tolerance: Nanos,
    /// When the next one would come at the full rate.
    arrival: Nanos,
}

impl Rate {
    pub(super) fn new(limit: RateLimit) -> Self {
        let increment = (1e9 / limit.per_second).ceil() as Nanos;
        Self { increment, tolerance: increment * Nanos::from(limit.burst - 1), arrival: 0 }
    }

    /// When the next one is allowed.
    pub(super) fn next(&self) -> Nanos {
        self.arrival.saturating_sub(self.tolerance)
    }

    pub(super) fn take(&mut self, now: Nanos) {
        self.arrival = self.arrival.max(now) + self.increment;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut rate = Rate::new(RateLimit { per_second: 1_000.0, burst: 5 });
        let mut starts = Vec::new();
        for now in (0..1_000_000_000).step_by(100_000) {
            while rate.next() <= now {
                rate.take(now);
                starts.push(now);
            }
        }
        assert_eq!(starts[..6], [0, 0, 0, 0, 0, 1_000_000]);
        assert_eq!(starts.len(), 1_004);
    }
}
