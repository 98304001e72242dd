//! What the scheduler hands out, and what comes back.

use crate::clock::Nanos;
use crate::ledger::Seq;
use crate::{BoxError, Failure, FailureKind, Record, Traits};
use std::time::Duration;

/// A record of one assignment of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ref {
    /// The number of the partition in this consumer.
    pub(crate) lane: u32,
    /// Which assignment of it; what belongs to an earlier one changes nothing.
    pub(crate) epoch: u32,
    /// The record's number there.
    pub(crate) seq: Seq,
}

/// One value without an allocation, or several.
#[derive(Clone, Debug)]
pub(crate) enum Several<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Several<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

/// An attempt to handle records of one key, or to put one away.
#[derive(Debug)]
pub(crate) struct Job {
    /// `Some`: put it away, for this reason.
    pub(crate) dead_letter: Option<Box<Failure>>,
    pub(crate) refs: Several<Ref>,
    pub(crate) records: Several<Record>,
    /// The key queue.
    pub(crate) queue: u64,
    /// From 1; that of the first record.
    pub(crate) attempt: u32,
    pub(crate) first_seen: Nanos,
}

/// How a job ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) refs: Several<Ref>,
    pub(crate) queue: u64,
    /// It was a dead letter.
    pub(crate) is_dead_letter: bool,
    pub(crate) took: Nanos,
    /// What the handler marked.
    pub(crate) traits: Traits,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Success,
    Failed(Box<Failed>),
    /// The dead letter could not be put away.
    NotPut(Box<NotPut>),
}

/// A failed attempt, with the records, which did not leave the executor.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) records: Several<Record>,
    /// So many of them are complete.
    pub(crate) completed: usize,
    pub(crate) kind: FailureKind,
    pub(crate) error: BoxError,
    /// Wait so long instead of the time of the policy.
    pub(crate) after: Option<Duration>,
    /// Stop the consumer.
    pub(crate) is_fatal: bool,
}

#[derive(Debug)]
pub(crate) struct NotPut {
    pub(crate) record: Several<Record>,
    pub(crate) failure: Box<Failure>,
    pub(crate) error: BoxError,
}
