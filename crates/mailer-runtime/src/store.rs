//! The store of a task as its operators see it: the backend's, and beside it who counts look-ups.

use crate::job::counters::StateMeter;
use mailer_core::{CheckpointId, Result};
use mailer_state::{Lookups, SnapshotJob, StateId, StateStore, StateUsage};

/// Passes everything on, and keeps what typed state tells of its look-ups. Entries that are decoded never come here.
pub(crate) struct MeteredStore {
    store: Box<dyn StateStore>,
    meter: StateMeter,
}

impl MeteredStore {
    pub(crate) fn new(store: Box<dyn StateStore>, meter: StateMeter) -> Self {
        Self { store, meter }
    }
}

impl StateStore for MeteredStore {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.store.get(key, value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.store.delete(key)
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        self.store.scan(prefix, visit)
    }

    fn snapshot(&mut self, id: CheckpointId) -> Result<SnapshotJob> {
        self.store.snapshot(id)
    }

    fn usage(&self) -> Vec<StateUsage> {
        self.store.usage()
    }

    fn note_lookups(&mut self, state: StateId, lookups: Lookups) {
        self.meter.note_lookups(state.operator, lookups);
    }
}
