//! A map per key.

use crate::cache::Cache;
use crate::layout::StateKey;
use crate::value::Place;
use crate::{DEFAULT_CACHE_ENTRIES, StateId, StateStore};
use mailer_core::{Key, KeyHash, Result, codec};
use rustc_hash::FxHasher;
use serde::{Serialize, de::DeserializeOwned};
use std::hash::{Hash, Hasher};

/// A map from `UK` to `UV` per key. Each entry is one entry of the store: reading or changing one costs the same whatever
/// the size of the map.
///
/// [`MapState::for_each`] visits in the byte order of the encoded user keys: fixed, but not the order of `UK`.
pub struct MapState<K, UK, UV> {
    place: Place,
    cache: Cache<(KeyHash, K, UK), UV>,
    value: Vec<u8>,
}

impl<K, UK, UV> MapState<K, UK, UV>
where
    K: Serialize + Eq + Clone,
    UK: Key,
    UV: Serialize + DeserializeOwned + Send + 'static,
{
    /// The state `id` of a job with `key_groups` key groups.
    pub fn new(id: StateId, key_groups: u16) -> Self {
        Self { place: Place::new(id, key_groups), cache: Cache::new(DEFAULT_CACHE_ENTRIES), value: Vec::new() }
    }

    /// See [`ValueState::cache_limit`](crate::ValueState::cache_limit); counts entries of all maps.
    #[must_use]
    pub fn cache_limit(self, entries: usize) -> Self {
        Self { cache: self.cache.limited(entries), ..self }
    }

    /// The slot of one entry, for reading and changing: setting `None` deletes it. It counts as changed.
    #[inline]
    pub fn entry(&mut self, hash: KeyHash, key: &K, user: &UK, store: &mut dyn StateStore) -> Result<&mut Option<UV>> {
        let at = self.slot(hash, key, user, store)?;
        Ok(self.cache.touch(at))
    }

    /// The value of one entry.
    #[inline]
    pub fn get(&mut self, hash: KeyHash, key: &K, user: &UK, store: &mut dyn StateStore) -> Result<Option<&UV>> {
        let at = self.slot(hash, key, user, store)?;
        Ok(self.cache.value(at))
    }

    /// Visits all entries of `key` until `visit` returns `false`. Writes changes back first, so that the store alone has
    /// the answer.
    pub fn for_each(
        &mut self,
        hash: KeyHash,
        key: &K,
        store: &mut dyn StateStore,
        mut visit: impl FnMut(UK, UV) -> Result<bool>,
    ) -> Result<()> {
        self.write_changes(store)?;
        let id = self.place.id;
        store.scan(self.place.bytes(hash, key)?, &mut |entry, value| {
            let user = codec::decode(StateKey::parse(entry)?.user_key).map_err(|error| error.context(id))?;
            let value = codec::decode(value).map_err(|error| error.context(id))?;
            visit(user, value)
        })
    }

    /// Removes all entries of `key`.
    pub fn clear(&mut self, hash: KeyHash, key: &K, store: &mut dyn StateStore) -> Result<()> {
        let mut users = Vec::new();
        self.for_each(hash, key, store, |user, _| {
            users.push(user);
            Ok(true)
        })?;
        for user in users {
            *self.entry(hash, key, &user, store)? = None;
        }
        Ok(())
    }

    /// See [`ValueState::write_back`](crate::ValueState::write_back).
    pub fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        store.note_lookups(self.place.id, self.cache.take_lookups());
        self.write_changes(store)
    }

    fn write_changes(&mut self, store: &mut dyn StateStore) -> Result<()> {
        let Self { place, cache, value } = self;
        let id = place.id;
        cache.write_back(|_, (hash, key, user), slot| {
            let bytes = place.entry_bytes(*hash, key, user)?;
            let Some(slot) = slot else { return store.delete(bytes) };
            value.clear();
            codec::encode(slot, value).map_err(|error| error.context(id))?;
            store.put(bytes, value)
        })
    }

    #[inline]
    fn slot(&mut self, hash: KeyHash, key: &K, user: &UK, store: &mut dyn StateStore) -> Result<usize> {
        let probe = probe(hash, user);
        match self.cache.find(probe, |(_, k, u)| k == key && u == user) {
            Some(at) => Ok(at),
            None => self.load(probe, (hash, key, user), store),
        }
    }

    #[cold]
    #[inline(never)]
    fn load(&mut self, probe: u64, entry: (KeyHash, &K, &UK), store: &mut dyn StateStore) -> Result<usize> {
        if self.cache.is_full() {
            self.write_back(store)?;
            self.cache.clear();
        }
        let (hash, key, user) = entry;
        let found = store.get(self.place.entry_bytes(hash, key, user)?, &mut self.value)?;
        let value = found.then(|| codec::decode(&self.value)).transpose();
        let value = value.map_err(|error| error.context(self.place.id))?;
        Ok(self.cache.insert(probe, (hash, key.clone(), user.clone()), value))
    }
}

/// Key and user key in one number. The top bits stay those of the key: write-back then follows the order of the store.
#[inline]
fn probe<UK: Hash>(hash: KeyHash, user: &UK) -> u64 {
    let mut hasher = FxHasher::default();
    user.hash(&mut hasher);
    hash.0 ^ (hasher.finish() >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MapStore, Rng};
    use std::collections::BTreeMap;

    const ID: StateId = StateId { operator: 4, state: 1 };

    fn hash(key: u8) -> KeyHash {
        KeyHash::of(&key, &mut Vec::new()).unwrap()
    }

    fn contents(state: &mut MapState<u8, u16, u32>, key: u8, store: &mut MapStore) -> BTreeMap<u16, u32> {
        let mut out = BTreeMap::new();
        let collect = |user, value| Ok(out.insert(user, value).is_none());
        state.for_each(hash(key), &key, store, collect).unwrap();
        out
    }

    #[test]
    fn behaves_like_a_map_of_maps() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let (mut store, mut model) = (MapStore::default(), BTreeMap::<u8, BTreeMap<u16, u32>>::new());
            let limit = 1 + rng.below(20);
            let open = || MapState::<u8, u16, u32>::new(ID, 64).cache_limit(limit);
            let mut state = open();
            for step in 0..400 {
                let (key, user) = (rng.below(3) as u8, 250 + rng.below(10) as u16);
                let inner = model.entry(key).or_default();
                match rng.below(12) {
                    0..=4 => {
                        *state.entry(hash(key), &key, &user, &mut store).unwrap() = Some(step);
                        inner.insert(user, step);
                    }
                    5 | 6 => {
                        *state.entry(hash(key), &key, &user, &mut store).unwrap() = None;
                        inner.remove(&user);
                    }
                    7 | 8 => {
                        let value = state.get(hash(key), &key, &user, &mut store).unwrap();
                        assert_eq!(value, inner.get(&user), "seed {seed}");
                    }
                    9 => assert_eq!(contents(&mut state, key, &mut store), *inner, "seed {seed}"),
                    10 if step % 5 == 0 => {
                        state.clear(hash(key), &key, &mut store).unwrap();
                        inner.clear();
                    }
                    _ => {
                        state.write_back(&mut store).unwrap();
                        state = open();
                    }
                }
            }
            state.write_back(&mut store).unwrap();
            assert_eq!(store.entries.len(), model.values().map(BTreeMap::len).sum());
        }
    }

    #[test]
    fn a_visit_can_stop_early() {
        let (mut store, mut state) = (MapStore::default(), MapState::<u8, u16, u32>::new(ID, 8));
        for user in 0..10 {
            *state.entry(hash(1), &1, &user, &mut store).unwrap() = Some(1);
        }
        let mut visited = 0;
        state
            .for_each(hash(1), &1, &mut store, |_, _| {
                Ok({
                    visited += 1;
                    visited < 3
                })
            })
            .unwrap();
        assert_eq!(visited, 3);
    }
}
