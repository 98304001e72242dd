//! When a failed attempt is repeated, and when it is enough.

use crate::BoxError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Waiting times that grow from `first` by `factor` to `longest`, and the attempts after which it is enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Before the second attempt.
    pub first: Duration,
    /// What each further waiting time is multiplied by, 1 or more.
    pub factor: f64,
    /// No waiting time is longer.
    pub longest: Duration,
    /// Attempts in all, the first included; 0 for no end.
    pub attempts: u32,
}

impl Backoff {
    /// Doubles from `first` to `longest`, without end.
    pub const fn exponential(first: Duration, longest: Duration) -> Self {
        Self { first, factor: 2.0, longest, attempts: 0 }
    }

    /// The same with an end.
    pub const fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// How long to wait after `attempt` (from 1) has failed; `None` when it was the last.
    ///
    /// ```
    /// use mailer_parallel_consumer::Backoff;
    /// use std::time::Duration;
    /// let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(3)).attempts(4);
    /// let waits: Vec<_> = (1..=4).map(|attempt| backoff.after(attempt).map(|wait| wait.as_secs())).collect();
    /// assert_eq!(waits, [Some(1), Some(2), Some(3), None]);
    /// ```
    pub fn after(&self, attempt: u32) -> Option<Duration> {
        if self.attempts != 0 && attempt >= self.attempts {
            return None;
        }
        let grown = self.first.as_secs_f64() * self.factor.powi(attempt.saturating_sub(1).min(1_000) as i32);
        Some(Duration::from_secs_f64(grown.min(self.longest.as_secs_f64())))
    }

    fn problem(&self) -> Option<&'static str> {
        let shrinks = !(self.factor >= 1.0 && self.factor.is_finite());
        match () {
            () if self.first > self.longest => Some("the first waiting time is longer than the longest"),
            () if self.longest > Duration::from_secs(24 * 3_600) => Some("a waiting time is longer than a day"),
            () if shrinks => Some("factor must be 1 or more"),
            () => None,
        }
    }
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The handler returned [`HandlerError::Retry`](crate::HandlerError::Retry).
    Error,
    /// The handler panicked.
    Panic,
    /// The attempt took longer than the handler timeout.
    Timeout,
    /// The handler returned [`HandlerError::Reject`](crate::HandlerError::Reject): it is not repeated.
    Rejected,
}

type Predicate = Arc<dyn Fn(&BoxError) -> bool + Send + Sync>;

/// Which backoff follows which failure.
///
/// ```
/// use mailer_parallel_consumer::{Backoff, RetryPolicy};
/// use std::time::Duration;
/// let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
/// let policy = RetryPolicy::exponential(second, minute, 5)
///     .on_panic(Backoff::exponential(second, second).attempts(2))
///     .when(|error| error.is::<std::io::Error>(), Backoff::exponential(second, minute));
/// ```
#[derive(Clone)]
pub struct RetryPolicy {
    error: Backoff,
    panic: Backoff,
    timeout: Backoff,
    classes: Vec<(Predicate, Backoff)>,
}

impl RetryPolicy {
    /// One backoff, doubling, for errors, panics and timeouts; `attempts` in all, 0 for no end.
    pub fn exponential(first: Duration, longest: Duration, attempts: u32) -> Self {
        let backoff = Backoff::exponential(first, longest).attempts(attempts);
        Self { error: backoff, panic: backoff, timeout: backoff, classes: Vec::new() }
    }

    /// Nothing is repeated: the first failure is a dead letter.
    pub fn never() -> Self {
        Self::exponential(Duration::ZERO, Duration::ZERO, 1)
    }

    /// Another backoff for panics.
    pub fn on_panic(self, panic: Backoff) -> Self {
        Self { panic, ..self }
    }

    /// Another backoff for timeouts.
    pub fn on_timeout(self, timeout: Backoff) -> Self {
        Self { timeout, ..self }
    }

    /// Another backoff for a class of errors: the first predicate that says yes decides.
    pub fn when(mut self, is: impl Fn(&BoxError) -> bool + Send + Sync + 'static, backoff: Backoff) -> Self {
        self.classes.push((Arc::new(is), backoff));
        self
    }

    /// How long to wait after `attempt` failed so; `None` when it becomes a dead letter.
    pub(crate) fn after(&self, kind: FailureKind, error: &BoxError, attempt: u32) -> Option<Duration> {
        match kind {
            FailureKind::Rejected => None,
            FailureKind::Panic => self.panic.after(attempt),
            FailureKind::Timeout => self.timeout.after(attempt),
            FailureKind::Error => self.class_of(error).after(attempt),
        }
    }

    fn class_of(&self, error: &BoxError) -> &Backoff {
        self.classes.iter().find(|(is, _)| is(error)).map_or(&self.error, |(_, backoff)| backoff)
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let named = [("error", &self.error), ("panic", &self.panic), ("timeout", &self.timeout)];
        let classes = self.classes.iter().map(|(_, backoff)| ("a class", backoff));
        let mut problems: Vec<String> = Vec::new();
        for (name, backoff) in named.into_iter().chain(classes) {
            problems.extend(backoff.problem().map(|problem| format!("retry of {name}: {problem}")));
        }
        problems
    }
}

impl Default for RetryPolicy {
    /// 100 ms doubling to 30 s, ten attempts.
    fn default() -> Self {
        Self::exponential(Duration::from_millis(100), Duration::from_secs(30), 10)
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes: Vec<_> = self.classes.iter().map(|(_, backoff)| backoff).collect();
        f.debug_struct("RetryPolicy")
            .field("error", &self.error)
            .field("panic", &self.panic)
            .field("timeout", &self.timeout)
            .field("classes", &classes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_own_attempts() {
        let second = Duration::from_secs(1);
        let policy = RetryPolicy::exponential(second, second, 3)
            .on_panic(Backoff::exponential(second, second).attempts(1))
            .when(|error| error.is::<std::num::ParseIntError>(), Backoff::exponential(second, second).attempts(2));
        let other = BoxError::from("other");
        let parse: BoxError = "x".parse::<i32>().unwrap_err().into();
        let repeats = |kind, error: &BoxError| (1..10).take_while(|n| policy.after(kind, error, *n).is_some()).count();
        assert_eq!(repeats(FailureKind::Error, &other), 2);
        assert_eq!(repeats(FailureKind::Error, &parse), 1);
        assert_eq!(repeats(FailureKind::Panic, &other), 0);
        assert_eq!(repeats(FailureKind::Timeout, &other), 2);
        assert_eq!(repeats(FailureKind::Rejected, &other), 0);
    }

    #[test]
    fn without_end_means_without_overflow() {
        let backoff = Backoff::exponential(Duration::from_millis(1), Duration::from_secs(30));
        assert_eq!(backoff.after(u32::MAX), Some(Duration::from_secs(30)));
    }
}
