//! What works by key: the engine's own operators, over values.

use super::fold::{Accumulator, Folds, with_window};
use super::process::ByExpression;
use super::sides::late_tag;
use crate::model::{Aggregation, Dedupe, Emission, WindowKind, WindowSpec};
use crate::value::Text;
use crate::{Path, Value, ValueKey};
use mailer_core::{Keyed, Record, Result};
use mailer_operators::process::Process;
use mailer_operators::{
    Aggregate, Assigner, Collector, Dedupe as DedupeBy, Description, Emit, Firing, Global, Operator, Session, Sliding,
    Tumbling, Windowed, Windows,
};
use std::sync::LazyLock;
use std::time::Duration;

/// The operator behind a keyBy.
#[derive(Clone)]
pub(super) enum Head {
    Reduce { name: String, parts: Vec<Aggregation> },
    Window { name: String, window: WindowSpec, parts: Vec<Aggregation> },
    Dedupe { name: String, dedupe: Dedupe },
    Process { name: String, function: ByExpression },
}

/// What goes on with an operator, whatever its type.
pub(super) trait WithOperator {
    type Out;

    fn with<Op: Operator<Keyed<ValueKey, Value>, Out = Value>>(self, operator: Op) -> Self::Out;
}

impl Head {
    /// The sink that its dead letters are for.
    pub(super) fn letters(&self) -> Option<Text> {
        if let Head::Process { function, .. } = self { function.letters() } else { None }
    }

    /// Hands the operator over.
    pub(super) fn build<W: WithOperator>(self, then: W) -> W::Out {
        match self {
            Head::Reduce { name, parts } => {
                let folds = Folds::new(&name, parts);
                let (create, add, result) = (folds.clone(), folds.clone(), folds);
                then.with(Aggregate::new(
                    &name,
                    move || create.create(),
                    move |accumulators: &mut Vec<Accumulator>, record: Value| add.add(accumulators, &record),
                    move |key: &ValueKey, accumulators: &Vec<Accumulator>| result.result(key, accumulators),
                ))
            }
            Head::Dedupe { name, dedupe } => {
                let Dedupe { horizon, fields, lateness, .. } = dedupe;
                let id =
                    move |record: &Value| fields.iter().map(|field| identity(field.get(record))).collect::<Vec<_>>();
                let dedupe = DedupeBy::by(horizon, id).allowed_lateness(lateness).late_to(&late_tag(&name));
                then.with(dedupe.named::<ValueKey>(&name))
            }
            Head::Process { name, function } => then.with(Process::new(&name, function)),
            Head::Window { name, window: WindowSpec { kind, lateness, emit, .. }, parts } => {
                let folds = Folds::new(&name, parts);
                let settings = (name.as_str(), lateness, emit);
                match kind {
                    WindowKind::Tumbling { size, offset } => {
                        windowed(Windows::of(Tumbling::of(size.value).offset(offset)), settings, folds, then)
                    }
                    WindowKind::Sliding { size, slide, offset } => {
                        let sliding = Sliding::of(size.value, slide.value).offset(offset);
                        windowed(Windows::of(sliding), settings, folds, then)
                    }
                    WindowKind::Session { gap } => {
                        windowed(Windows::of(Session::gap(gap.value)), settings, folds, then)
                    }
                    WindowKind::Global { records } => {
                        windowed(Windows::of(Global::records(records)), settings, folds, then)
                    }
                }
            }
        }
    }
}

/// What two records are compared by: the JSON, since any value may be an id.
fn identity(field: Option<&Value>) -> String {
    field.map(|value| value.seen().to_string()).unwrap_or_default()
}

fn windowed<A, W>(
    windows: Windows<Value, A>,
    (name, lateness, emission): (&str, Duration, Emission),
    folds: Folds,
    then: W,
) -> W::Out
where
    A: Assigner,
    W: WithOperator,
{
    let bounded = A::KIND != Global::KIND;
    let windows = if bounded { windows.allowed_lateness(lateness).late_to(&late_tag(name)) } else { windows };
    let (windows, updates) = match emission {
        Emission::Final => (windows, false),
        Emission::Updates { every, records } => (windows.emit(Emit::Updates { every, records }), true),
    };
    let (create, add, merge, result) = (folds.clone(), folds.clone(), folds.clone(), folds);
    let operator = windows.aggregate::<ValueKey, _, _, _, _, _, _>(
        name,
        move || create.create(),
        move |accumulators: &mut Vec<Accumulator>, record: Value| add.add(accumulators, &record),
        move |accumulators: &mut Vec<Accumulator>, later| merge.merge(accumulators, later),
        move |key: &ValueKey, accumulators: Vec<Accumulator>| result.result(key, &accumulators),
    );
    then.with(mailer_operators::Then(operator, Bounds { bounded, updates }))
}

/// Where a result says which of several it is.
static UPDATE: LazyLock<[Path; 2]> = LazyLock::new(|| ["revision", "firing"].map(|name| Path::of_names([name])));

/// Puts the bounds of its window into a result. Part of the window: it has no description of its own.
#[derive(Clone)]
pub(super) struct Bounds {
    /// Whether the window has bounds.
    pub(super) bounded: bool,
    /// Whether there may be several results of one window, which are to be told apart.
    pub(super) updates: bool,
}

impl Operator<Windowed<ValueKey, Value>> for Bounds {
    type Out = Value;

    fn describe(&self, _: &mut Vec<Description>) {}

    #[inline]
    fn on_record(&mut self, record: Record<Windowed<ValueKey, Value>>, out: &mut impl Collector<Value>) -> Result<()> {
        let Record { timestamp, value: Windowed { window, value, firing, revision, .. } } = record;
        let mut value = if self.bounded { with_window(value, window) } else { value };
        if self.updates {
            let [at_revision, at_firing] = &*UPDATE;
            at_revision.set(&mut value, Value::Integer(revision.into()));
            at_firing.set(&mut value, Value::from(word(firing)));
        }
        out.collect(Record { timestamp, value })
    }
}

fn word(firing: Firing) -> &'static str {
    match firing {
        Firing::Early => "early",
        Firing::OnTime => "onTime",
        Firing::Late => "late",
    }
}

/// Takes records from under their key.
#[derive(Clone)]
pub(super) struct Unkey;

impl Operator<Keyed<ValueKey, Value>> for Unkey {
    type Out = Value;

    fn describe(&self, _: &mut Vec<Description>) {}

    #[inline]
    fn on_record(&mut self, record: Record<Keyed<ValueKey, Value>>, out: &mut impl Collector<Value>) -> Result<()> {
        let Record { timestamp, value } = record;
        out.collect(Record { timestamp, value: value.value })
    }
}
