//! What has been put out of each open window, where there is more than one result.

use super::emit::Updates;
use crate::OpenOperator;
use mailer_core::{Key, KeyHash, Result, TimeWindow, Timestamp};
use mailer_state::{StateId, StateStore, WindowState};
use std::collections::BTreeMap;

pub(super) struct Revisions<K> {
    state: WindowState<K, Updates>,
    /// The keys of each window, in the order of windows.
    index: BTreeMap<TimeWindow, Vec<u32>>,
}

impl<K: Key> Revisions<K> {
    pub(super) fn open(operator: u16, context: &mut dyn OpenOperator) -> Result<Self> {
        let mut state = WindowState::new(StateId { operator, state: 2 }, context.key_groups());
        state.load(context.owned_groups(), context.state())?;
        let mut index = BTreeMap::<_, Vec<u32>>::new();
        for slot in state.slots() {
            state.panes(slot).for_each(|pane| index.entry(pane.window).or_default().push(slot));
        }
        Ok(Self { state, index })
    }

    fn of(&mut self, hash: KeyHash, key: &K, window: TimeWindow) -> Result<&mut Updates> {
        let slot = self.state.slot(hash, key)?;
        if self.state.get(slot, window.start).is_none() {
            self.state.insert(slot, window, Updates::default());
            self.index.entry(window).or_default().push(slot);
        }
        self.state.get_mut(slot, window.start).ok_or_else(|| mailer_core::Error::internal("a window just made is gone"))
    }

    /// A record came for `window`.
    pub(super) fn record(
        &mut self,
        hash: KeyHash,
        key: &K,
        window: TimeWindow,
        now: Timestamp,
    ) -> Result<&mut Updates> {
        let updates = self.of(hash, key, window)?;
        updates.record(now);
        Ok(updates)
    }

    /// A result is put out: its number.
    pub(super) fn next_revision(&mut self, hash: KeyHash, key: &K, window: TimeWindow) -> Result<u32> {
        Ok(self.of(hash, key, window)?.next_revision())
    }

    /// The same for a key by its slot here.
    pub(super) fn next_of_slot(&mut self, slot: u32, window: TimeWindow) -> u32 {
        self.state.get_mut(slot, window.start).map_or(0, Updates::next_revision)
    }

    pub(super) fn key(&self, slot: u32) -> (KeyHash, &K) {
        self.state.key(slot)
    }

    /// The windows and keys that `is_due` chooses, in order. Looks at all of them.
    pub(super) fn due(&self, is_due: impl Fn(&Updates) -> bool) -> Result<Vec<(TimeWindow, u32)>> {
        let mut due = Vec::new();
        for (window, slots) in &self.index {
            let pending = |slot: &u32| self.state.get(*slot, window.start).is_some_and(&is_due);
            let mut slots: Vec<u32> = slots.iter().copied().filter(pending).collect();
            self.state.sort(&mut slots, |slot| *slot)?;
            due.extend(slots.into_iter().map(|slot| (*window, slot)));
        }
        Ok(due)
    }

    /// Drops what belongs to windows that are gone.
    pub(super) fn forget(&mut self, gone: i64, store: &mut dyn StateStore) -> Result<()> {
        while let Some(first) = self.index.first_entry().filter(|first| first.key().end.0 <= gone) {
            let start = first.key().start;
            for slot in first.remove() {
                self.state.take(slot, start, store)?;
                self.state.release(slot);
            }
        }
        Ok(())
    }

    pub(super) fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.state.write_back(store)
    }
}
