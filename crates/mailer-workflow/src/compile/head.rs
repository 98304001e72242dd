//! What works by key: the engine's own operators, over values.

use super::fold::{Accumulator, Folds, with_window};
use crate::model::{Aggregation, Dedupe, WindowKind, WindowSpec};
use crate::{Value, ValueKey};
use mailer_core::{Keyed, Record, Result};
use mailer_operators::{
    Aggregate, Assigner, Collector, Dedupe as DedupeBy, Description, Global, Operator, Session, Sliding, Tumbling,
    Windowed, Windows,
};

/// The operator behind a keyBy.
#[derive(Clone, Debug)]
pub(super) enum Head {
    Reduce { name: String, parts: Vec<Aggregation> },
    Window { name: String, window: WindowSpec, parts: Vec<Aggregation> },
    Dedupe { name: String, dedupe: Dedupe },
}

/// What goes on with an operator, whatever its type.
pub(super) trait WithOperator {
    type Out;

    fn with<Op: Operator<Keyed<ValueKey, Value>, Out = Value>>(self, operator: Op) -> Self::Out;
}

impl Head {
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
                let Dedupe { horizon, fields, lateness } = dedupe;
                let id =
                    move |record: &Value| fields.iter().map(|field| identity(field.get(record))).collect::<Vec<_>>();
                let dedupe = DedupeBy::by(horizon, id).allowed_lateness(lateness);
                then.with(dedupe.named::<ValueKey>(&name))
            }
            Head::Window { name, window: WindowSpec { kind, lateness }, parts } => {
                let folds = Folds::new(&name, parts);
                match kind {
                    WindowKind::Tumbling { size, offset } => {
                        let windows = Windows::of(Tumbling::of(size.value).offset(offset));
                        windowed(windows.allowed_lateness(lateness), &name, folds, then)
                    }
                    WindowKind::Sliding { size, slide, offset } => {
                        let windows = Windows::of(Sliding::of(size.value, slide.value).offset(offset));
                        windowed(windows.allowed_lateness(lateness), &name, folds, then)
                    }
                    WindowKind::Session { gap } => {
                        let windows = Windows::of(Session::gap(gap.value));
                        windowed(windows.allowed_lateness(lateness), &name, folds, then)
                    }
                    WindowKind::Global { records } => {
                        windowed(Windows::of(Global::records(records)), &name, folds, then)
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

fn windowed<A, W>(windows: Windows<Value, A>, name: &str, folds: Folds, then: W) -> W::Out
where
    A: Assigner,
    W: WithOperator,
{
    let bounded = A::KIND != Global::KIND;
    let (create, add, merge, result) = (folds.clone(), folds.clone(), folds.clone(), folds);
    let operator = windows.aggregate::<ValueKey, _, _, _, _, _, _>(
        name,
        move || create.create(),
        move |accumulators: &mut Vec<Accumulator>, record: Value| add.add(accumulators, &record),
        move |accumulators: &mut Vec<Accumulator>, later| merge.merge(accumulators, later),
        move |key: &ValueKey, accumulators: Vec<Accumulator>| result.result(key, &accumulators),
    );
    then.with(mailer_operators::Then(operator, Bounds { bounded }))
}

/// Puts the bounds of its window into a result. Part of the window: it has no description of its own.
#[derive(Clone)]
struct Bounds {
    bounded: bool,
}

impl Operator<Windowed<ValueKey, Value>> for Bounds {
    type Out = Value;

    fn describe(&self, _: &mut Vec<Description>) {}

    #[inline]
    fn on_record(&mut self, record: Record<Windowed<ValueKey, Value>>, out: &mut impl Collector<Value>) -> Result<()> {
        let Record { timestamp, value: Windowed { window, value, .. } } = record;
        let value = if self.bounded { with_window(value, window) } else { value };
        out.collect(Record { timestamp, value })
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
