//! What a step does.

use crate::expression::Expression;
use crate::path::Path;
use crate::template::Template;
use crate::{Spanned, Value};
use regex::Regex;
use std::time::Duration;

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Filter(Condition),
    Map(Expression),
    Set { field: Path, to: Setting },
    Rename { from: Path, to: Path },
    Remove(Vec<Path>),
    Project(Vec<Path>),
    FlatMap(Expression),
    Explode { field: Path, to: Path },
    KeyBy { key: KeyOf, partitions: Option<u16> },
    Window(WindowSpec),
    Reduce(Vec<Aggregation>),
    Dedupe(Dedupe),
    Join(Join),
    Union,
    Route(Vec<Way>),
    Process(ProcessSpec),
    Call(Box<Call>),
}

/// When a filter keeps a record.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Field { field: Path, comparison: Comparison },
    Expression(Expression),
}

/// How a field is compared.
#[derive(Clone, Debug)]
pub(crate) enum Comparison {
    Equals(Value),
    NotEquals(Value),
    In(Vec<Value>),
    NotIn(Vec<Value>),
    Exists,
    NotExists,
    Greater(Value),
    GreaterOrEqual(Value),
    Less(Value),
    LessOrEqual(Value),
    Contains(Value),
    StartsWith(String),
    EndsWith(String),
    Matches(Regex),
}

/// What a field is set to.
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    Value(Value),
    From(Path),
    Expression(Expression),
}

/// What a record is keyed by.
#[derive(Clone, Debug)]
pub(crate) enum KeyOf {
    Field(Path),
    Fields(Vec<Path>),
    Expression(Expression),
}

/// Which windows.
#[derive(Clone, Debug)]
pub(crate) struct WindowSpec {
    pub(crate) kind: WindowKind,
    pub(crate) lateness: Duration,
    /// What late records are called as an input; nothing when they are only counted.
    pub(crate) late: Option<Spanned<String>>,
    pub(crate) emit: Emission,
}

/// Which results of a window are put out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emission {
    Final,
    Updates { every: Option<Duration>, records: Option<u64> },
}

#[derive(Clone, Debug)]
pub(crate) enum WindowKind {
    Tumbling { size: Spanned<Duration>, offset: Duration },
    Sliding { size: Spanned<Duration>, slide: Spanned<Duration>, offset: Duration },
    Session { gap: Spanned<Duration> },
    Global { records: u64 },
}

/// One result of a reduce.
#[derive(Clone, Debug)]
pub(crate) struct Aggregation {
    /// What it is called.
    pub(crate) name: Spanned<String>,
    pub(crate) fold: Fold,
    /// The field it is computed of; nothing for `count`.
    pub(crate) field: Option<Path>,
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Count,
    Sum,
    Min,
    Max,
    Avg,
    First,
    Last,
    Collect,
    DistinctCount,
    TopN(usize),
}

/// When two records are equal.
#[derive(Clone, Debug)]
pub(crate) struct Dedupe {
    pub(crate) horizon: Duration,
    pub(crate) fields: Vec<Path>,
    pub(crate) lateness: Duration,
    /// What late records are called as an input.
    pub(crate) late: Option<Spanned<String>>,
}

/// How two inputs are joined.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    /// What late records are called as an input.
    pub(crate) late: Option<Spanned<String>>,
    /// What the records are called in the result.
    pub(crate) left: String,
    pub(crate) right: String,
}

#[derive(Clone, Debug)]
pub(crate) enum JoinKind {
    Interval { before: Duration, after: Duration, keep_left: bool },
    AsOf,
    Window { window: WindowSpec, keep_left: bool },
    Lookup { keep_left: bool },
}

/// One way of a route.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) name: Spanned<String>,
    pub(crate) when: Expression,
}

/// State by key, by expressions.
#[derive(Clone, Debug)]
pub(crate) struct ProcessSpec {
    /// The state of a key that has none.
    pub(crate) initial: Value,
    /// The next state.
    pub(crate) update: Expression,
    /// Whether anything is put out.
    pub(crate) when: Option<Expression>,
    /// What is put out.
    pub(crate) emit: Expression,
    pub(crate) ttl: Option<Duration>,
}

/// A question to the outside for every record.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) url: Template,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Expression>,
    /// Where the answer is put.
    pub(crate) to: Path,
    pub(crate) timeout: Duration,
    pub(crate) concurrency: usize,
    pub(crate) retries: u32,
    pub(crate) backoff: Duration,
    pub(crate) ordered: bool,
    /// How long answers are kept, and how many.
    pub(crate) cache: Option<(Duration, usize)>,
}

impl Operation {
    /// What its late records are called as an input.
    pub(crate) fn late(&self) -> Option<&Spanned<String>> {
        match self {
            Operation::Window(window) => window.late.as_ref(),
            Operation::Dedupe(dedupe) => dedupe.late.as_ref(),
            Operation::Join(join) => join.late.as_ref(),
            _ => None,
        }
    }

    /// Whether it can fail at a record.
    pub(crate) fn can_fail(&self) -> bool {
        !matches!(
            self,
            Operation::Window(_)
                | Operation::Dedupe(_)
                | Operation::Join(_)
                | Operation::Union
                | Operation::Rename { .. }
                | Operation::Remove(_)
                | Operation::Project(_)
        )
    }
}
