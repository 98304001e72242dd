//! Values per key and window: what windows keep while they are open.

mod panes;
mod slots;
#[cfg(test)]
mod tests;

pub use panes::Pane;

use crate::layout::{StateKey, parse_window, state_prefix, window_namespace};
use crate::{StateId, StateStore};
use mailer_core::{Error, Key, KeyGroup, KeyHash, Result, TimeWindow, Timestamp, codec};
use panes::Panes;
use serde::{Serialize, de::DeserializeOwned};
use slots::Slots;
use std::collections::VecDeque;
use std::hint::black_box;
use std::ops::Range;

/// Values of type `V` by key, and below a key by window. Everything is in memory while it is open; at the barrier the
/// changed values are written back, each as one entry of the store under its key and, as namespace, its window. A value
/// that was taken before it was ever written back leaves no trace.
///
/// A key is found once per record and then known by a number, its *slot*, until it is released. No two windows of a key
/// may begin at the same time.
///
/// Memory for keys and values of eight bytes: about 80 bytes per key with one open window (its slot of 64, 8 for its
/// order, 5 to 10 in the table), 32 to 64 for each further window of that key; and as slots double when they are used
/// up, up to twice that.
///
/// ```
/// use mailer_core::{KeyHash, TimeWindow};
/// use mailer_state::{StateId, WindowState, testing::MapStore};
///
/// let mut store = MapStore::default(); // in a job: lent by the worker
/// let mut counts = WindowState::<String, u64>::new(StateId { operator: 1, state: 0 }, 1_024);
/// let key = "alice".to_string();
/// let hash = KeyHash::of(&key, &mut Vec::new()).unwrap(); // in a job: carried by the record
///
/// let (slot, window) = (counts.slot(hash, &key).unwrap(), TimeWindow::new(0, 60_000));
/// counts.insert(slot, window, 1);
/// *counts.get_mut(slot, window.start).unwrap() += 1;
/// counts.write_back(&mut store).unwrap();
/// assert_eq!(counts.take(slot, window.start, &mut store).unwrap(), Some(2));
/// assert!(store.entries.is_empty());
/// ```
pub struct WindowState<K, V> {
    id: StateId,
    key_groups: u16,
    slots: Slots<K, Panes<V>>,
    bytes: Bytes,
}

/// Buffers in which keys and values are built.
#[derive(Default)]
struct Bytes {
    key: Vec<u8>,
    entry: Vec<u8>,
    value: Vec<u8>,
}

impl<K: Key, V: Serialize + DeserializeOwned + Send + 'static> WindowState<K, V> {
    /// The state `id` of a job with `key_groups` key groups; holds nothing yet.
    pub fn new(id: StateId, key_groups: u16) -> Self {
        Self { id, key_groups, slots: Slots::new(key_groups), bytes: Bytes::default() }
    }

    /// Reads what `store` holds of the key groups `owned`.
    pub fn load(&mut self, owned: Range<u16>, store: &mut dyn StateStore) -> Result<()> {
        let mut prefix = Vec::new();
        for group in owned {
            state_prefix(KeyGroup(group), self.id, &mut prefix);
            store.scan(&prefix, &mut |entry, value| {
                self.load_entry(entry, value).map_err(|error| error.context(self.id))?;
                Ok(true)
            })?;
        }
        Ok(())
    }

    fn load_entry(&mut self, entry: &[u8], value: &[u8]) -> Result<()> {
        let entry = StateKey::parse(entry)?;
        let (window, key) = (parse_window(entry.namespace)?, codec::decode(entry.key)?);
        let slot = self.slots.find_or_insert(entry.hash, &key)?;
        self.slots.panes_mut(slot).insert(Pane::loaded(window, codec::decode(value)?));
        Ok(())
    }

    /// The slot of `key`, if it has one.
    #[inline]
    pub fn find(&self, hash: KeyHash, key: &K) -> Option<u32> {
        self.slots.find(hash, key)
    }

    /// The slot of `key`, from now on until [`WindowState::release`].
    #[inline]
    pub fn slot(&mut self, hash: KeyHash, key: &K) -> Result<u32> {
        self.slots.find_or_insert(hash, key)
    }

    /// The key of a slot.
    #[inline]
    pub fn key(&self, slot: u32) -> (KeyHash, &K) {
        self.slots.key(slot)
    }

    /// The values of a slot, in the order of their windows.
    pub fn panes(&self, slot: u32) -> impl DoubleEndedIterator<Item = &Pane<V>> {
        self.slots.panes(slot).iter()
    }

    /// The values of a slot whose windows begin in `starts`, in order. Costs the same whatever else is open.
    #[inline]
    pub fn panes_within(&self, slot: u32, starts: Range<Timestamp>) -> impl DoubleEndedIterator<Item = &Pane<V>> {
        self.slots.panes(slot).range(starts)
    }

    /// Looks at the memory of `slots`, which are all in use and will be asked for next. What one key waits for then comes
    /// while it comes for the others, instead of one after the other: some dozens at a time are best.
    pub fn draw_near(&self, slots: &[u32]) {
        for slot in slots {
            black_box(self.slots.panes(*slot).is_empty());
        }
        for slot in slots {
            black_box(self.slots.panes(*slot).outside().map(VecDeque::len));
        }
        for earlier in slots.iter().filter_map(|slot| self.slots.panes(*slot).outside()) {
            black_box((start(earlier.front()), start(earlier.back())));
        }
    }

    /// Looks at the memory of a key that will be asked for soon. See [`WindowState::draw_near`].
    #[inline]
    pub fn draw_key_near(&self, hash: KeyHash) {
        self.slots.draw_near(hash);
    }

    /// The value of the window of `slot` that begins at `start`; none for a slot that is not in use.
    #[inline]
    pub fn get(&self, slot: u32, start: Timestamp) -> Option<&V> {
        self.slots.get(slot)?.find(start).map(|pane| &pane.value)
    }

    /// The same, for changing; the slot is in use.
    #[inline]
    pub fn get_mut(&mut self, slot: u32, start: Timestamp) -> Option<&mut V> {
        let (panes, listing) = self.slots.changing(slot);
        let pane = panes.find_mut(start)?;
        if !std::mem::replace(&mut pane.changed, true) {
            listing.add();
        }
        Some(&mut pane.value)
    }

    /// Adds the value of a window that has none yet.
    pub fn insert(&mut self, slot: u32, window: TimeWindow, value: V) {
        let (panes, listing) = self.slots.changing(slot);
        panes.insert(Pane::new(window, value));
        listing.add();
    }

    /// Takes a value out, here and in the store; none for a slot that is not in use.
    pub fn take(&mut self, slot: u32, start: Timestamp, store: &mut dyn StateStore) -> Result<Option<V>> {
        let Some(pane) = self.slots.get_mut(slot).and_then(|panes| panes.remove(start)) else { return Ok(None) };
        if pane.is_stored() {
            let (hash, key) = self.slots.key(slot);
            self.bytes.encode_key(key)?;
            store.delete(self.bytes.entry(self.id, hash.group(self.key_groups), hash, pane.window)?)?;
        }
        Ok(Some(pane.value))
    }

    /// Forgets the key of a slot that has no value left; any other stays.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        if self.slots.get(slot).is_some_and(Panes::is_empty) {
            self.slots.release(slot);
        }
    }

    /// Slots in use.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        self.slots.in_use()
    }

    /// Keys with a slot.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no key has a slot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a key of this group has a slot.
    pub fn has_group(&self, group: KeyGroup) -> bool {
        self.slots.has_group(group)
    }

    /// Orders what belongs to slots by the bytes of their encoded keys.
    pub fn sort<T: Copy>(&self, items: &mut [T], slot: impl Fn(&T) -> u32) -> Result<()> {
        self.slots.sort(items, slot)
    }

    /// How two slots are ordered by [`WindowState::sort`].
    #[inline]
    pub fn compare(&self, one: u32, other: u32) -> Result<std::cmp::Ordering> {
        self.slots.compare(one, other)
    }

    /// Writes every changed value into `store`. Called at the barrier, before [`StateStore::snapshot`]. After an error
    /// the values not yet written are still changed.
    pub fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        let Self { id, key_groups, slots, bytes } = self;
        slots.write_back(|hash, key, panes| {
            let group = hash.group(*key_groups);
            bytes.encode_key(key)?;
            panes.changed().try_for_each(|pane| bytes.put(*id, group, hash, pane, store))
        })
    }
}

fn start<V>(pane: Option<&Pane<V>>) -> Option<Timestamp> {
    pane.map(|pane| pane.window.start)
}

impl Bytes {
    fn encode_key<K: Serialize>(&mut self, key: &K) -> Result<()> {
        self.key.clear();
        codec::encode(key, &mut self.key)
    }

    /// The store's key of one window; [`Bytes::encode_key`] went before.
    fn entry(&mut self, id: StateId, group: KeyGroup, hash: KeyHash, window: TimeWindow) -> Result<&[u8]> {
        let namespace = window_namespace(window);
        StateKey { group, id, hash, key: &self.key, namespace: &namespace, user_key: &[] }.encode(&mut self.entry)?;
        Ok(&self.entry)
    }

    fn put<V: Serialize>(
        &mut self,
        id: StateId,
        group: KeyGroup,
        hash: KeyHash,
        pane: &mut Pane<V>,
        store: &mut dyn StateStore,
    ) -> Result<()> {
        self.value.clear();
        codec::encode(&pane.value, &mut self.value).map_err(|error: Error| error.context(id))?;
        self.entry(id, group, hash, pane.window)?;
        store.put(&self.entry, &self.value)?;
        pane.written();
        Ok(())
    }
}
