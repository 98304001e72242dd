//! `reduce`: combines the values of a key into one of the same type.

use crate::{Collector, Description, Label, OpenOperator, Operator};
use mailer_core::{Barrier, Error, Key, Keyed, Record, Result};
use mailer_state::{StateId, StateStore, ValueState};
use serde::{Serialize, de::DeserializeOwned};

/// Keeps one value per key: the first value as it came, then `function(&mut total, value)`. Every update is put out.
///
/// ```
/// use mailer_operators::{KeyBy, Reduce, Then, harness};
/// let by_parity = KeyBy::new(|x: &u32| x % 2);
/// let sum = Reduce::new("sum", |total: &mut u32, x| *total += x);
/// assert_eq!(harness::run(Then(by_parity, sum), [1, 2, 3]).unwrap(), [1, 2, 4]);
/// ```
pub struct Reduce<K, V, F> {
    pub(crate) label: Label,
    function: F,
    state: Option<ValueState<K, V>>,
}

impl<K, V, F> Reduce<K, V, F> {
    /// Reduces with `function`; state is stored under `name`.
    pub fn new(name: &str, function: F) -> Self {
        Self { label: Label::named("reduce", name), function, state: None }
    }
}

/// A clone is for another worker: it shares the function and begins with no state.
impl<K, V, F: Clone> Clone for Reduce<K, V, F> {
    fn clone(&self) -> Self {
        Self { label: self.label.clone(), function: self.function.clone(), state: None }
    }
}

impl<K, V, F> Operator<Keyed<K, V>> for Reduce<K, V, F>
where
    K: Key,
    V: Serialize + DeserializeOwned + Clone + Send + 'static,
    F: FnMut(&mut V, V) + Clone + Send + 'static,
{
    type Out = V;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::keyed(self.label.clone(), &["value"]));
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        self.state = Some(open_value(&self.label, context)?);
        Ok(())
    }

    #[inline]
    fn on_record(&mut self, record: Record<Keyed<K, V>>, out: &mut impl Collector<V>) -> Result<()> {
        let Record { timestamp, value: Keyed { hash, key, value } } = record;
        let state = self.state.as_mut().ok_or_else(|| not_open(&self.label))?;
        let slot = state.entry(hash, &key, out.state())?;
        match slot {
            Some(total) => self.label.run(|| (self.function)(total, value)),
            None => *slot = Some(value),
        }
        match slot {
            Some(total) => out.collect(Record { timestamp, value: total.clone() }),
            None => Ok(()),
        }
    }

    fn on_barrier(&mut self, _: Barrier, store: &mut dyn StateStore) -> Result<()> {
        self.state.as_mut().map_or(Ok(()), |state| state.write_back(store))
    }
}

/// Opens the only state of an operator that keeps one value per key.
pub(crate) fn open_value<K: Key, V: Serialize + DeserializeOwned + Send + 'static>(
    label: &Label,
    context: &mut dyn OpenOperator,
) -> Result<ValueState<K, V>> {
    let name = label.name.as_deref().unwrap_or_default();
    let id = StateId { operator: context.operator_id(name)?, state: 0 };
    Ok(ValueState::new(id, context.key_groups()))
}

#[cold]
pub(crate) fn not_open(label: &Label) -> Error {
    Error::internal(format!("operator {label} was given a record before it was opened"))
}
