//! A value per key that elements are folded into.

use crate::{StateId, StateStore, ValueState};
use mailer_core::{Key, KeyHash, Result};
use serde::{Serialize, de::DeserializeOwned};

/// Combines all values added under a key into one of the same type.
///
/// ```
/// use mailer_core::KeyHash;
/// use mailer_state::{ReducingState, StateId, testing::MapStore};
/// let mut store = MapStore::default();
/// let mut highest = ReducingState::<u8, i64, _>::new(StateId { operator: 1, state: 0 }, 1_024, i64::max);
/// for value in [3, 9, 4] {
///     highest.add(KeyHash(1), &1, value, &mut store).unwrap();
/// }
/// assert_eq!(highest.get(KeyHash(1), &1, &mut store).unwrap(), Some(&9));
/// ```
pub struct ReducingState<K, V, F> {
    values: ValueState<K, V>,
    reduce: F,
}

impl<K, V, F> ReducingState<K, V, F>
where
    K: Key,
    V: Serialize + DeserializeOwned + Send + 'static,
    F: FnMut(V, V) -> V,
{
    /// The state `id` of a job with `key_groups` key groups; `reduce` gets the value so far and the new one.
    pub fn new(id: StateId, key_groups: u16, reduce: F) -> Self {
        Self { values: ValueState::new(id, key_groups), reduce }
    }

    /// Adds a value.
    #[inline]
    pub fn add(&mut self, hash: KeyHash, key: &K, value: V, store: &mut dyn StateStore) -> Result<()> {
        let slot = self.values.entry(hash, key, store)?;
        *slot = Some(match slot.take() {
            Some(so_far) => (self.reduce)(so_far, value),
            None => value,
        });
        Ok(())
    }

    /// The combined value.
    pub fn get(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<Option<&V>> {
        self.values.get(hash, key, store)
    }

    /// Forgets the value of `key`.
    pub fn clear(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<()> {
        *self.values.entry(hash, key, store)? = None;
        Ok(())
    }

    /// See [`ValueState::write_back`].
    pub fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.values.write_back(store)
    }
}

/// Folds elements of any type into an accumulator per key; the accumulator begins as `A::default()`.
pub struct AggregatingState<K, A, F> {
    accumulators: ValueState<K, A>,
    add: F,
}

impl<K, A, F> AggregatingState<K, A, F>
where
    K: Key,
    A: Serialize + DeserializeOwned + Default + Send + 'static,
{
    /// The state `id` of a job with `key_groups` key groups; `add` folds an element into the accumulator.
    pub fn new<E>(id: StateId, key_groups: u16, add: F) -> Self
    where
        F: FnMut(&mut A, E),
    {
        Self { accumulators: ValueState::new(id, key_groups), add }
    }

    /// Adds an element.
    #[inline]
    pub fn add<E>(&mut self, hash: KeyHash, key: &K, element: E, store: &mut dyn StateStore) -> Result<()>
    where
        F: FnMut(&mut A, E),
    {
        (self.add)(self.accumulators.entry(hash, key, store)?.get_or_insert_default(), element);
        Ok(())
    }

    /// The accumulator.
    pub fn get(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<Option<&A>> {
        self.accumulators.get(hash, key, store)
    }

    /// Forgets the accumulator of `key`.
    pub fn clear(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<()> {
        *self.accumulators.entry(hash, key, store)? = None;
        Ok(())
    }

    /// See [`ValueState::write_back`].
    pub fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.accumulators.write_back(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MapStore;

    #[test]
    fn an_average_survives_the_write_back_and_can_be_cleared() {
        let id = StateId { operator: 1, state: 1 };
        let open =
            || AggregatingState::new(id, 8, |(sum, count): &mut (f64, u32), price: f64| (*sum += price, *count += 1).1);
        let (mut store, mut state) = (MapStore::default(), open());
        state.add(KeyHash(1), &1u8, 1.5, &mut store).unwrap();
        state.write_back(&mut store).unwrap();
        let mut state = open();
        state.add(KeyHash(1), &1u8, 2.5, &mut store).unwrap();
        assert_eq!(state.get(KeyHash(1), &1, &mut store).unwrap(), Some(&(4.0, 2)));
        state.clear(KeyHash(1), &1, &mut store).unwrap();
        state.write_back(&mut store).unwrap();
        assert!(store.entries.is_empty());
    }
}
