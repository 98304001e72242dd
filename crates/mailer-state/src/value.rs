//! One value per key.

use crate::cache::Cache;
use crate::layout::StateKey;
use crate::{DEFAULT_CACHE_ENTRIES, StateId, StateStore};
use mailer_core::codec::{Codec, Compact};
use mailer_core::{KeyHash, Result, codec};
use serde::{Serialize, de::DeserializeOwned};

/// One value of type `V` per key. Values stay decoded between barriers; [`ValueState::write_back`] hands the changed ones
/// to the store.
///
/// ```
/// use mailer_core::KeyHash;
/// use mailer_state::{StateId, ValueState, testing::MapStore};
///
/// let mut store = MapStore::default(); // in a job: lent by the worker
/// let mut counts = ValueState::<String, u64>::new(StateId { operator: 1, state: 0 }, 1_024);
/// let (key, mut scratch) = ("alice".to_string(), Vec::new());
/// let hash = KeyHash::of(&key, &mut scratch).unwrap(); // in a job: carried by the record
///
/// *counts.entry(hash, &key, &mut store).unwrap().get_or_insert(0) += 1;
/// counts.write_back(&mut store).unwrap();
/// assert_eq!(counts.get(hash, &key, &mut store).unwrap(), Some(&1));
/// ```
pub struct ValueState<K, V, C = Compact> {
    place: Place,
    codec: C,
    cache: Cache<K, V>,
    value: Vec<u8>,
}

impl<K: Serialize + Eq + Clone, V: Serialize + DeserializeOwned + Send + 'static> ValueState<K, V> {
    /// The state `id` of a job with `key_groups` key groups, in the compact encoding.
    pub fn new(id: StateId, key_groups: u16) -> Self {
        Self::with_codec(id, key_groups, Compact)
    }
}

impl<K: Serialize + Eq + Clone, V: Send + 'static, C: Codec<V>> ValueState<K, V, C> {
    /// The same with another encoding of its values. A checkpoint is read with the codec it was written with.
    pub fn with_codec(id: StateId, key_groups: u16, codec: C) -> Self {
        Self { place: Place::new(id, key_groups), codec, cache: Cache::new(DEFAULT_CACHE_ENTRIES), value: Vec::new() }
    }

    /// Keeps at most `entries` decoded values (at least one). When they are used up, the changed ones are written back and
    /// all are forgotten.
    #[must_use]
    pub fn cache_limit(self, entries: usize) -> Self {
        Self { cache: self.cache.limited(entries), ..self }
    }

    /// The slot of `key`, for reading and changing: `None` is no value, and setting `None` deletes. The slot counts as
    /// changed; to read only, use [`ValueState::get`].
    #[inline]
    pub fn entry(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<&mut Option<V>> {
        let at = self.slot(hash, key, store)?;
        Ok(self.cache.touch(at))
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<Option<&V>> {
        let at = self.slot(hash, key, store)?;
        Ok(self.cache.value(at))
    }

    /// Writes every changed value into `store`. Called at the barrier, before [`StateStore::snapshot`].
    pub fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        store.note_lookups(self.place.id, self.cache.take_lookups());
        let Self { place, codec, cache, value } = self;
        let id = place.id;
        cache.write_back(|hash, key, slot| {
            let bytes = place.bytes(KeyHash(hash), key)?;
            let Some(slot) = slot else { return store.delete(bytes) };
            value.clear();
            codec.encode(slot, value).map_err(|error| error.context(id))?;
            store.put(bytes, value)
        })
    }

    #[inline]
    fn slot(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<usize> {
        match self.cache.find(hash.0, |other| other == key) {
            Some(at) => Ok(at),
            None => self.load(hash, key, store),
        }
    }

    #[cold]
    #[inline(never)]
    fn load(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<usize> {
        if self.cache.is_full() {
            self.write_back(store)?;
            self.cache.clear();
        }
        let found = store.get(self.place.bytes(hash, key)?, &mut self.value)?;
        let value = found.then(|| self.codec.decode(&self.value)).transpose();
        let value = value.map_err(|error| error.context(self.place.id))?;
        Ok(self.cache.insert(hash.0, key.clone(), value))
    }
}

/// Where the entries of a state lie, with the buffers their keys are built in.
pub(crate) struct Place {
    pub(crate) id: StateId,
    key_groups: u16,
    key: Vec<u8>,
    user_key: Vec<u8>,
    bytes: Vec<u8>,
}

impl Place {
    pub(crate) fn new(id: StateId, key_groups: u16) -> Self {
        Self { id, key_groups, key: Vec::new(), user_key: Vec::new(), bytes: Vec::new() }
    }

    /// The store's key of a value; also the prefix of a map's entries.
    pub(crate) fn bytes<K: Serialize>(&mut self, hash: KeyHash, key: &K) -> Result<&[u8]> {
        self.user_key.clear();
        self.build(hash, key)
    }

    /// The store's key of one entry of a map.
    pub(crate) fn entry_bytes<K: Serialize, U: Serialize>(
        &mut self,
        hash: KeyHash,
        key: &K,
        user: &U,
    ) -> Result<&[u8]> {
        self.user_key.clear();
        codec::encode(user, &mut self.user_key)?;
        self.build(hash, key)
    }

    fn build<K: Serialize>(&mut self, hash: KeyHash, key: &K) -> Result<&[u8]> {
        self.key.clear();
        codec::encode(key, &mut self.key)?;
        let group = hash.group(self.key_groups);
        StateKey { group, id: self.id, hash, key: &self.key, namespace: &[], user_key: &self.user_key }
            .encode(&mut self.bytes)?;
        Ok(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MapStore, Rng};
    use std::collections::BTreeMap;

    const ID: StateId = StateId { operator: 1, state: 2 };

    fn hash(key: &str) -> KeyHash {
        KeyHash::of(key, &mut Vec::new()).unwrap()
    }

    #[test]
    fn entries_reach_the_store_at_the_write_back_in_the_frozen_layout() {
        let (mut store, mut state) = (MapStore::default(), ValueState::<String, u32>::new(ID, 1_024));
        let key = "alice".to_string();
        *state.entry(hash("alice"), &key, &mut store).unwrap() = Some(7);
        assert!(store.entries.is_empty());
        state.write_back(&mut store).unwrap();
        let (bytes, value) = store.entries.first_key_value().unwrap();
        let parsed = StateKey::parse(bytes).unwrap();
        assert_eq!((parsed.id, parsed.hash, parsed.key), (ID, hash("alice"), b"\x05alice".as_slice()));
        assert_eq!(parsed.group, hash("alice").group(1_024));
        assert_eq!(value, &[7]);
        *state.entry(hash("alice"), &key, &mut store).unwrap() = None;
        state.write_back(&mut store).unwrap();
        assert!(store.entries.is_empty());
    }

    #[test]
    fn a_value_of_another_type_is_corrupt_and_names_the_state() {
        let (mut store, mut text) = (MapStore::default(), ValueState::<u8, String>::new(ID, 16));
        *text.entry(KeyHash(1), &1, &mut store).unwrap() = Some("long text".into());
        text.write_back(&mut store).unwrap();
        let error = ValueState::<u8, u8>::new(ID, 16).get(KeyHash(1), &1, &mut store).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), mailer_core::ErrorKind::Corrupt);
        assert!(error.message().starts_with("state 2 of operator 1: "), "{error}");
    }

    /// Random work against a map, with a cache so small that it is dropped all the time, and restarts between barriers.
    #[test]
    fn behaves_like_a_map() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let (mut store, mut model) = (MapStore::default(), BTreeMap::<u16, u32>::new());
            let limit = 1 + rng.below(20);
            let open = || ValueState::<u16, u32>::new(ID, 64).cache_limit(limit);
            let mut state = open();
            for step in 0..500 {
                let key = rng.below(30) as u16;
                let hash = KeyHash(u64::from(key % 7) << 40); // many keys share a hash
                match rng.below(10) {
                    0..=3 => {
                        *state.entry(hash, &key, &mut store).unwrap().get_or_insert(0) += step;
                        *model.entry(key).or_insert(0) += step;
                    }
                    4 | 5 => {
                        *state.entry(hash, &key, &mut store).unwrap() = None;
                        model.remove(&key);
                    }
                    6..=8 => assert_eq!(state.get(hash, &key, &mut store).unwrap(), model.get(&key), "seed {seed}"),
                    _ => {
                        state.write_back(&mut store).unwrap();
                        assert_eq!(store.entries.len(), model.len(), "seed {seed}");
                        state = open();
                    }
                }
            }
        }
    }
}
