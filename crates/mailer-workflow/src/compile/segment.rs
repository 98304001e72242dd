//! A stretch of the pipeline that has one reader so far, and is not built yet: so what follows can still be fused with it.

use super::head::{Head, Unkey, WithOperator};
use super::joins::{Joined, WithJoin};
use super::route::Router;
use super::sides::Sides;
use super::stateless::{Action, KeyedSteps, PlainSteps, Stateless, Steps, Wanted};
use crate::model::{Aggregation, Fold, Join, KeyOf, StepModel, Way, WindowSpec};
use crate::{Text, Value, ValueKey};
use mailer_core::{Keyed, Result};
use mailer_operators::Operator;
use mailer_runtime::{Error, KeyedStream, Stream};
use std::collections::BTreeSet;

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
    Joined(Joined),
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
        self.steps.push(Stateless::new(step, Action::HasKey(key.clone())));
        self.pending = Some(Pending { key, partitions, steps: Steps::default(), window: None });
        self
    }

    pub(super) fn window(mut self, window: WindowSpec) -> Self {
        if let Some(pending) = &mut self.pending {
            pending.window = Some(window);
        }
        self
    }

    /// Computes over the records of the key that was given, or over the window behind it.
    pub(super) fn reduce(
        mut self,
        step: &StepModel,
        name: &str,
        parts: Vec<Aggregation>,
        sides: &Sides,
    ) -> Result<Self> {
        let checks: Vec<_> = parts.iter().filter_map(|part| Some((part.field.clone()?, wanted(part.fold)?))).collect();
        if !checks.is_empty() {
            self = self.step(Stateless::new(step, Action::CanReduce(checks)));
        }
        let name = name.to_owned();
        let head = match self.pending.as_mut().and_then(|pending| pending.window.take()) {
            Some(window) => Head::Window { name, window, parts },
            None => Head::Reduce { name, parts },
        };
        self.head(head, sides)
    }

    /// The window that was put behind the key, if one was.
    pub(super) fn pending_window(&self) -> Option<&WindowSpec> {
        self.pending.as_ref()?.window.as_ref()
    }

    /// Puts `head` behind the key that was given.
    pub(super) fn head(mut self, head: Head, sides: &Sides) -> Result<Self> {
        let Some(pending) = self.pending.take() else {
            return Err(Error::internal("a step by key has no key before it"));
        };
        Ok(self.keyed(pending, Some(head), sides))
    }

    /// Puts records of both together. Each side is under a key that nothing was done under yet.
    pub(super) fn join(self, other: Segment, name: &str, join: Join, sides: &Sides) -> Result<Self> {
        let streams = self.into_keyed(sides)?.connect(other.into_keyed(sides)?);
        let base = Base::Joined(Joined { streams, name: name.to_owned(), join });
        Ok(Self { base, steps: Steps::default(), pending: None })
    }

    fn into_keyed(mut self, sides: &Sides) -> Result<KeyedStream<ValueKey, Value>> {
        match self.pending.take().map(|pending| self.keyed(pending, None, sides).base) {
            Some(Base::Keyed { stream, .. }) => Ok(stream),
            _ => Err(Error::internal("one side of a join has no key")),
        }
    }

    fn keyed(self, pending: Pending, head: Option<Head>, sides: &Sides) -> Self {
        let Pending { key, partitions, steps, .. } = pending;
        let stream = self.end(IntoKeyed { key }, sides);
        let stream = match partitions {
            Some(partitions) => stream.partitions(partitions),
            None => stream,
        };
        Self { base: Base::Keyed { stream, steps, head }, steps: Steps::default(), pending: None }
    }

    /// Ends the stretch: what is behind it has its own nodes.
    pub(super) fn finish(mut self, sides: &Sides) -> Stream<Value> {
        match self.pending.take() {
            Some(pending) => self.keyed(pending, None, sides).end(IntoBranch, sides),
            None => self.end(IntoBranch, sides),
        }
    }

    /// Ends the stretch before the key, which every reader gets for itself.
    pub(super) fn share(mut self, sides: &Sides) -> (Stream<Value>, Option<Pending>) {
        let pending = self.pending.take();
        (self.end(IntoBranch, sides), pending)
    }

    /// Every record one way; the first of several.
    pub(super) fn route(
        mut self,
        name: &str,
        step: &StepModel,
        ways: &[Way],
        sides: &Sides,
    ) -> (Stream<Value>, Vec<Stream<Value>>) {
        if let Some(pending) = self.pending.take() {
            self = self.keyed(pending, None, sides);
        }
        self.end(IntoWays { router: Router::new(name, step, ways), sides: sides.clone() }, sides)
    }

    fn end<E: Ending>(self, ending: E, sides: &Sides) -> E::Out {
        let Segment { base, steps, .. } = self;
        let mut letters = steps.letters();
        match base {
            Base::Joined(joined) => joined.build(BehindJoin { steps, ending: Sided { ending, letters, sides } }),
            Base::Plain(stream) => Sided { ending, letters, sides }.end(stream.apply(PlainSteps(steps))),
            Base::Keyed { stream, steps: keyed, head } => {
                letters.extend(keyed.letters());
                letters.extend(head.as_ref().and_then(Head::letters));
                let ending = Sided { ending, letters, sides };
                let chain = stream.apply(KeyedSteps(keyed));
                match head {
                    Some(head) => head.build(Behind { chain, steps, ending }),
                    None => ending.end(chain.apply(Unkey).apply(PlainSteps(steps))),
                }
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

/// Takes dead letters out, then ends as `ending` does.
struct Sided<'a, E> {
    ending: E,
    /// The sinks that letters are for.
    letters: BTreeSet<Text>,
    sides: &'a Sides,
}

impl<E: Ending> Ending for Sided<'_, E> {
    type Out = E::Out;

    fn end<Op, In>(self, stream: Stream<Value, Op, In>) -> Self::Out
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>,
    {
        if self.letters.is_empty() {
            return self.ending.end(stream);
        }
        self.ending.end(self.sides.take_out(stream, &self.letters))
    }
}

struct IntoWays {
    router: Router,
    sides: Sides,
}

impl Ending for IntoWays {
    type Out = (Stream<Value>, Vec<Stream<Value>>);

    fn end<Op, In>(self, stream: Stream<Value, Op, In>) -> Self::Out
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>,
    {
        let (tags, letters) = (self.router.tags(), self.router.letters());
        let mut rest = self.sides.take_out(stream.apply(self.router), &letters);
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

/// A join that waits for what is behind it.
struct BehindJoin<E> {
    steps: Steps,
    ending: E,
}

impl<E: Ending> WithJoin for BehindJoin<E> {
    type Out = E::Out;

    fn with<Op, In>(self, stream: Stream<Value, Op, In>) -> E::Out
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>,
    {
        self.ending.end(stream.apply(PlainSteps(self.steps)))
    }
}
