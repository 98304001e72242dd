//! What a reduce computes: accumulators, and how they grow, merge and become results.

use crate::model::{Aggregation, Fold};
use crate::value::FieldNames;
use crate::{Path, Value, ValueKey, times};
use mailer_core::TimeWindow;
use mailer_operators::rank;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

/// One accumulator, kept in state. Checkpoints depend on the order of the variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Accumulator {
    Count(u64),
    /// Nothing before the first number.
    Sum(Value),
    Least(Option<Value>),
    Greatest(Option<Value>),
    Mean {
        sum: f64,
        count: u64,
    },
    First(Option<Value>),
    Last(Option<Value>),
    All(Vec<Value>),
    Different(BTreeSet<ValueKey>),
    Top(Vec<Value>),
}

impl Accumulator {
    fn new(fold: Fold) -> Self {
        match fold {
            Fold::Count => Accumulator::Count(0),
            Fold::Sum => Accumulator::Sum(Value::Integer(0)),
            Fold::Min => Accumulator::Least(None),
            Fold::Max => Accumulator::Greatest(None),
            Fold::Avg => Accumulator::Mean { sum: 0.0, count: 0 },
            Fold::First => Accumulator::First(None),
            Fold::Last => Accumulator::Last(None),
            Fold::Collect => Accumulator::All(Vec::new()),
            Fold::DistinctCount => Accumulator::Different(BTreeSet::new()),
            Fold::TopN(_) => Accumulator::Top(Vec::new()),
        }
    }

    /// `false` when the accumulator is of another kind: the workflow has changed.
    fn add(&mut self, fold: Fold, value: &Value) -> bool {
        match (self, fold) {
            (Accumulator::Count(count), Fold::Count) => *count += 1,
            (Accumulator::Sum(sum), Fold::Sum) => *sum = plus(sum, value),
            (Accumulator::Least(least), Fold::Min) => take_if(least, value, Ordering::Less),
            (Accumulator::Greatest(greatest), Fold::Max) => take_if(greatest, value, Ordering::Greater),
            (Accumulator::Mean { sum, count }, Fold::Avg) => {
                *sum += value.as_f64().unwrap_or_default();
                *count += 1;
            }
            (Accumulator::First(first), Fold::First) => {
                first.get_or_insert_with(|| value.clone());
            }
            (Accumulator::Last(last), Fold::Last) => *last = Some(value.clone()),
            (Accumulator::All(all), Fold::Collect) => all.push(value.clone()),
            (Accumulator::Different(different), Fold::DistinctCount) => {
                different.extend(ValueKey::of(value));
            }
            (Accumulator::Top(top), Fold::TopN(n)) => {
                rank(top, n, value.clone(), greater_first);
            }
            _ => return false,
        }
        true
    }

    /// Takes in what came later.
    fn merge(&mut self, fold: Fold, later: Accumulator) {
        match (self, later) {
            (Accumulator::Count(count), Accumulator::Count(more)) => *count += more,
            (Accumulator::Sum(sum), Accumulator::Sum(more)) => *sum = plus(sum, &more),
            (Accumulator::Least(least), Accumulator::Least(Some(other))) => take_if(least, &other, Ordering::Less),
            (Accumulator::Greatest(greatest), Accumulator::Greatest(Some(other))) => {
                take_if(greatest, &other, Ordering::Greater);
            }
            (Accumulator::Mean { sum, count }, Accumulator::Mean { sum: more, count: others }) => {
                *sum += more;
                *count += others;
            }
            (Accumulator::First(first), Accumulator::First(other)) if first.is_none() => *first = other,
            (Accumulator::Last(last), Accumulator::Last(Some(other))) => *last = Some(other),
            (Accumulator::All(all), Accumulator::All(more)) => all.extend(more),
            (Accumulator::Different(different), Accumulator::Different(more)) => different.extend(more),
            (Accumulator::Top(top), Accumulator::Top(more)) => {
                let n = if let Fold::TopN(n) = fold { n } else { 0 };
                more.into_iter().for_each(|value| {
                    rank(top, n, value, greater_first);
                });
            }
            _ => {}
        }
    }

    fn result(&self) -> Value {
        match self {
            Accumulator::Count(count) => Value::Integer(i64::try_from(*count).unwrap_or(i64::MAX)),
            Accumulator::Sum(sum) => sum.clone(),
            Accumulator::Least(value)
            | Accumulator::Greatest(value)
            | Accumulator::First(value)
            | Accumulator::Last(value) => value.clone().unwrap_or_default(),
            Accumulator::Mean { count: 0, .. } => Value::Null,
            Accumulator::Mean { sum, count } => Value::Float(sum / *count as f64),
            Accumulator::All(all) | Accumulator::Top(all) => all.clone().into(),
            Accumulator::Different(different) => Value::Integer(i64::try_from(different.len()).unwrap_or(i64::MAX)),
        }
    }
}

/// Whole as long as it can be.
fn plus(a: &Value, b: &Value) -> Value {
    let exact = |a: &Value, b: &Value| match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.checked_add(*b),
        _ => None,
    };
    if let Some(sum) = exact(a.seen(), b.seen()) {
        return Value::Integer(sum);
    }
    Value::Float(a.as_f64().unwrap_or_default() + b.as_f64().unwrap_or_default())
}

fn take_if(best: &mut Option<Value>, value: &Value, order: Ordering) {
    if best.as_ref().is_none_or(|best| value.partial_cmp(best) == Some(order)) {
        *best = Some(value.clone());
    }
}

/// Numbers before texts; what cannot be compared keeps the order in which it came.
fn greater_first(a: &Value, b: &Value) -> Ordering {
    b.partial_cmp(a).unwrap_or_else(|| b.as_f64().is_some().cmp(&a.as_f64().is_some()))
}

/// Fields that a window adds to a result at most: its bounds, the revision and why it fired.
const OF_WINDOW: usize = 4;

/// All that one reduce computes.
#[derive(Clone, Debug)]
pub(super) struct Folds {
    step: Arc<str>,
    parts: Arc<[Aggregation]>,
    /// Of a result: `key`, and what the parts are called.
    names: FieldNames,
}

impl Folds {
    pub(super) fn new(step: &str, parts: Vec<Aggregation>) -> Self {
        let names = parts.iter().map(|part| part.name.value.as_str());
        let names = ["key"].into_iter().chain(names).collect();
        Self { step: step.into(), parts: parts.into(), names }
    }

    pub(super) fn create(&self) -> Vec<Accumulator> {
        self.parts.iter().map(|part| Accumulator::new(part.fold)).collect()
    }

    /// Records without the field, or with null there, do not count.
    ///
    /// # Panics
    ///
    /// When the state was kept by other functions: the job fails and says so.
    pub(super) fn add(&self, accumulators: &mut [Accumulator], record: &Value) {
        let mut same = accumulators.len() == self.parts.len();
        for (part, accumulator) in self.parts.iter().zip(accumulators) {
            let value = match &part.field {
                Some(field) => field.get(record).filter(|value| !value.is_null()),
                None => Some(&Value::Null),
            };
            if let Some(value) = value {
                same &= accumulator.add(part.fold, value);
            }
        }
        assert!(
            same,
            "the functions of step \"{}\" are others than when its state was written: give the step another id, or the \
             functions it had",
            self.step
        );
    }

    pub(super) fn merge(&self, accumulators: &mut [Accumulator], later: Vec<Accumulator>) {
        for ((part, accumulator), later) in self.parts.iter().zip(accumulators).zip(later) {
            accumulator.merge(part.fold, later);
        }
    }

    pub(super) fn result(&self, key: &ValueKey, accumulators: &[Accumulator]) -> Value {
        let mut values = Vec::with_capacity(1 + self.parts.len() + OF_WINDOW);
        values.push(key.to_value());
        values.extend(accumulators.iter().map(Accumulator::result));
        self.names.object(values)
    }
}

/// A result with the bounds of its window.
pub(super) fn with_window(mut result: Value, window: TimeWindow) -> Value {
    static BOUNDS: LazyLock<[Path; 2]> =
        LazyLock::new(|| ["windowStart", "windowEnd"].map(|name| Path::of_names([name])));
    for (path, time) in BOUNDS.iter().zip([window.start, window.end]) {
        path.set(&mut result, Value::from(times::format(time.0).as_str()));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, Spanned};

    fn folded(fold: Fold, values: &[&str], split: usize) -> String {
        let name = Spanned::new("r".to_owned(), Span::new(1, 1, 1));
        let folds = Folds::new("step", vec![Aggregation { name, fold, field: Some("x".parse().unwrap()) }]);
        let mut parts = [folds.create(), folds.create()];
        for (place, json) in values.iter().enumerate() {
            let record = Value::object([("x", Value::from_json(json.as_bytes()).unwrap())]);
            folds.add(&mut parts[usize::from(place >= split)], &record);
        }
        let [mut first, later] = parts;
        folds.merge(&mut first, later);
        folds.result(&ValueKey::Integer(1), &first).to_string()
    }

    #[test]
    fn every_function_is_the_same_in_one_part_or_in_two() {
        let values = ["3", "1", "2.5", "null", "3"];
        for (fold, result) in [
            (Fold::Sum, "9.5"),
            (Fold::Min, "1"),
            (Fold::Max, "3"),
            (Fold::Avg, "2.375"),
            (Fold::First, "3"),
            (Fold::Last, "3"),
            (Fold::Collect, "[3,1,2.5,3]"),
            (Fold::DistinctCount, "3"),
            (Fold::TopN(2), "[3,3]"),
        ] {
            for split in 0..=values.len() {
                assert_eq!(
                    folded(fold, &values, split),
                    format!(r#"{{"key":1,"r":{result}}}"#),
                    "{fold:?} split at {split}"
                );
            }
        }
    }

    #[test]
    fn sums_stay_whole_until_they_cannot() {
        assert!(folded(Fold::Sum, &["1", "2"], 1).contains("\"r\":3}"));
        assert!(folded(Fold::Sum, &["9223372036854775807", "1"], 1).contains("9.223372036854776e"));
        assert!(folded(Fold::Min, &["\"b\"", "\"a\""], 1).contains("\"a\""));
    }

    #[test]
    #[should_panic(expected = "another id")]
    fn state_of_other_functions_is_refused() {
        let name = Spanned::new("r".to_owned(), Span::new(1, 1, 1));
        let folds = Folds::new("step", vec![Aggregation { name, fold: Fold::Count, field: None }]);
        folds.add(&mut [Accumulator::Sum(Value::Integer(0))], &Value::Null);
    }
}
