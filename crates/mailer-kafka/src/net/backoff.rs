//! Growing pauses between attempts, each a little different: clients that lost a broker together do not come back together.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;
use tokio::time::Instant;

/// After the first failure.
const FIRST: Duration = Duration::from_millis(50);
/// After many.
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// Pauses that double from 50 ms up to a second, each between 80 % and 120 % of that (KIP-580).
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    failures: u32,
    random: u64,
}

impl Backoff {
    /// Starts from chance: the keys of `RandomState` come from the operating system.
    pub(crate) fn new() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }

    fn seeded(seed: u64) -> Self {
        Self { failures: 0, random: seed }
    }

    /// The pause after one more failure.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        pause.mul_f64(0.8 + 0.4 * self.fraction())
    }

    /// Waits for the next pause.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next()).await;
    }

    /// It worked: the next failure is a first one again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// From 0 up to 1: SplitMix64 (Steele, Lea, Flood 2014), the top 53 bits.
    fn fraction(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// When something may be tried again.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    due: Instant,
    backoff: Backoff,
}

impl Default for Pace {
    fn default() -> Self {
        Self { due: Instant::now(), backoff: Backoff::new() }
    }
}

impl Pace {
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    /// Not at once again.
    pub(crate) fn failed(&mut self) {
        self.due = Instant::now() + self.backoff.next();
    }

    pub(crate) fn worked(&mut self) {
        self.backoff.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second_and_begin_again() {
        let mut backoff = Backoff::seeded(7);
        for expected in [50, 100, 200, 400, 800, 1000, 1000, 1000] {
            let pause = backoff.next().as_millis();
            assert!((expected * 8 / 10..=expected * 12 / 10).contains(&pause), "{pause} for {expected}");
        }
        backoff.reset();
        assert!(backoff.next() <= FIRST.mul_f64(1.2));
    }

    #[test]
    fn two_clients_do_not_pause_alike() {
        let pauses = |seed| {
            Vec::from_iter(
                std::iter::repeat_with({
                    let mut backoff = Backoff::seeded(seed);
                    move || backoff.next()
                })
                .take(8),
            )
        };
        assert_ne!(pauses(1), pauses(2));
        assert_eq!(pauses(1), pauses(1));
    }
}
