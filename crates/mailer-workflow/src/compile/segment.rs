//! A stretch of the pipeline that has one reader so far, and is not built yet: so what follows can still be fused with it.

use super::head::{Head, Unkey, WithOperator};
use super::stateless::{Action, KeyedSteps, PlainSteps, Stateless, Steps, Wanted};
use crate::model::{Aggregation, Fold, Join, JoinKind, KeyOf, StepModel, Way, WindowSpec};
use crate::{Expression, Text, Value, ValueKey};
use mailer_core::{Either, Keyed, Record, Result};
use mailer_operators::{AsOfJoin, Collector, Description, IntervalJoin, Label, Operator, SideTag};
use mailer_runtime::{Connected, Error, KeyedStream, Stream};
use std::time::Duration;

/// See the module.
pub(super) struct Segment {
    base: Base,
    /// Steps behind the base.
    steps: Steps,
    /// A key that was given and is not used yet.
    pending: Option<Pending>,
}

enum Base {
    Plain(Stream<Value>),
    Keyed { stream: KeyedStream<ValueKey, Value>, steps: Steps, head: Option<Head> },
    Joined { streams: Connected<Keyed<ValueKey, Either<Value, Value>>>, name: String, join: Join },
}

/// A key, and what was done under it. Copied to every reader, if there are several.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    key: KeyOf,
    partitions: Option<u16>,
    steps: Steps,
    window: Option<WindowSpec>,
}

impl Segment {
    pub(super) fn plain(stream: Stream<Value>) -> Self {
        Self::with_key(stream, None)
    }

    /// A stream, and a key that is still to be given.
    pub(super) fn with_key(stream: Stream<Value>, pending: Option<Pending>) -> Self {
        Self { base: Base::Plain(stream), steps: Steps::default(), pending }
    }

    /// Appends a step without state.
    pub(super) fn step(mut self, step: Stateless) -> Self {
        match &mut self.pending {
            Some(pending) => pending.steps.push(step),
            None => self.steps.push(step),
        }
        self
    }

    pub(super) fn key_by(mut self, step: &StepModel, key: KeyOf, partitions: Option<u16>) -> Self {
        if let Some(unused) = self.pending.take() {
            self.steps.extend(unused.steps);
        }
        let id = step.id.as_ref().map(|id| id.value.as_str());
        self.steps.push(Stateless::new(id, step.on_error, Action::HasKey(key.clone())));
        self.pending = Some(Pending { key, partitions, steps: Steps::default(), window: None });
        self
    }

    pub(super) fn window(mut self, window: WindowSpec) -> Self {
        if let Some(pending) = &mut self.pending {
            pending.window = Some(window);
        }
        self
    }

    pub(super) fn reduce(mut self, step: &StepModel, name: &str, parts: Vec<Aggregation>) -> Result<Self> {
        let checks: Vec<_> = parts.iter().filter_map(|part| Some((part.field.clone()?, wanted(part.fold)?))).collect();
        if !checks.is_empty() {
            self = self.step(Stateless::new(Some(name), step.on_error, Action::CanReduce(checks)));
        }
        let name = name.to_owned();
        let head = match self.pending.as_mut().and_then(|pending| pending.window.take()) {
            Some(window) => Head::Window { name, window, parts },
            None => Head::Reduce { name, parts },
        };
        self.head(head)
    }

    /// Puts `head` behind the key that was given.
    pub(super) fn head(mut self, head: Head) -> Result<Self> {
        let Some(pending) = self.pending.take() else {
            return Err(Error::internal("a step by key has no key before it"));
        };
        Ok(self.keyed(pending, Some(head)))
    }

    /// Puts records of both together. Each side is under a key that nothing was done under yet.
    pub(super) fn join(self, other: Segment, name: &str, join: Join) -> Result<Self> {
        let streams = self.into_keyed()?.connect(other.into_keyed()?);
        let base = Base::Joined { streams, name: name.to_owned(), join };
        Ok(Self { base, steps: Steps::default(), pending: None })
    }

    fn into_keyed(mut self) -> Result<KeyedStream<ValueKey, Value>> {
        match self.pending.take().map(|pending| self.keyed(pending, None).base) {
            Some(Base::Keyed { stream, .. }) => Ok(stream),
            _ => Err(Error::internal("one side of a join has no key")),
        }
    }

    fn keyed(self, pending: Pending, head: Option<Head>) -> Self {
        let Pending { key, partitions, steps, .. } = pending;
        let stream = self.end(IntoKeyed { key });
        let stream = match partitions {
            Some(partitions) => stream.partitions(partitions),
            None => stream,
        };
        Self { base: Base::Keyed { stream, steps, head }, steps: Steps::default(), pending: None }
    }

    /// Ends the stretch: what is behind it has its own nodes.
    pub(super) fn finish(mut self) -> Stream<Value> {
        match self.pending.take() {
            Some(pending) => self.keyed(pending, None).end(IntoBranch),
            None => self.end(IntoBranch),
        }
    }

    /// Ends the stretch before the key, which every reader gets for itself.
    pub(super) fn share(mut self) -> (Stream<Value>, Option<Pending>) {
        let pending = self.pending.take();
        (self.end(IntoBranch), pending)
    }

    /// Every record one way; the first of several.
    pub(super) fn route(mut self, name: &str, step: &StepModel, ways: &[Way]) -> (Stream<Value>, Vec<Stream<Value>>) {
        if let Some(pending) = self.pending.take() {
            self = self.keyed(pending, None);
        }
        let ways = ways.iter().map(|way| (SideTag::new(&format!("{name}.{}", way.name.value)), way.when.clone()));
        let on_error = step.on_error;
        self.end(IntoWays { router: Router { label: Label::named("route", name), ways: ways.collect(), on_error } })
    }

    fn end<E: Ending>(self, ending: E) -> E::Out {
        let Segment { base, steps, .. } = self;
        match base {
            Base::Joined { streams, name, join } => joined(streams, &name, join, steps, ending),
            Base::Plain(stream) => ending.end(stream.apply(PlainSteps(steps))),
            Base::Keyed { stream, steps: keyed, head } => {
                let chain = stream.apply(KeyedSteps(keyed));
                match head {
                    Some(head) => head.build(Behind { chain, steps, ending }),
                    None => ending.end(chain.apply(Unkey).apply(PlainSteps(steps))),
                }
            }
        }
    }
}

/// A join, and what follows it.
fn joined<E: Ending>(
    streams: Connected<Keyed<ValueKey, Either<Value, Value>>>,
    name: &str,
    join: Join,
    steps: Steps,
    ending: E,
) -> E::Out {
    let Join { kind, left, right } = join;
    let (left, right) = (Text::from(left), Text::from(right));
    let result = move |key: &ValueKey, a: &Value, b: Option<&Value>| {
        let fields = [
            ("key".into(), key.to_value()),
            (left.clone(), a.clone()),
            (right.clone(), b.cloned().unwrap_or_default()),
        ];
        Value::object::<Text, Value>(fields)
    };
    let behind = PlainSteps(steps);
    let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match kind {
        JoinKind::AsOf => {
            let join = AsOfJoin::new(move |key: &ValueKey, a: Value, b: Option<&Value>| result(key, &a, b));
            ending.end(streams.apply(join.named(name)).apply(behind))
        }
        JoinKind::Interval { before, after, keep_left } => {
            let join = IntervalJoin::between(-millis(before), millis(after));
            if keep_left {
                ending.end(streams.apply(join.left(name, result)).apply(behind))
            } else {
                let pair = move |key: &ValueKey, a: &Value, b: &Value| result(key, a, Some(b));
                ending.end(streams.apply(join.inner(name, pair)).apply(behind))
            }
        }
    }
}

/// What a function needs of its field; nothing where any value will do.
fn wanted(fold: Fold) -> Option<Wanted> {
    match fold {
        Fold::Sum | Fold::Avg => Some(Wanted::Number),
        Fold::Min | Fold::Max | Fold::TopN(_) => Some(Wanted::Ordered),
        Fold::DistinctCount => Some(Wanted::Key),
        Fold::Count | Fold::First | Fold::Last | Fold::Collect => None,
    }
}

/// How a stretch ends. The type of its chain is known only there.
trait Ending {
    type Out;

    fn end<Op, In>(self, stream: Stream<Value, Op, In>) -> Self::Out
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>;
}

struct IntoBranch;

impl Ending for IntoBranch {
    type Out = Stream<Value>;

    fn end<Op, In>(self, stream: Stream<Value, Op, In>) -> Stream<Value>
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>,
    {
        stream.branch()
    }
}

struct IntoKeyed {
    key: KeyOf,
}

impl Ending for IntoKeyed {
    type Out = KeyedStream<ValueKey, Value>;

    fn end<Op, In>(self, stream: Stream<Value, Op, In>) -> Self::Out
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>,
    {
        // The step before has made sure that there is a key.
        stream.key_by(move |record: &Value| self.key.of(record, 0).unwrap_or(ValueKey::Bool(false)))
    }
}

struct IntoWays {
    router: Router,
}

impl Ending for IntoWays {
    type Out = (Stream<Value>, Vec<Stream<Value>>);

    fn end<Op, In>(self, stream: Stream<Value, Op, In>) -> Self::Out
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>,
    {
        let tags: Vec<_> = self.router.ways.iter().map(|(tag, _)| tag.clone()).collect();
        let mut rest = stream.apply(self.router).branch();
        let mut sides = Vec::new();
        for tag in tags {
            let (main, side) = rest.side_output(&tag);
            rest = main;
            sides.push(side);
        }
        (rest, sides)
    }
}

/// A keyed chain that waits for its operator.
struct Behind<Op, E>
where
    Op: Operator<Keyed<ValueKey, Value>, Out = Keyed<ValueKey, Value>>,
{
    chain: Stream<Keyed<ValueKey, Value>, Op, Keyed<ValueKey, Value>>,
    steps: Steps,
    ending: E,
}

impl<Op, E> WithOperator for Behind<Op, E>
where
    Op: Operator<Keyed<ValueKey, Value>, Out = Keyed<ValueKey, Value>>,
    E: Ending,
{
    type Out = E::Out;

    fn with<Head: Operator<Keyed<ValueKey, Value>, Out = Value>>(self, operator: Head) -> E::Out {
        self.ending.end(self.chain.apply(operator).apply(PlainSteps(self.steps)))
    }
}

/// Sends every record the first way whose condition holds.
#[derive(Clone)]
struct Router {
    label: Label,
    ways: Vec<(SideTag<Value>, Expression)>,
    on_error: crate::model::OnError,
}

impl Operator<Value> for Router {
    type Out = Value;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::stateless(self.label.clone()));
    }

    fn on_record(&mut self, record: Record<Value>, out: &mut impl Collector<Value>) -> Result<()> {
        for (tag, when) in &self.ways {
            match when.holds(&record.value, record.timestamp.0) {
                Ok(true) => {
                    out.side(tag, record);
                    return Ok(());
                }
                Ok(false) => {}
                Err(_) if self.on_error == crate::model::OnError::Skip => return Ok(()),
                Err(reason) => {
                    let message = format!("step {}: {reason}; `onError: skip` would drop such records", self.label);
                    return Err(Error::user_function(message));
                }
            }
        }
        out.collect(record)
    }
}
