//! When a failed job is started again.

use std::time::Duration;

/// When a job that failed for a reason that may pass is started again from its newest checkpoint. Invalid plans, refused
/// recoveries, fenced and blocked jobs are never restarted: nothing would change. A completed checkpoint sets the count of
/// attempts back to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RestartPolicy {
    /// Never: the first failure ends the job. The default.
    #[default]
    Never,
    /// After a fixed delay, at most `attempts` times.
    FixedDelay {
        /// Before each restart.
        delay: Duration,
        /// How many restarts.
        attempts: u32,
    },
    /// After delays that double from `first` to `longest`, at most `attempts` times.
    Exponential {
        /// Before the first restart.
        first: Duration,
        /// Never longer than this.
        longest: Duration,
        /// How many restarts.
        attempts: u32,
    },
}

impl RestartPolicy {
    /// The delay before the restart that follows `restarts` earlier ones; `None` to give up.
    ///
    /// ```
    /// use mailer_runtime::RestartPolicy;
    /// use std::time::Duration;
    /// let second = Duration::from_secs(1);
    /// let policy = RestartPolicy::Exponential { first: second, longest: 4 * second, attempts: 4 };
    /// let delays: Vec<_> = (0..5).map(|n| policy.delay(n).map(|d| d.as_secs())).collect();
    /// assert_eq!(delays, [Some(1), Some(2), Some(4), Some(4), None]);
    /// ```
    pub fn delay(self, restarts: u32) -> Option<Duration> {
        match self {
            RestartPolicy::Never => None,
            RestartPolicy::FixedDelay { delay, attempts } => (restarts < attempts).then_some(delay),
            RestartPolicy::Exponential { first, longest, attempts } => {
                let doubled = first.saturating_mul(2u32.saturating_pow(restarts));
                (restarts < attempts).then_some(doubled.min(longest))
            }
        }
    }
}
