//! `aggregate`: folds the values of a key into an accumulator of another type.

use crate::reduce::{not_open, open_value};
use crate::{Collector, Description, Label, OpenOperator, Operator};
use mailer_core::{Barrier, Key, Keyed, Record, Result};
use mailer_state::{StateStore, ValueState};
use serde::{Serialize, de::DeserializeOwned};
use std::marker::PhantomData;

/// Keeps one accumulator per key: `create()`, then `add(&mut accumulator, value)`; puts out `result(&key, &accumulator)`
/// at every update.
///
/// ```
/// use mailer_operators::{Aggregate, KeyBy, Then, harness};
/// let by_parity = KeyBy::new(|x: &u32| x % 2);
/// let mean = Aggregate::new("mean", || (0u32, 0u32), |a: &mut (u32, u32), x| { a.0 += x; a.1 += 1 },
///     |key: &u32, a: &(u32, u32)| (*key, a.0 / a.1));
/// assert_eq!(harness::run(Then(by_parity, mean), [2, 4]).unwrap(), [(0, 2), (0, 3)]);
/// ```
pub struct Aggregate<K, V, A, C, F, R> {
    pub(crate) label: Label,
    create: C,
    add: F,
    result: R,
    state: Option<ValueState<K, A>>,
    input: PhantomData<fn(V)>,
}

impl<K, V, A, C, F, R> Aggregate<K, V, A, C, F, R> {
    /// Aggregates; state is stored under `name`.
    pub fn new(name: &str, create: C, add: F, result: R) -> Self {
        Self { label: Label::named("aggregate", name), create, add, result, state: None, input: PhantomData }
    }
}

/// A clone is for another worker: it shares the functions and begins with no state.
impl<K, V, A, C: Clone, F: Clone, R: Clone> Clone for Aggregate<K, V, A, C, F, R> {
    fn clone(&self) -> Self {
        let (create, add, result) = (self.create.clone(), self.add.clone(), self.result.clone());
        Self { label: self.label.clone(), create, add, result, state: None, input: PhantomData }
    }
}

impl<K, V, A, O, C, F, R> Operator<Keyed<K, V>> for Aggregate<K, V, A, C, F, R>
where
    K: Key,
    V: Send + 'static,
    A: Serialize + DeserializeOwned + Send + 'static,
    O: Send + 'static,
    C: FnMut() -> A + Clone + Send + 'static,
    F: FnMut(&mut A, V) + Clone + Send + 'static,
    R: FnMut(&K, &A) -> O + Clone + Send + 'static,
{
    type Out = O;

    fn describe(&self, out: &mut Vec<Description>) {
        out.push(Description::keyed(self.label.clone(), &["accumulator"]));
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        self.state = Some(open_value(&self.label, context)?);
        Ok(())
    }

    #[inline]
    fn on_record(&mut self, record: Record<Keyed<K, V>>, out: &mut impl Collector<O>) -> Result<()> {
        let Record { timestamp, value: Keyed { hash, key, value } } = record;
        let state = self.state.as_mut().ok_or_else(|| not_open(&self.label))?;
        let slot = state.entry(hash, &key, out.state())?;
        let value = self.label.run(|| {
            let accumulator = slot.get_or_insert_with(&mut self.create);
            (self.add)(accumulator, value);
            (self.result)(&key, accumulator)
        });
        out.collect(Record { timestamp, value })
    }

    fn on_barrier(&mut self, _: Barrier, store: &mut dyn StateStore) -> Result<()> {
        self.state.as_mut().map_or(Ok(()), |state| state.write_back(store))
    }
}
