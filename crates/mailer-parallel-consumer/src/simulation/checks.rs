//! What is known to be true of a run, kept apart from the scheduler, and what a checker says when it is not.

use crate::clock::Nanos;
use crate::{Options, Ordering, RateLimit};
use std::collections::{BTreeMap, BTreeSet};

/// What was broken, by the number of the invariant: the first case of each.
pub(super) type Violations = BTreeMap<u8, String>;

/// Where a record stands, as the world knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Waiting,
    Running,
    /// It failed, and waits for a backoff or for its dead letter.
    Failed,
    /// Its dead letter failed.
    LetterFailed,
    Finished,
}

/// One assignment of one partition to one member.
#[derive(Clone, Debug)]
pub(super) struct Assigned {
    pub(super) member: u64,
    pub(super) generation: u64,
    pub(super) start: i64,
    /// What is fetched next.
    pub(super) position: i64,
    pub(super) is_paused: bool,
    pub(super) revoked: Option<Revoked>,
    /// What the offset map said; it was checked when it was written.
    pub(super) restored: BTreeSet<i64>,
    /// Delivered records by offset, with their queue.
    pub(super) records: BTreeMap<i64, (String, Standing)>,
    pub(super) panicked: BTreeSet<i64>,
    pub(super) last_commit: Option<i64>,
    /// The broker refused a map: later ones are smaller, and may say less.
    pub(super) is_map_limited: bool,
}

/// Asked back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revoked {
    pub(super) at: Nanos,
    /// Nothing of it was running or half done.
    pub(super) was_idle: bool,
}

impl Assigned {
    /// Whether a record is truly complete, as far as this assignment may know.
    pub(super) fn is_finished(&self, offset: i64) -> bool {
        self.restored.contains(&offset) || self.records.get(&offset).is_some_and(|(_, s)| *s == Standing::Finished)
    }

    /// Invariants 1, 2, 8 and 17: everything below a commit is finished, and it does not go back.
    pub(super) fn check_commit(&mut self, log: &[Option<Option<u64>>], offset: i64, violations: &mut Violations) {
        let mut say = |invariant: u8, words: String| {
            violations.entry(invariant).or_insert(words);
        };
        for below in self.start..offset {
            let is_record = log.get(below as usize).is_some_and(Option::is_some);
            if is_record && !self.is_finished(below) {
                let standing = self.records.get(&below).map(|(_, standing)| *standing);
                say(1, format!("commit {offset} passes {below}, which is {standing:?}"));
                if standing == Some(Standing::LetterFailed) {
                    say(8, format!("commit {offset} passes {below}, whose dead letter failed"));
                }
                if self.panicked.contains(&below) {
                    say(17, format!("commit {offset} passes {below}, whose handler panicked"));
                }
            }
        }
        if self.last_commit.is_some_and(|last| last > offset) {
            say(2, format!("commit {offset} after {:?}", self.last_commit));
        }
        self.last_commit = Some(offset);
    }

    /// Invariants 4 and 19: a map claims finished records, and no offset without one.
    pub(super) fn check_map(&self, log: &[Option<Option<u64>>], claims: &[i64], violations: &mut Violations) {
        for claim in claims {
            let (invariant, words) = match log.get(*claim as usize) {
                Some(Some(_)) if self.is_finished(*claim) => continue,
                Some(None) => (19, "a marker"),
                _ => (4, "which is not complete"),
            };
            violations.entry(invariant).or_insert(format!("the map claims {claim}, {words}"));
        }
    }
}

/// The queue of a record, found without the scheduler's hashing.
pub(super) fn queue(options: &Options, partition: usize, offset: i64, key: Option<u64>) -> String {
    match (&options.ordering, key, options.key_scope) {
        (Ordering::Partition, ..) => format!("p{partition}"),
        (Ordering::Unordered, ..) | (_, None, _) => format!("p{partition}@{offset}"),
        (_, Some(key), crate::KeyScope::Partition) => format!("p{partition} k{key}"),
        (_, Some(key), _) => format!("k{key}"),
    }
}

/// Invariant 10: in any interval at most `burst + rate × length` starts.
pub(super) fn check_rate(limit: RateLimit, starts: &[Nanos], violations: &mut Violations) {
    let recent = &starts[starts.len().saturating_sub(200)..];
    let Some(last) = recent.last() else { return };
    for (count, first) in recent.iter().rev().enumerate() {
        let allowed = f64::from(limit.burst) + limit.per_second * (last - first) as f64 / 1e9;
        if (count + 1) as f64 > allowed + 1e-6 {
            violations.entry(10).or_insert(format!("{} starts from {first} to {last}", count + 1));
        }
    }
}
