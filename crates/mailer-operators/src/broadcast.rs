//! A keyed stream beside one that every worker sees whole: rules, prices, switches.

mod function;
#[cfg(test)]
mod tests;

pub use function::{BroadcastContext, BroadcastFunction, BroadcastProcess};

use crate::OpenOperator;
use crate::process::Ttl;
use crate::process::states::Declared;
use mailer_core::{Error, Key, KeyGroup, KeyHash, Result, codec};
use mailer_state::layout::{self, FIRST_UNKEYED_GROUP, StateKey};
use mailer_state::{EncodedKey, StateId, StateStore};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::{BTreeMap, BTreeSet};

/// A map from `N` to `V` that is the same on every worker: a field of a [`BroadcastFunction`].
///
/// The keyed side reads it; only the broadcast side, which has a [`BroadcastContext`] in hand, writes it. All of it is in
/// memory on every worker. In a checkpoint it lies once, in the un-keyed group of the first worker, and every worker reads
/// it from there: so any number of workers may go on with it.
pub struct Broadcast<N, V> {
    entries: BTreeMap<N, V>,
    changed: BTreeSet<N>,
    id: Option<StateId>,
    /// The first worker writes for all.
    writes: bool,
}

impl<N, V> Default for Broadcast<N, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), changed: BTreeSet::new(), id: None, writes: false }
    }
}

/// A clone is for another worker: it begins empty.
impl<N, V> Clone for Broadcast<N, V> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<N: Key + Ord, V: Serialize + DeserializeOwned + Send + 'static> Broadcast<N, V> {
    /// The value of `name`.
    #[inline]
    pub fn get(&self, name: &N) -> Option<&V> {
        self.entries.get(name)
    }

    /// All entries, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&N, &V)> {
        self.entries.iter()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sets the value of `name`.
    pub fn set<O>(&mut self, _cx: &mut BroadcastContext<'_, O>, name: N, value: V) {
        self.change(&name);
        self.entries.insert(name, value);
    }

    /// Removes the value of `name`.
    pub fn remove<O>(&mut self, _cx: &mut BroadcastContext<'_, O>, name: &N) -> Option<V> {
        let removed = self.entries.remove(name)?;
        self.change(name);
        Some(removed)
    }

    fn change(&mut self, name: &N) {
        if self.writes {
            self.changed.insert(name.clone());
        }
    }

    fn read(&mut self, id: StateId, store: &mut dyn StateStore) -> Result<()> {
        let mut prefix = Vec::new();
        layout::state_prefix(KeyGroup(FIRST_UNKEYED_GROUP), id, &mut prefix);
        store.scan(&prefix, &mut |entry, value| {
            let name = codec::decode(StateKey::parse(entry)?.key).map_err(|error| error.context(id))?;
            self.entries.insert(name, codec::decode(value).map_err(|error| error.context(id))?);
            Ok(true)
        })
    }
}

/// The place of one entry in the store, built in `place`.
fn place_of<N: Key>(name: &N, id: StateId, scratch: &mut Vec<u8>, place: &mut Vec<u8>) -> Result<()> {
    let hash = KeyHash::of(name, scratch)?;
    let name = EncodedKey::from_bytes(scratch);
    let group = KeyGroup(FIRST_UNKEYED_GROUP);
    StateKey { group, id, hash, key: name.as_bytes(), namespace: &[], user_key: &[] }.encode(place)
}

/// A broadcast state that is being declared.
pub(crate) struct Named<'a, N, V>(pub(crate) &'a mut Broadcast<N, V>);

impl<N: Key + Ord, V: Serialize + DeserializeOwned + Send + 'static> Declared for Named<'_, N, V> {
    fn open(&mut self, id: StateId, context: &mut dyn OpenOperator, _: Option<Ttl>) -> Result<()> {
        let writes = context.unkeyed_group() == KeyGroup(FIRST_UNKEYED_GROUP);
        *self.0 = Broadcast { id: Some(id), writes, ..Broadcast::default() };
        self.0.read(id, context.state())
    }

    fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        let Broadcast { entries, changed, id, .. } = &mut *self.0;
        let id = id.ok_or_else(|| Error::internal("a broadcast state is written before it was opened"))?;
        let (mut scratch, mut place) = (Vec::new(), Vec::new());
        for name in &*changed {
            place_of(name, id, &mut scratch, &mut place)?;
            let Some(value) = entries.get(name) else {
                store.delete(&place)?;
                continue;
            };
            scratch.clear();
            codec::encode(value, &mut scratch).map_err(|error| error.context(id))?;
            store.put(&place, &scratch)?;
        }
        changed.clear();
        Ok(())
    }

    fn expire(&mut self, _: &[u8], _: &mut crate::process::Scope<'_>) -> Result<()> {
        Ok(())
    }
}
