//! Who tells time. Everything that waits or measures takes a [`Clock`], so that a seeded run can move it by hand.

use crate::Timestamp;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Tells wall time (for people and event time) and monotonic time (for intervals and deadlines).
pub trait Clock: Send + Sync + 'static {
    /// Wall time now.
    fn wall(&self) -> Timestamp;
    /// Time since an arbitrary fixed point; never goes backwards.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A clock that moves only when told to.
///
/// ```
/// use mailer_core::{Clock, ManualClock};
/// use std::time::Duration;
/// let clock = ManualClock::default();
/// clock.advance(Duration::from_millis(5));
/// assert_eq!(clock.monotonic(), Duration::from_millis(5));
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Duration>);

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += by;
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        Timestamp(i64::try_from(self.monotonic().as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
