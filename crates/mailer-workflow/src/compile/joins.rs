//! Joins: the engine's own, over values.

use super::head::Bounds;
use crate::model::{Join, JoinKind, WindowKind, WindowSpec};
use crate::value::Text;
use crate::{Value, ValueKey};
use mailer_core::{Either, Keyed, Result, TimeWindow};
use mailer_operators::process::{Context, States, Value as Latest};
use mailer_operators::{
    AsOfJoin, Assigner, ConnectedFunction, Description, IntervalJoin, Label, Operator, Session, SideTag, Sliding,
    Tumbling, Windows, connected,
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
    /// Both as one record, which came from where the left one did.
    fn result(&self, key: &ValueKey, left: &Value, right: Option<&Value>) -> Value {
        let mut result = Value::object::<Text, Value>([
            ("key".into(), key.to_value()),
            (self.left.clone(), left.clone()),
            (self.right.clone(), right.cloned().unwrap_or_default()),
        ]);
        result.take_note_of(left);
        result
    }
}

impl Joined {
    /// Hands the join over.
    pub(super) fn build<W: WithJoin>(self, then: W) -> W::Out {
        let Joined { streams, name, join: Join { kind, left, right, late: _ } } = self;
        let shape = Shape { left: left.into(), right: right.into() };
        let LateTags { left: late_left, right: late_right, either: late } = LateTags::of(&name);
        match kind {
            JoinKind::AsOf => {
                let result = move |key: &ValueKey, left: Value, right: Option<&Value>| shape.result(key, &left, right);
                let join = AsOfJoin::new(result).late_left_to(&late_left).late_right_to(&late_right);
                then.with(streams.apply(join.named(&name)))
            }
            JoinKind::Interval { before, after, keep_left } => {
                let join = IntervalJoin::between(-millis(before), millis(after));
                let join = join.late_left_to(&late_left).late_right_to(&late_right);
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
                let one = OfWindows { streams, name, shape, keep_left, lateness, late };
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

/// What late records of the join called `name` are tagged with. Windows take both sides together.
struct LateTags {
    left: SideTag<Value>,
    right: SideTag<Value>,
    either: SideTag<Either<Value, Value>>,
}

impl LateTags {
    fn of(name: &str) -> Self {
        let left = SideTag::new(&format!("late left: {name}"));
        let right = SideTag::new(&format!("late right: {name}"));
        Self { left, right, either: SideTag::new(&format!("late: {name}")) }
    }
}

/// Takes late records out of what the join called `name` puts out: `{"left": …}` or `{"right": …}`, named as in its results.
pub(super) fn take_late(stream: Stream<Value>, name: &str, join: &Join) -> (Stream<Value>, Stream<Value>) {
    let (left, right) = (Text::from(join.left.as_str()), Text::from(join.right.as_str()));
    let tags = LateTags::of(name);
    if let JoinKind::Window { .. } = join.kind {
        let (main, late) = stream.side_output(&tags.either);
        let side = move |late: Either<Value, Value>| match late {
            Either::Left(record) => one_sided(&left, record),
            Either::Right(record) => one_sided(&right, record),
        };
        return (main, late.map(side).named("late").branch());
    }
    let (main, lefts) = stream.side_output(&tags.left);
    let (main, rights) = main.side_output(&tags.right);
    let lefts = lefts.map(move |record| one_sided(&left, record)).named("late_left").branch();
    let rights = rights.map(move |record| one_sided(&right, record)).named("late_right").branch();
    (main, lefts.union(rights))
}

/// A record of one side alone.
fn one_sided(side: &Text, record: Value) -> Value {
    let mut alone = Value::object::<Text, Value>([(side.clone(), record.clone())]);
    alone.take_note_of(&record);
    alone
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
    late: SideTag<Either<Value, Value>>,
}

impl OfWindows {
    fn build<A: Assigner, W: WithJoin>(self, assigner: A, then: W) -> W::Out {
        let Self { streams, name, shape, keep_left, lateness, late } = self;
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
        let windows = Windows::of(assigner).allowed_lateness(lateness).late_to(&late);
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
