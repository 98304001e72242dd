//! The simplest state store there is.

use mailer_core::{CheckpointId, Result};
use mailer_state::{SnapshotJob, SnapshotPart, StateStore};
use std::collections::BTreeMap;

/// A store over an ordered map.
#[derive(Clone, Debug, Default)]
pub struct OrderedStore(BTreeMap<Vec<u8>, Vec<u8>>);

impl OrderedStore {
    /// Entries in it: an operator that has freed everything leaves none.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl StateStore for OrderedStore {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        Ok(self.0.get(key).map(|found| value.extend_from_slice(found)).is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.remove(key);
        Ok(())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        for (key, value) in self.0.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix)) {
            if !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, _id: CheckpointId) -> Result<SnapshotJob> {
        let copy = self.clone();
        Ok(Box::new(move || Ok(SnapshotPart(Box::new(copy)))))
    }
}
