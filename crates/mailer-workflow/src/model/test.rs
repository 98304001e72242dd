//! Tests of a workflow.

use crate::{Span, Spanned, Value};

/// One test.
#[derive(Debug)]
pub(crate) struct TestModel {
    pub(crate) name: Spanned<String>,
    pub(crate) seed: u64,
    pub(crate) steps: Vec<Happening>,
}

/// What happens in it.
#[derive(Debug)]
pub(crate) enum Happening {
    /// Records for the source of that place.
    Send {
        source: usize,
        records: Vec<Value>,
    },
    Crash,
    /// Records of the sink of that place. `span` is where it is said.
    Expect {
        sink: usize,
        how: Expected,
        records: Vec<Spanned<Value>>,
        span: Span,
    },
}

/// How output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    InOrder,
    InAnyOrder,
    Among,
}
