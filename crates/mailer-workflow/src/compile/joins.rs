//! Joins: the engine's own, over values.

use super::head::Bounds;
use crate::model::{Join, JoinKind, WindowKind, WindowSpec};
use crate::value::Text;
use crate::{Value, ValueKey};
use mailer_core::{Either, Keyed, Result, TimeWindow};
use mailer_operators::process::{Context, States, Value as Latest};
use mailer_operators::{
    AsOfJoin, Assigner, ConnectedFunction, Description, IntervalJoin, Label, Operator, Session, Sliding, Tumbling,
    Windows, connected,
};
use mailer_runtime::{Connected, Stream};
use std::time::Duration;

/// Two inputs under one key.
type Both = Connected<Keyed<ValueKey, Either<Value, Value>>>;

/// A join, ready to be built.
pub(super) struct Joined {
    pub(super) streams: Both,
    pub(super) name: String,
    pub(super) join: Join,
}

/// What goes on with a join, whatever the type of its chain.
pub(super) trait WithJoin {
    type Out;

    fn with<Op, In>(self, stream: Stream<Value, Op, In>) -> Self::Out
    where
        In: Send + 'static,
        Op: Operator<In, Out = Value>;
}

/// How the result of a join looks.
#[derive(Clone)]
struct Shape {
    left: Text,
    right: Text,
}

impl Shape {
    fn result(&self, key: &ValueKey, left: &Value, right: Option<&Value>) -> Value {
        Value::object::<Text, Value>([
            ("key".into(), key.to_value()),
            (self.left.clone(), left.clone()),
            (self.right.clone(), right.cloned().unwrap_or_default()),
        ])
    }
}

impl Joined {
    /// Hands the join over.
    pub(super) fn build<W: WithJoin>(self, then: W) -> W::Out {
        let Joined { streams, name, join: Join { kind, left, right } } = self;
        let shape = Shape { left: left.into(), right: right.into() };
        match kind {
            JoinKind::AsOf => {
                let result = move |key: &ValueKey, left: Value, right: Option<&Value>| shape.result(key, &left, right);
                then.with(streams.apply(AsOfJoin::new(result).named(&name)))
            }
            JoinKind::Interval { before, after, keep_left } => {
                let join = IntervalJoin::between(-millis(before), millis(after));
                if keep_left {
                    let result =
                        move |key: &ValueKey, left: &Value, right: Option<&Value>| shape.result(key, left, right);
                    return then.with(streams.apply(join.left(&name, result)));
                }
                let pair = move |key: &ValueKey, left: &Value, right: &Value| shape.result(key, left, Some(right));
                then.with(streams.apply(join.inner(&name, pair)))
            }
            JoinKind::Lookup { keep_left } => {
                let function = Lookup { shape, keep_left, latest: Latest::default() };
                then.with(streams.apply(connected(&name, function)))
            }
            JoinKind::Window { window, keep_left } => {
                let WindowSpec { kind, lateness, .. } = window;
                let one = OfWindows { streams, name, shape, keep_left, lateness };
                match kind {
                    WindowKind::Sliding { size, slide, .. } => one.build(Sliding::of(size.value, slide.value), then),
                    WindowKind::Session { gap } => one.build(Session::gap(gap.value), then),
                    WindowKind::Tumbling { size, .. } => one.build(Tumbling::of(size.value), then),
                    // A window join has no records to count; the reader makes none of this kind.
                    WindowKind::Global { .. } => one.build(Tumbling::of(Duration::ZERO), then),
                }
            }
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A join of windows, but for their kind.
struct OfWindows {
    streams: Both,
    name: String,
    shape: Shape,
    keep_left: bool,
    lateness: Duration,
}

impl OfWindows {
    fn build<A: Assigner, W: WithJoin>(self, assigner: A, then: W) -> W::Out {
        let Self { streams, name, shape, keep_left, lateness } = self;
        let pairs = move |key: &ValueKey, _: TimeWindow, lefts: Vec<Value>, rights: Vec<Value>| {
            let mut results = Vec::new();
            for left in &lefts {
                results.extend(rights.iter().map(|right| shape.result(key, left, Some(right))));
                if rights.is_empty() && keep_left {
                    results.push(shape.result(key, left, None));
                }
            }
            results
        };
        let windows = Windows::of(assigner).allowed_lateness(lateness);
        let join = windows.cogroup::<ValueKey, _, _>(&name, pairs);
        then.with(streams.apply(join).apply(Bounds { bounded: true, updates: false }))
    }
}

/// Every left record with the right one that came last.
#[derive(Clone)]
struct Lookup {
    shape: Shape,
    keep_left: bool,
    latest: Latest<Value>,
}

impl ConnectedFunction<ValueKey, Value, Value> for Lookup {
    type Out = Value;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("latest", &mut self.latest);
    }

    fn on_left(&mut self, left: Value, cx: &mut Context<'_, ValueKey, Value>) -> Result<()> {
        let right = self.latest.get(cx)?.cloned();
        if right.is_some() || self.keep_left {
            let result = self.shape.result(cx.key(), &left, right.as_ref());
            cx.emit(result);
        }
        Ok(())
    }

    fn on_right(&mut self, right: Value, cx: &mut Context<'_, ValueKey, Value>) -> Result<()> {
        self.latest.set(cx, right)
    }

    fn describe(&self, description: Description) -> Description {
        let label = match &description.label.name {
            Some(name) => Label::named("lookup_join", name),
            None => Label::kind("lookup_join"),
        };
        Description { label, ..description }
    }
}
