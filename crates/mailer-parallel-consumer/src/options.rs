//! The options of a consumer, their defaults and their ranges; all that is wrong is reported at once.

use crate::retry::{Backoff, RetryPolicy};
use crate::{Error, KeyScope, Ordering};
use std::time::Duration;

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// How much fetched data may wait or run, in all partitions together.
///
/// Every assigned partition has an equal share. A partition over its share is paused alone; what one fetch brings
/// ([`Options::poll_bytes`]) may come on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Records: 50,000 by default, 1 to 10,000,000.
    pub records: usize,
    /// Bytes: 256 MiB by default, 64 KiB to 64 GiB.
    pub bytes: usize,
}

/// When and how offsets are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Time between two commits of a partition: 5 s by default, 250 ms to 15 s.
    pub interval: Duration,
    /// Whether the commit says which records *above* its offset are complete, so that a restart does not repeat them.
    pub offset_map: bool,
}

/// How far fetching may run ahead of one record that does not complete, and what happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Records between the first incomplete one and the last fetched one of a partition: 1,000,000 by default, 1,000 to
    /// 100,000,000. A completed record in the window costs a quarter of a byte.
    pub records: u64,
    /// What happens at the limit.
    pub stuck: Stuck,
}

/// What happens when a record is stuck and the window of its partition is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Fetch nothing more of this partition until the record completes.
    PausePartition,
    /// Abort the consumer: something outside starts it again.
    Abort,
}

/// At most this many handler starts, retries included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Starts a second, 0.001 to 10,000,000.
    pub per_second: f64,
    /// Starts that may come at once after a quiet time, 1 to 1,000,000.
    pub burst: u32,
}

/// What to do when a dead letter cannot be put away. The record stays incomplete in any case.
#[derive(Clone, Debug, PartialEq)]
pub enum DeadLetterFailure {
    /// Try again, for ever; the key waits.
    Retry(Backoff),
    /// Try again; abort the consumer after the attempts of the backoff.
    Abort(Backoff),
}

/// Everything that can be set, as [`Builder`](crate::Builder) collects it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Handlers that run at once: 250 by default, 1 to 100,000.
    pub max_in_flight: usize,
    /// What may run beside what.
    pub ordering: Ordering,
    /// How far a key reaches: its partition by default.
    pub key_scope: KeyScope,
    /// What is held in memory.
    pub buffer: Buffer,
    /// How far fetching may run ahead.
    pub window: Window,
    /// Attempts and waiting times.
    pub retry: RetryPolicy,
    /// How long one attempt may take: unlimited by default, 1 ms to 1 h.
    pub handler_timeout: Option<Duration>,
    /// Handler starts: unlimited by default.
    pub rate_limit: Option<RateLimit>,
    /// A failed dead letter: retried for ever by default, 100 ms to 30 s apart.
    pub dead_letter_failure: DeadLetterFailure,
    /// Commits.
    pub commit: Commit,
    /// How long a revoke or a graceful stop waits for running handlers: 20 s by default, 2 to 55 s.
    pub drain_timeout: Duration,
    /// How long the group may take to answer the first time: 50 s by default, 5 s to 5 min. An answer without
    /// partitions is an answer.
    pub assignment_timeout: Duration,
    /// An attempt that runs longer counts as stalled in snapshot, metrics and liveness: 1 min by default, 15 s to 15 min.
    pub stall_limit: Duration,
    /// Give up when polls fail for so long: 10 min by default, 1 min to 1 h; zero never gives up.
    pub poll_error_bail: Duration,
    /// How long one poll of the broker waits: 100 ms by default, 20 ms to 2 s.
    pub poll_timeout: Duration,
    /// Bytes that one poll may bring for one partition: 1 MiB by default, 1 B to 50 MiB.
    pub poll_bytes: usize,
    /// A record that arrives behind so many of its own key carries the trait bit `overflow`: 16 by default, 1 to 64. It
    /// delays nothing: a long queue of one key holds back only that key.
    pub key_queue: u32,
    /// The label `service` of every metric; empty for none.
    pub service: String,
    /// The label `team` of every metric; empty for none.
    pub team: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_in_flight: 250,
            ordering: Ordering::Key,
            key_scope: KeyScope::Partition,
            buffer: Buffer { records: 50_000, bytes: 256 << 20 },
            window: Window { records: 1_000_000, stuck: Stuck::PausePartition },
            retry: RetryPolicy::default(),
            handler_timeout: None,
            rate_limit: None,
            dead_letter_failure: DeadLetterFailure::Retry(Backoff::exponential(millis(100), seconds(30))),
            commit: Commit { interval: seconds(5), offset_map: true },
            drain_timeout: seconds(20),
            assignment_timeout: seconds(50),
            stall_limit: seconds(60),
            poll_error_bail: seconds(600),
            poll_timeout: millis(100),
            poll_bytes: 1 << 20,
            key_queue: 16,
            service: String::new(),
            team: String::new(),
        }
    }
}

impl Options {
    /// Checks every range, and that a drain ends before the group loses patience.
    pub fn check(&self, rebalance_timeout: Option<Duration>) -> Result<(), Error> {
        self.check_with(rebalance_timeout, Vec::new())
    }

    /// The same, and reports what else is wrong.
    pub(crate) fn check_with(&self, rebalance_timeout: Option<Duration>, others: Vec<String>) -> Result<(), Error> {
        let mut wrong = Wrong(others);
        self.sizes(&mut wrong);
        self.times(&mut wrong);
        wrong.0.extend(self.retry.problems());
        if let Some(limit) = rebalance_timeout.filter(|limit| *limit <= self.drain_timeout) {
            let drain = self.drain_timeout;
            wrong.0.push(format!("drain_timeout {drain:?} must be shorter than the rebalance timeout {limit:?}"));
        }
        wrong.result()
    }

    fn sizes(&self, wrong: &mut Wrong) {
        wrong.range("max_in_flight", self.max_in_flight, 1, 100_000);
        wrong.range("buffer.records", self.buffer.records, 1, 10_000_000);
        wrong.range("buffer.bytes", self.buffer.bytes, 64 << 10, 64 << 30);
        wrong.range("window.records", self.window.records, 1_000, 100_000_000);
        wrong.range("poll_bytes", self.poll_bytes, 1, 50 << 20);
        wrong.range("key_queue", self.key_queue, 1, 64);
        if let Some(limit) = self.rate_limit {
            wrong.range("rate_limit.per_second", limit.per_second, 0.001, 1e7);
            wrong.range("rate_limit.burst", limit.burst, 1, 1_000_000);
        }
    }

    fn times(&self, wrong: &mut Wrong) {
        wrong.range("commit.interval", self.commit.interval, millis(250), seconds(15));
        wrong.range("drain_timeout", self.drain_timeout, seconds(2), seconds(55));
        wrong.range("assignment_timeout", self.assignment_timeout, seconds(5), seconds(300));
        wrong.range("stall_limit", self.stall_limit, seconds(15), seconds(900));
        wrong.range("poll_timeout", self.poll_timeout, millis(20), seconds(2));
        if let Some(timeout) = self.handler_timeout {
            wrong.range("handler_timeout", timeout, millis(1), seconds(3600));
        }
        if !self.poll_error_bail.is_zero() {
            wrong.range("poll_error_bail", self.poll_error_bail, seconds(60), seconds(3600));
        }
    }
}

/// What is wrong, in the order of checking.
struct Wrong(Vec<String>);

impl Wrong {
    fn range<T: PartialOrd + std::fmt::Debug>(&mut self, name: &str, value: T, least: T, most: T) {
        if !(least <= value && value <= most) {
            self.0.push(format!("{name} is {value:?}, allowed is {least:?} to {most:?}"));
        }
    }

    fn result(self) -> Result<(), Error> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid_options(self.0.join("; "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::default();
        change(&mut options);
        options.check(Some(seconds(60))).map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn bad_options_are_all_named() {
        assert_eq!(problem(|_| {}), "fine");
        let text = problem(|o| {
            o.max_in_flight = 0;
            o.commit.interval = seconds(16);
        });
        assert_eq!(text, "max_in_flight is 0, allowed is 1 to 100000; commit.interval is 16s, allowed is 250ms to 15s");
    }

    #[test]
    fn every_range_has_two_ends() {
        type Change = fn(&mut Options);
        let beyond: [(&str, Change); 24] = [
            ("max_in_flight", |o| o.max_in_flight = 100_001),
            ("buffer.records", |o| o.buffer.records = 0),
            ("buffer.records", |o| o.buffer.records = 10_000_001),
            ("buffer.bytes", |o| o.buffer.bytes = 1),
            ("window.records", |o| o.window.records = 999),
            ("window.records", |o| o.window.records = 100_000_001),
            ("poll_bytes", |o| o.poll_bytes = 0),
            ("poll_bytes", |o| o.poll_bytes = (50 << 20) + 1),
            ("key_queue", |o| o.key_queue = 0),
            ("key_queue", |o| o.key_queue = 65),
            ("rate_limit.per_second", |o| o.rate_limit = Some(RateLimit { per_second: f64::NAN, burst: 1 })),
            ("rate_limit.burst", |o| o.rate_limit = Some(RateLimit { per_second: 1.0, burst: 0 })),
            ("commit.interval", |o| o.commit.interval = millis(249)),
            ("drain_timeout", |o| o.drain_timeout = millis(1_999)),
            ("drain_timeout", |o| o.drain_timeout = seconds(56)),
            ("assignment_timeout", |o| o.assignment_timeout = seconds(4)),
            ("assignment_timeout", |o| o.assignment_timeout = seconds(301)),
            ("stall_limit", |o| o.stall_limit = seconds(14)),
            ("stall_limit", |o| o.stall_limit = seconds(901)),
            ("poll_timeout", |o| o.poll_timeout = millis(19)),
            ("poll_timeout", |o| o.poll_timeout = millis(2_001)),
            ("handler_timeout", |o| o.handler_timeout = Some(Duration::ZERO)),
            ("poll_error_bail", |o| o.poll_error_bail = seconds(59)),
            ("retry", |o| o.retry = RetryPolicy::exponential(seconds(2), seconds(1), 3)),
        ];
        for (name, change) in beyond {
            assert!(problem(change).starts_with(name), "{name}: {}", problem(change));
        }
    }

    #[test]
    fn a_drain_must_end_before_the_group_loses_patience() {
        let options = Options { drain_timeout: seconds(20), ..Options::default() };
        assert!(options.check(Some(seconds(20))).is_err());
        assert!(options.check(Some(seconds(21))).is_ok());
        assert!(options.check(None).is_ok());
    }
}
