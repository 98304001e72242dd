//! The time of day. It has one owner, so that tests can set it.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// Tells the time of day, by which signatures are dated and credentials end.
///
/// ```
/// use mailer_cloud_credentials::Clock;
/// use std::time::SystemTime;
///
/// let noon = Clock::new(|| SystemTime::UNIX_EPOCH);
/// assert_eq!(noon.now(), SystemTime::UNIX_EPOCH);
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// That of the machine. Clouds take a signature only when it is a few minutes wrong at most.
    #[expect(clippy::disallowed_methods, reason = "the owner of time in crates that do not know the engine")]
    pub fn system() -> Self {
        Self::new(SystemTime::now)
    }

    /// One of your own.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
