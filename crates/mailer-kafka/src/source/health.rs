//! Whether a partition that brings nothing is idle or in trouble.
//!
//! Silence with an answer is idleness, silence without one is an outage, and silence while the broker says that there is
//! more is a stalled fetch.

use mailer_core::{Error, Result};
use std::time::Duration;

/// What is known about one silent partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// Since when it should have produced something and did not, and why we think so.
    trouble: Option<(Duration, String)>,
}

/// What a request brought that brought no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The partition ends here.
    End(i64),
    /// No answer, or an error.
    None(String),
}

impl Health {
    /// Something arrived.
    pub(crate) fn moved(&mut self) {
        self.trouble = None;
    }

    /// Takes an answer about a partition that stands at `next`; `now` is monotonic.
    pub(crate) fn answered(&mut self, answer: Answer, next: i64, now: Duration) {
        let trouble = match answer {
            Answer::End(end) if end <= next => None,
            Answer::End(end) => Some(format!("the partition goes to offset {end}, but nothing arrives after {next}")),
            Answer::None(why) => Some(why),
        };
        self.trouble = trouble.map(|why| (self.since().unwrap_or(now), why));
    }

    pub(crate) fn is_well(&self) -> bool {
        self.trouble.is_none()
    }

    /// An error when the trouble has lasted too long.
    pub(crate) fn check(&self, name: &str, deadline: Duration, now: Duration) -> Result<()> {
        match &self.trouble {
            Some((since, why)) if now.saturating_sub(*since) >= deadline => {
                Err(Error::unavailable(format!("{name} could not be read for {deadline:?} (`retry_deadline`): {why}")))
            }
            _ => Ok(()),
        }
    }

    /// For how long it has been in trouble.
    pub(crate) fn lasting(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since().unwrap_or(now))
    }

    fn since(&self) -> Option<Duration> {
        self.trouble.as_ref().map(|(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn idleness_is_well() {
        let mut health = Health::default();
        health.answered(Answer::End(5), 5, at(1));
        assert!(health.is_well());
        health.check("orders-0", DEADLINE, at(100)).unwrap();
    }

    #[test]
    fn an_outage_fails_after_the_deadline_counted_from_its_start() {
        let mut health = Health::default();
        health.answered(Answer::None("connection refused".into()), 5, at(1));
        health.answered(Answer::None("connection refused".into()), 5, at(9));
        health.check("orders-0", DEADLINE, at(10)).unwrap();
        let error = health.check("orders-0", DEADLINE, at(11)).unwrap_err();
        assert!(error.message().contains("connection refused") && error.message().contains("orders-0"), "{error}");
    }

    #[test]
    fn a_stall_is_trouble_and_records_end_it() {
        let mut health = Health::default();
        health.answered(Answer::End(9), 5, at(1));
        assert!(!health.is_well());
        health.moved();
        health.check("orders-0", DEADLINE, at(100)).unwrap();
    }
}
