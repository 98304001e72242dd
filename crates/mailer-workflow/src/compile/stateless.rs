//! Steps without state, fused: a record goes through all of them before the next one comes.

use super::sides::Policy;
use crate::dead_letter::DeadLetter;
use crate::model::{Condition, KeyOf, Operation, Setting, StepModel};
use crate::value::{Object, Text};
use crate::{Expression, Path, Value, ValueKey};
use mailer_core::{Key, KeyHash, Keyed, Record, Result, Timestamp};
use mailer_operators::{Collector, Counter, Description, Label, OpenOperator, Operator, SideTag};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a step does to one record.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Filter(Condition),
    Map(Expression),
    Set {
        field: Path,
        to: Setting,
    },
    Rename {
        from: Path,
        to: Path,
    },
    Remove(Vec<Path>),
    Project(Vec<Path>),
    FlatMap(Expression),
    Explode {
        field: Path,
        to: Path,
    },
    /// Makes sure that there is a key. No step of its own: part of the keyBy behind it.
    HasKey(KeyOf),
    /// Makes sure that fields can be reduced. Part of the reduce behind it.
    CanReduce(Vec<(Path, Wanted)>),
}

/// What a reduce can work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Number,
    Ordered,
    Key,
}

/// What becomes of the record.
enum Outcome {
    GoesOn,
    Ends,
    Becomes(Vec<Value>),
}

impl Action {
    /// The action of a step without state.
    pub(super) fn of(operation: &Operation) -> Option<Action> {
        Some(match operation.clone() {
            Operation::Filter(condition) => Action::Filter(condition),
            Operation::Map(expression) => Action::Map(expression),
            Operation::Set { field, to } => Action::Set { field, to },
            Operation::Rename { from, to } => Action::Rename { from, to },
            Operation::Remove(fields) => Action::Remove(fields),
            Operation::Project(fields) => Action::Project(fields),
            Operation::FlatMap(expression) => Action::FlatMap(expression),
            Operation::Explode { field, to } => Action::Explode { field, to },
            _ => return None,
        })
    }

    /// What the engine calls it; nothing for what belongs to the operator behind.
    fn kind(&self) -> Option<&'static str> {
        match self {
            Action::Filter(_) => Some("filter"),
            Action::FlatMap(_) | Action::Explode { .. } => Some("flat_map"),
            Action::HasKey(_) | Action::CanReduce(_) => None,
            _ => Some("map"),
        }
    }

    fn act(&self, record: &mut Value, timestamp: i64) -> Result<Outcome, String> {
        match self {
            Action::Filter(condition) => {
                return Ok(if condition.holds(record, timestamp)? { Outcome::GoesOn } else { Outcome::Ends });
            }
            Action::Map(expression) => {
                let value = expression.evaluate(record, timestamp)?;
                become_of(record, value);
            }
            Action::Set { field, to } => {
                let value = match to {
                    Setting::Value(value) => value.clone(),
                    Setting::From(path) => path.get(record).cloned().unwrap_or_default(),
                    Setting::Expression(expression) => expression.evaluate(record, timestamp)?,
                };
                field.set(record, value);
            }
            Action::Rename { from, to } => {
                if let Some(value) = from.remove(record) {
                    to.set(record, value);
                }
            }
            Action::Remove(fields) => fields.iter().for_each(|field| drop(field.remove(record))),
            Action::Project(fields) => {
                let projected = project(record, fields);
                become_of(record, projected);
            }
            Action::FlatMap(expression) => return flat_map(record, expression.evaluate(record, timestamp)?),
            Action::Explode { field, to } => return explode(record, field, to),
            Action::HasKey(key) => key.of(record, timestamp).map(drop)?,
            Action::CanReduce(fields) => fields.iter().try_for_each(|(field, wanted)| wanted.check(field, record))?,
        }
        Ok(Outcome::GoesOn)
    }
}

/// The record is another one now, and still came from where it came.
fn become_of(record: &mut Value, mut value: Value) {
    value.take_note_of(record);
    *record = value;
}

fn project(record: &Value, fields: &[Path]) -> Value {
    let mut projected = Value::Object(Arc::new(Object::with_capacity(fields.len())));
    for field in fields {
        if let Some(value) = field.get(record) {
            field.set(&mut projected, value.clone());
        }
    }
    projected
}

fn flat_map(record: &Value, records: Value) -> Result<Outcome, String> {
    let Value::List(list) = records else {
        return Err(format!("the expression gives {}, not a list of records", records.kind()));
    };
    let one = |value| {
        let mut one = record.clone();
        become_of(&mut one, value);
        one
    };
    Ok(Outcome::Becomes(Arc::unwrap_or_clone(list).into_iter().map(one).collect()))
}

fn explode(record: &mut Value, field: &Path, to: &Path) -> Result<Outcome, String> {
    let elements = match field.get(record).map(Value::seen) {
        None | Some(Value::Null) => return Ok(Outcome::Ends),
        Some(Value::List(list)) => list.clone(),
        Some(other) => return Err(format!("field `{field}` is {}, not a list", other.kind())),
    };
    field.remove(record);
    let one = |element: &Value| {
        let mut one = record.clone();
        to.set(&mut one, element.clone());
        one
    };
    Ok(Outcome::Becomes(elements.iter().map(one).collect()))
}

impl Wanted {
    /// A field that is not there, or null, does not count, and is no error.
    fn check(self, field: &Path, record: &Value) -> Result<(), String> {
        let Some(value) = field.get(record).filter(|value| !value.is_null()) else { return Ok(()) };
        let (fine, wanted) = match self {
            Wanted::Number => (value.as_f64().is_some(), "a number"),
            Wanted::Ordered => (value.as_f64().is_some() || value.as_str().is_some(), "a number or text"),
            Wanted::Key => (ValueKey::of(value).is_ok(), "text, a number or a truth value"),
        };
        if fine { Ok(()) } else { Err(format!("field `{field}` is {}, not {wanted}", value.kind())) }
    }
}

impl KeyOf {
    /// The key of a record.
    pub(super) fn of(&self, record: &Value, timestamp: i64) -> Result<ValueKey, String> {
        let of = |field: &Path| match field.get(record) {
            Some(value) => ValueKey::of(value).map_err(|reason| format!("field `{field}`: {reason}")),
            None => Err(format!("the record has no field `{field}`, which is to be its key")),
        };
        match self {
            KeyOf::Field(field) => of(field),
            KeyOf::Fields(fields) => fields.iter().map(of).collect::<Result<_, _>>().map(ValueKey::Several),
            KeyOf::Expression(expression) => ValueKey::of(&expression.evaluate(record, timestamp)?),
        }
    }
}

/// One step, with what becomes of records it cannot handle.
#[derive(Clone, Debug)]
pub(super) struct Stateless {
    label: Option<Label>,
    /// For errors, counters and dead letters.
    name: Text,
    policy: Policy,
    /// Every worker has its own, with what it knows of where fields are.
    action: Action,
    /// Records that were skipped, or became dead letters.
    refused: Counter,
}

impl Stateless {
    pub(super) fn new(step: &StepModel, action: Action) -> Self {
        let id = step.id.as_ref().map(|id| id.value.as_str());
        let label = action.kind().map(|kind| id.map_or(Label::kind(kind), |id| Label::named(kind, id)));
        let name = id.or(label.as_ref().map(|label| label.kind)).unwrap_or("key_by").into();
        let policy = Policy::of(&step.on_error);
        Self { label, name, policy, action, refused: Counter::default() }
    }
}

/// Where records go behind steps.
trait Exit {
    fn emit(&mut self, value: Value) -> Result<()>;
    fn letter(&mut self, tag: &SideTag<DeadLetter>, letter: DeadLetter);
}

/// Steps in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps(Vec<Stateless>);

impl Steps {
    pub(super) fn push(&mut self, step: Stateless) {
        self.0.push(step);
    }

    pub(super) fn extend(&mut self, others: Steps) {
        self.0.extend(others.0);
    }

    /// The sinks that dead letters of these steps are for.
    pub(super) fn letters(&self) -> BTreeSet<Text> {
        self.0.iter().filter_map(|step| step.policy.sink()).collect()
    }

    fn describe(&self, out: &mut Vec<Description>) {
        out.extend(self.0.iter().filter_map(|step| step.label.clone()).map(Description::stateless));
    }

    fn open(&mut self, context: &mut dyn OpenOperator) {
        for step in &mut self.0 {
            if let Some(what) = step.policy.counted() {
                step.refused = context.counter(&step.name, what);
            }
        }
    }

    /// Takes a record through the steps from `first` on.
    fn run(&self, first: usize, mut record: Value, timestamp: i64, exit: &mut impl Exit) -> Result<()> {
        for (place, step) in self.0.iter().enumerate().skip(first) {
            match step.action.act(&mut record, timestamp) {
                Ok(Outcome::GoesOn) => {}
                Ok(Outcome::Ends) => return Ok(()),
                Ok(Outcome::Becomes(records)) => {
                    return records.into_iter().try_for_each(|record| self.run(place + 1, record, timestamp, exit));
                }
                Err(reason) => {
                    let refused = step.policy.refused(&step.name, reason, record)?;
                    step.refused.add(1);
                    if let Some((tag, letter)) = refused {
                        exit.letter(tag, letter);
                    }
                    return Ok(());
                }
            }
        }
        exit.emit(record)
    }
}

/// Steps over records.
#[derive(Clone, Debug)]
pub(super) struct PlainSteps(pub(super) Steps);

struct Plain<'a, C> {
    timestamp: Timestamp,
    out: &'a mut C,
}

impl<C: Collector<Value>> Exit for Plain<'_, C> {
    #[inline]
    fn emit(&mut self, value: Value) -> Result<()> {
        self.out.collect(Record { timestamp: self.timestamp, value })
    }

    fn letter(&mut self, tag: &SideTag<DeadLetter>, letter: DeadLetter) {
        self.out.side(tag, Record { timestamp: self.timestamp, value: letter });
    }
}

impl Operator<Value> for PlainSteps {
    type Out = Value;

    fn describe(&self, out: &mut Vec<Description>) {
        self.0.describe(out);
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        self.0.open(context);
        Ok(())
    }

    #[inline]
    fn on_record(&mut self, record: Record<Value>, out: &mut impl Collector<Value>) -> Result<()> {
        let Record { timestamp, value } = record;
        self.0.run(0, value, timestamp.0, &mut Plain { timestamp, out })
    }
}

/// Steps over records that keep their key.
#[derive(Clone, Debug)]
pub(super) struct KeyedSteps(pub(super) Steps);

struct UnderKey<'a, K, C> {
    timestamp: Timestamp,
    hash: KeyHash,
    key: K,
    out: &'a mut C,
}

impl<K: Key, C: Collector<Keyed<K, Value>>> Exit for UnderKey<'_, K, C> {
    #[inline]
    fn emit(&mut self, value: Value) -> Result<()> {
        let value = Keyed { hash: self.hash, key: self.key.clone(), value };
        self.out.collect(Record { timestamp: self.timestamp, value })
    }

    fn letter(&mut self, tag: &SideTag<DeadLetter>, letter: DeadLetter) {
        self.out.side(tag, Record { timestamp: self.timestamp, value: letter });
    }
}

impl Operator<Keyed<ValueKey, Value>> for KeyedSteps {
    type Out = Keyed<ValueKey, Value>;

    fn describe(&self, out: &mut Vec<Description>) {
        self.0.describe(out);
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        self.0.open(context);
        Ok(())
    }

    #[inline]
    fn on_record(
        &mut self,
        record: Record<Keyed<ValueKey, Value>>,
        out: &mut impl Collector<Keyed<ValueKey, Value>>,
    ) -> Result<()> {
        let Record { timestamp, value: Keyed { hash, key, value } } = record;
        self.0.run(0, value, timestamp.0, &mut UnderKey { timestamp, hash, key, out })
    }
}
