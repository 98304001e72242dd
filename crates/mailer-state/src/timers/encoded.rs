//! Timers under encoded keys: for whoever has the encoding at hand and does not need the key itself.

use super::{Due, TimerPayload};
use crate::layout::{self, TimerKey};
use crate::{EncodedKey, StateId, StateStore};
use mailer_core::{KeyGroup, KeyHash, Result, Timestamp, codec};
use std::collections::BTreeMap;
use std::ops::Range;

/// The place of a timer in the order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place<P> {
    time: Timestamp,
    key: EncodedKey,
    payload: P,
}

/// See [`Timers`](crate::Timers); keys come in their encoding.
///
/// In the store all payloads of one time and key are one entry: their list, in order, in the compact encoding.
pub struct EncodedTimers<P> {
    id: StateId,
    key_groups: u16,
    /// Not in the store.
    fresh: BTreeMap<Place<P>, KeyHash>,
    /// In the store.
    stored: BTreeMap<Place<P>, KeyHash>,
    /// Still in the store, but gone.
    removed: Vec<(Place<P>, KeyHash)>,
    bytes: Vec<u8>,
}

impl<P: TimerPayload> EncodedTimers<P> {
    /// See [`Timers::open`](crate::Timers::open).
    pub fn open(id: StateId, key_groups: u16, owned: Range<u16>, store: &mut dyn StateStore) -> Result<Self> {
        let (fresh, stored, removed) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut timers = Self { id, key_groups, fresh, stored, removed, bytes: Vec::new() };
        for group in owned {
            timers.read_group(KeyGroup(group), store)?;
        }
        Ok(timers)
    }

    fn read_group(&mut self, group: KeyGroup, store: &mut dyn StateStore) -> Result<()> {
        layout::state_prefix(group, self.id, &mut self.bytes);
        let (id, stored) = (self.id, &mut self.stored);
        store.scan(&self.bytes, &mut |entry, value| {
            let TimerKey { time, hash, key, .. } = TimerKey::parse(entry)?;
            let payloads: Vec<P> = codec::decode(value).map_err(|error| error.context(id))?;
            let place = |payload| Place { time, key: EncodedKey::from_bytes(key), payload };
            stored.extend(payloads.into_iter().map(|payload| (place(payload), hash)));
            Ok(true)
        })
    }

    /// Registers a timer; one that is there already stays.
    pub fn register(&mut self, time: Timestamp, hash: KeyHash, key: EncodedKey, payload: P) {
        let place = Place { time, key, payload };
        if self.stored.is_empty() || !self.stored.contains_key(&place) {
            self.fresh.insert(place, hash);
        }
    }

    /// Takes a timer back; one that is not there is no error.
    pub fn delete(&mut self, time: Timestamp, hash: KeyHash, key: EncodedKey, payload: P) {
        let place = Place { time, key, payload };
        if self.fresh.remove(&place).is_none() && self.stored.remove(&place).is_some() {
            self.removed.push((place, hash));
        }
    }

    /// When the first timer is due.
    #[inline]
    pub fn next_time(&self) -> Option<Timestamp> {
        let times = [&self.fresh, &self.stored].map(|timers| timers.first_key_value().map(|(place, _)| place.time));
        times.into_iter().flatten().min()
    }

    /// Takes the first timer out if its time is `now` or earlier.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<Due<EncodedKey, P>> {
        let (fresh, stored) = (self.fresh.first_key_value(), self.stored.first_key_value());
        let fresh_first = match (fresh, stored) {
            (Some((fresh, _)), Some((stored, _))) => fresh < stored,
            (fresh, _) => fresh.is_some(),
        };
        let first = if fresh_first { self.fresh.first_entry() } else { self.stored.first_entry() };
        let (place, hash) = first.filter(|entry| entry.key().time <= now)?.remove_entry();
        if !fresh_first {
            self.removed.push((place.clone(), hash));
        }
        let Place { time, key, payload } = place;
        Some(Due { time, hash, key, payload })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.fresh.len() + self.stored.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// See [`Timers::write_back`](crate::Timers::write_back). After an error everything is still to be written.
    pub fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        let removed = self.removed.iter().map(|(place, hash)| (place, hash));
        for (place, &hash) in self.fresh.iter().chain(removed) {
            let group = hash.group(self.key_groups);
            TimerKey { group, id: self.id, time: place.time, hash, key: place.key.as_bytes() }.encode(&mut bytes);
            self.write_entry(&bytes, place, store)?;
        }
        self.bytes = bytes;
        self.removed.clear();
        // One by one: `append` would build the whole tree anew.
        self.stored.extend(std::mem::take(&mut self.fresh));
        Ok(())
    }

    /// Writes what is registered under the time and key of `place`.
    fn write_entry(&self, bytes: &[u8], place: &Place<P>, store: &mut dyn StateStore) -> Result<()> {
        let mut payloads: Vec<&P> =
            [&self.fresh, &self.stored].into_iter().flat_map(|map| beside(map, place)).collect();
        if payloads.is_empty() {
            return store.delete(bytes);
        }
        payloads.sort_unstable();
        let mut value = Vec::new();
        codec::encode(&payloads, &mut value).map_err(|error| error.context(self.id))?;
        store.put(bytes, &value)
    }
}

/// The payloads under the time and key of `place`.
fn beside<'a, P: Ord>(timers: &'a BTreeMap<Place<P>, KeyHash>, place: &'a Place<P>) -> impl Iterator<Item = &'a P> {
    let same = move |(other, _): &(&'a Place<P>, &'a KeyHash)| other.time == place.time && other.key == place.key;
    let (before, after) = (timers.range(..place).rev(), timers.range(place..));
    before.take_while(same).chain(after.take_while(same)).map(|(other, _)| &other.payload)
}
