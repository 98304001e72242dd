//! The one place in xtask that reads the clock and sleeps, so that everything else waits for a condition.

use anyhow::Result;
use std::time::{Duration, Instant, SystemTime};

/// Time since a moment.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts counting now.
    #[expect(clippy::disallowed_methods, reason = "a build tool measures real time")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long ago that was.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Seconds since 1970; nothing on a machine whose clock is before that.
#[expect(clippy::disallowed_methods, reason = "tokens carry the time of day")]
pub fn unix_seconds() -> Option<u64> {
    Some(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
}

/// Asks `check` every `interval` until it answers with a value, fails, or `limit` has passed (then: `None`).
pub fn until<T>(
    limit: Duration,
    interval: Duration,
    mut check: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let watch = Stopwatch::start();
    loop {
        if let Some(value) = check()? {
            return Ok(Some(value));
        }
        if watch.elapsed() >= limit {
            return Ok(None);
        }
        pause(interval);
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause between two looks at a condition of another process")]
fn pause(interval: Duration) {
    std::thread::sleep(interval);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    #[test]
    fn a_condition_is_asked_until_it_holds() {
        let mut asked = 0;
        let answer = until(Duration::from_secs(60), MOMENT, || {
            asked += 1;
            Ok((asked == 3).then_some(asked))
        });
        assert_eq!(answer.unwrap(), Some(3));
    }

    #[test]
    fn a_limit_ends_the_wait_and_an_error_ends_it_at_once() {
        assert_eq!(until::<()>(Duration::ZERO, MOMENT, || Ok(None)).unwrap(), None);
        assert!(until::<()>(Duration::from_secs(60), MOMENT, || anyhow::bail!("no")).is_err());
    }
}
