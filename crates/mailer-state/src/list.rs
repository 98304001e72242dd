//! A list per key.

use crate::{StateId, StateStore, ValueState};
use mailer_core::{Key, KeyHash, Result};
use serde::{Serialize, de::DeserializeOwned};

/// A list of `T` per key, read and written as a whole: for lists that are read together, like the elements of a window. A
/// changed list is encoded once per barrier, not once per element.
pub struct ListState<K, T> {
    lists: ValueState<K, Vec<T>>,
}

impl<K: Key, T: Serialize + DeserializeOwned + Send + 'static> ListState<K, T> {
    /// The state `id` of a job with `key_groups` key groups.
    pub fn new(id: StateId, key_groups: u16) -> Self {
        Self { lists: ValueState::new(id, key_groups) }
    }

    /// See [`ValueState::cache_limit`]; counts lists, not elements.
    #[must_use]
    pub fn cache_limit(self, entries: usize) -> Self {
        Self { lists: self.lists.cache_limit(entries) }
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, hash: KeyHash, key: &K, element: T, store: &mut dyn StateStore) -> Result<()> {
        self.lists.entry(hash, key, store)?.get_or_insert_default().push(element);
        Ok(())
    }

    /// The elements, in the order they were appended.
    pub fn get(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<&[T]> {
        Ok(self.lists.get(hash, key, store)?.map_or(&[], |list| list.as_slice()))
    }

    /// Takes all elements out; the list is empty afterwards.
    pub fn take(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<Vec<T>> {
        Ok(self.lists.entry(hash, key, store)?.take().unwrap_or_default())
    }

    /// See [`ValueState::write_back`].
    pub fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.lists.write_back(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MapStore;

    #[test]
    fn elements_keep_their_order_over_a_write_back_and_leave_nothing_when_taken() {
        let id = StateId { operator: 1, state: 1 };
        let mut store = MapStore::default();
        let mut state = ListState::<u8, u32>::new(id, 8);
        for element in [3, 1, 2] {
            state.push(KeyHash(1), &1, element, &mut store).unwrap();
        }
        state.write_back(&mut store).unwrap();
        let mut state = ListState::<u8, u32>::new(id, 8);
        assert_eq!(state.get(KeyHash(1), &1, &mut store).unwrap(), [3, 1, 2]);
        assert_eq!(state.get(KeyHash(2), &2, &mut store).unwrap(), []);
        assert_eq!(state.take(KeyHash(1), &1, &mut store).unwrap(), [3, 1, 2]);
        state.write_back(&mut store).unwrap();
        assert!(store.entries.is_empty());
    }
}
