//! What is in flight, in the checkpoint: keyed elements under their key group, others under the group of the worker.
//!
//! ```text
//! state 0, user key = sequence number u64 big-endian  →  timestamp, element
//! state 1                                             →  the watermark that has left the operator
//! ```

use super::flight::Flight;
use crate::OpenOperator;
use mailer_core::{Key, KeyGroup, KeyHash, Keyed, Result, Timestamp, Watermark, codec};
use mailer_state::{StateId, StateStore, layout};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

/// An element with its event time, out of its bytes; the hash of its key comes from where they lay.
type Decode<In> = fn(KeyHash, &[u8]) -> Result<(Timestamp, In)>;

/// How elements of a type are written, and whether they have a key.
pub(super) struct Persist<In> {
    lane: fn(&In) -> Option<KeyHash>,
    encode: fn(&In, &mut Vec<u8>) -> Result<()>,
    decode: Decode<In>,
    keyed: bool,
}

impl<In> Clone for Persist<In> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<In> Copy for Persist<In> {}

impl<T: Serialize + DeserializeOwned> Persist<T> {
    pub(super) fn plain() -> Self {
        Self {
            lane: |_| None,
            encode: |value, out| codec::encode(value, out),
            decode: |_, bytes| codec::decode(bytes),
            keyed: false,
        }
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> Persist<Keyed<K, V>> {
    pub(super) fn keyed() -> Self {
        Self {
            lane: |keyed| Some(keyed.hash),
            encode: |keyed, out| codec::encode(&(&keyed.key, &keyed.value), out),
            decode: |hash, bytes| {
                let (timestamp, (key, value)) = codec::decode(bytes)?;
                Ok((timestamp, Keyed { hash, key, value }))
            },
            keyed: true,
        }
    }
}

impl<In> Persist<In> {
    pub(super) fn lane(&self, value: &In) -> Option<KeyHash> {
        (self.lane)(value)
    }

    pub(super) fn is_keyed(&self) -> bool {
        self.keyed
    }
}

/// What of the flight is in the store.
pub(super) struct InFlight {
    operator: u16,
    key_groups: u16,
    unkeyed: KeyGroup,
    written: BTreeMap<u64, (KeyGroup, KeyHash)>,
    passed: Watermark,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// What a checkpoint held.
pub(super) struct Found<In> {
    pub(super) elements: Vec<(Timestamp, In)>,
    pub(super) next: u64,
    pub(super) passed: Watermark,
}

impl InFlight {
    pub(super) fn open<In>(
        context: &mut dyn OpenOperator,
        operator: u16,
        persist: &Persist<In>,
    ) -> Result<(Self, Found<In>)> {
        let mut stored = Self {
            operator,
            key_groups: context.key_groups(),
            unkeyed: context.unkeyed_group(),
            written: BTreeMap::new(),
            passed: Watermark::NONE,
            key: Vec::new(),
            value: Vec::new(),
        };
        let groups: Vec<_> = match persist.keyed {
            true => context.owned_groups().map(KeyGroup).collect(),
            false => vec![stored.unkeyed],
        };
        let elements = stored.read(groups, persist, context.state())?;
        stored.passed = stored.read_passed(context.state())?;
        let next = stored.written.last_key_value().map_or(0, |(last, _)| last + 1);
        let found = Found { elements: elements.into_values().collect(), next, passed: stored.passed };
        Ok((stored, found))
    }

    fn read<In>(
        &mut self,
        groups: Vec<KeyGroup>,
        persist: &Persist<In>,
        store: &mut dyn StateStore,
    ) -> Result<BTreeMap<u64, (Timestamp, In)>> {
        let id = StateId { operator: self.operator, state: 0 };
        let (mut elements, mut prefix) = (BTreeMap::new(), Vec::new());
        for group in groups {
            layout::state_prefix(group, id, &mut prefix);
            store.scan(&prefix, &mut |key, value| {
                let key = layout::StateKey::parse(key)?;
                let sequence = sequence(key.user_key)?;
                self.written.insert(sequence, (group, key.hash));
                elements.insert(sequence, (persist.decode)(key.hash, value)?);
                Ok(true)
            })?;
        }
        Ok(elements)
    }

    fn read_passed(&mut self, store: &mut dyn StateStore) -> Result<Watermark> {
        encode_key(self.unkeyed, StateId { operator: self.operator, state: 1 }, KeyHash(0), &[], &mut self.key)?;
        let found = store.get(&self.key, &mut self.value)?;
        Ok(Watermark(if found { codec::decode(&self.value)? } else { Timestamp::MIN }))
    }

    /// Removes what has left since the last barrier, and adds what has come.
    pub(super) fn write_back<In, O>(
        &mut self,
        flight: &Flight<In, O>,
        persist: &Persist<In>,
        store: &mut dyn StateStore,
    ) -> Result<()> {
        let id = StateId { operator: self.operator, state: 0 };
        let first_new = self.written.last_key_value().map_or(0, |(last, _)| last + 1);
        let gone: Vec<_> = self.written.keys().copied().filter(|seq| flight.element(*seq).is_none()).collect();
        for sequence in gone {
            let Some((group, hash)) = self.written.remove(&sequence) else { continue };
            encode_key(group, id, hash, &sequence.to_be_bytes(), &mut self.key)?;
            store.delete(&self.key)?;
        }
        for sequence in first_new.max(flight.first())..flight.next() {
            let Some(element) = flight.element(sequence) else { continue };
            let lane = persist.lane(&element.value);
            let group = lane.map_or(self.unkeyed, |hash| hash.group(self.key_groups));
            let hash = lane.unwrap_or(KeyHash(0));
            encode_key(group, id, hash, &sequence.to_be_bytes(), &mut self.key)?;
            self.value.clear();
            codec::encode(&element.timestamp, &mut self.value)?;
            (persist.encode)(&element.value, &mut self.value)?;
            store.put(&self.key, &self.value)?;
            self.written.insert(sequence, (group, hash));
        }
        self.write_passed(flight.passed(), store)
    }

    fn write_passed(&mut self, passed: Watermark, store: &mut dyn StateStore) -> Result<()> {
        if passed == self.passed {
            return Ok(());
        }
        self.passed = passed;
        encode_key(self.unkeyed, StateId { operator: self.operator, state: 1 }, KeyHash(0), &[], &mut self.key)?;
        self.value.clear();
        codec::encode(&passed.0, &mut self.value)?;
        store.put(&self.key, &self.value)
    }
}

fn encode_key(group: KeyGroup, id: StateId, hash: KeyHash, user_key: &[u8], out: &mut Vec<u8>) -> Result<()> {
    layout::StateKey { group, id, hash, key: &[], namespace: &[], user_key }.encode(out)
}

fn sequence(bytes: &[u8]) -> Result<u64> {
    let bytes = bytes.try_into().map_err(|_| mailer_core::Error::corrupt("an element in flight has no number"))?;
    Ok(u64::from_be_bytes(bytes))
}
