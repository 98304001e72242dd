//! Time as the scheduler counts it: nanoseconds since the consumer was made. Stands still in tests that pause tokio.

use std::time::Duration;
use tokio::time::Instant;

/// Nanoseconds since the consumer was made.
pub(crate) type Nanos = u64;

/// The only way to the time of day for everything but the pure modules, which are told the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Nanos {
        nanos(self.0.elapsed())
    }

    pub(crate) fn instant(self, at: Nanos) -> Instant {
        self.0 + Duration::from_nanos(at)
    }
}

/// The time of day, as Kafka counts it: milliseconds since 1970.
pub(crate) fn unix_millis() -> i64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default(); // a clock before 1970 counts as 1970
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A duration as nanoseconds: 584 years at most.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
