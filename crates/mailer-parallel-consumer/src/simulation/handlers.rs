//! Simulated handlers and dead letters: how a job ends is drawn, and when.

use super::random::Random;
use crate::clock::Nanos;
use crate::scheduler::{Done, Failed, Job, NotPut, Outcome};
use crate::{BoxError, FailureKind, Record, Traits};

pub(super) const MILLI: Nanos = 1_000_000;

/// A job that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) until: Nanos,
    pub(super) began: Nanos,
    /// Partition, offset and generation of the assignment of each record.
    pub(super) places: Vec<Place>,
    pub(super) is_letter: bool,
    job: Job,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) partition: usize,
    pub(super) generation: u64,
    pub(super) offset: i64,
}

/// What the world has to note about a result.
#[derive(Debug)]
pub(super) struct Noted {
    /// So many records, from the first, are truly finished.
    pub(super) finished: usize,
    pub(super) panicked: bool,
    pub(super) letter_failed: bool,
}

impl Running {
    pub(super) fn new(now: Nanos, job: Job, places: Vec<Place>, random: &mut Random) -> Self {
        let takes = match random.range(0, 100) {
            0..30 => 0,
            30..90 => random.range(1, 60) * MILLI,
            90..99 => random.range(100, 1_000) * MILLI,
            _ => random.range(5_000, 40_000) * MILLI,
        };
        let is_letter = job.dead_letter.is_some();
        Self { until: now + takes, began: now, places, is_letter, job }
    }

    /// Ends it, well or badly; always well when `is_calm`.
    pub(super) fn end(self, now: Nanos, is_calm: bool, random: &mut Random) -> (Done, Noted) {
        let Job { dead_letter, refs, records, queue, .. } = self.job;
        let count = records.as_slice().len();
        let mut noted = Noted { finished: count, panicked: false, letter_failed: false };
        let is_good = is_calm || random.chance(if self.is_letter { 60 } else { 80 });
        let outcome = match dead_letter {
            _ if is_good => Outcome::Success,
            Some(failure) => {
                (noted.finished, noted.letter_failed) = (0, true);
                Outcome::NotPut(Box::new(NotPut { record: records, failure, error: BoxError::from("no room") }))
            }
            None => {
                let kinds = [FailureKind::Error, FailureKind::Error, FailureKind::Panic, FailureKind::Timeout];
                let kind = if random.chance(15) { FailureKind::Rejected } else { *random.pick(&kinds) };
                let knows = matches!(kind, FailureKind::Error | FailureKind::Rejected);
                let completed = if knows { random.range(0, count as u64) as usize } else { 0 };
                (noted.finished, noted.panicked) = (completed, kind == FailureKind::Panic);
                let error = BoxError::from("drawn");
                Outcome::Failed(Box::new(Failed { records, completed, kind, error, after: None, is_fatal: false }))
            }
        };
        let took = now - self.began;
        (Done { refs, queue, is_dead_letter: self.is_letter, took, traits: Traits::NONE, outcome }, noted)
    }
}

pub(super) fn record(partition: crate::Partition, offset: i64, key: Option<u64>, bytes: usize) -> Record {
    let key = key.map(|key| bytes::Bytes::from(key.to_string()));
    Record { key, value: Some(vec![0; bytes].into()), ..Record::at(partition, offset) }
}
