//! The state of one task: its layers in memory above the database of the process.

use crate::error::rocks;
use crate::layer::Layers;
use crate::link::Database;
use crate::{scan, table};
use mailer_core::{CheckpointId, Result};
use mailer_state::{SnapshotJob, SnapshotPart, StateStore};
use std::sync::Arc;

pub(crate) struct RocksDbStore {
    layers: Layers,
    database: Arc<Database>,
    number: u64,
}

impl RocksDbStore {
    pub(crate) fn new(database: Arc<Database>, number: u64) -> Self {
        Self { layers: Layers::default(), database, number }
    }
}

impl StateStore for RocksDbStore {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        self.layers.drop_ingested();
        if let Some(change) = self.layers.get(key) {
            value.extend_from_slice(change.unwrap_or_default());
            return Ok(change.is_some());
        }
        let found = self.database.db.get_pinned(key).map_err(|error| rocks(self.database.db.path(), error))?;
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.layers.set(key, Some(value));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.layers.set(key, None);
        Ok(())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        self.layers.drop_ingested();
        scan::merged(self.layers.with_prefix(prefix), &self.database.db, prefix, visit)
    }

    fn snapshot(&mut self, id: CheckpointId) -> Result<SnapshotJob> {
        let layers = self.layers.seal();
        let path = self.database.table_path(id, self.number);
        let database = self.database.clone();
        Ok(Box::new(move || {
            let part = table::write(layers, path, &database.options)?;
            Ok(SnapshotPart(Box::new(part)))
        }))
    }
}
