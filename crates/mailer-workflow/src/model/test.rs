//! Tests of a workflow.

use crate::{Span, Spanned, Value};
use std::time::Duration;

/// One test.
#[derive(Debug)]
pub(crate) struct TestModel {
    pub(crate) name: Spanned<String>,
    pub(crate) seed: u64,
    pub(crate) steps: Vec<Happening>,
    /// What is answered to `asyncMap` steps.
    pub(crate) answers: Vec<Answer>,
}

/// What happens in it.
#[derive(Debug)]
pub(crate) enum Happening {
    /// Records for the source of that place, as bytes.
    Send {
        source: usize,
        records: Vec<Vec<u8>>,
    },
    /// Event time of the source of that place, in milliseconds.
    Watermark {
        source: usize,
        time: i64,
    },
    /// The clock moves on.
    Advance(Duration),
    /// The clock moves to so much time after the start.
    At(Spanned<Duration>),
    Checkpoint,
    Crash,
    /// `span` is where it is said.
    Expect {
        of: Seen,
        how: Expected,
        records: Vec<Spanned<Value>>,
        span: Span,
    },
}

/// Which output is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// That of the sink of that place.
    Sink(usize),
    /// Records that came too late for a step.
    Late,
}

/// How output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    InOrder,
    InAnyOrder,
    Among,
    /// In any order, and only the fields that are named.
    Fields,
}

/// An answer of the outside.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) body: Value,
}
