//! The open database, and the step that turns the parts of all stores into one durable snapshot.

use crate::checksums::Checksums;
use crate::error::rocks;
use crate::folder::{WorkingFolder, local_path};
use crate::store::RocksDbStore;
use crate::table::Part;
use mailer_core::{BlobStore, CheckpointId, Error, OwnerEpoch, Result};
use mailer_state::{OpenBackend, SnapshotPart, StateSnapshot, StateStore, StateTotals};
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{DB, IngestExternalFileOptions, Options};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The one database of the process. Fields are dropped in this order: closed, then removed.
pub(crate) struct Database {
    pub(crate) db: DB,
    pub(crate) options: Options,
    pub(crate) folder: WorkingFolder,
}

impl Database {
    /// Where a store writes its table file for a checkpoint.
    pub(crate) fn table_path(&self, id: CheckpointId, store: u64) -> PathBuf {
        self.folder.tables().join(format!("{id}-{store}.sst"))
    }
}

pub(crate) struct OpenRocksDb {
    database: Arc<Database>,
    blobs: Arc<dyn BlobStore>,
    epoch: OwnerEpoch,
    stores: AtomicU64,
    progress: Mutex<Progress>,
}

struct Progress {
    last: CheckpointId,
    checksums: Checksums,
}

impl OpenRocksDb {
    pub(crate) fn new(database: Database, blobs: Arc<dyn BlobStore>, epoch: OwnerEpoch, checksums: Checksums) -> Self {
        let progress = Mutex::new(Progress { last: CheckpointId(0), checksums });
        Self { database: Arc::new(database), blobs, epoch, stores: AtomicU64::new(0), progress }
    }

    /// All tables in one call: the database holds all of a checkpoint, or nothing. The files of different stores may
    /// overlap in their ranges (operators share key groups), never in their keys; RocksDB takes care of that.
    fn ingest(&self, parts: &[Part]) -> Result<()> {
        fail::fail_point!("state-ingest-before");
        let tables: Vec<_> = parts.iter().filter_map(|part| Some(part.table.as_ref()?.path())).collect();
        if !tables.is_empty() {
            let mut options = IngestExternalFileOptions::default();
            options.set_move_files(true);
            options.set_snapshot_consistency(false); // nobody holds a snapshot
            options.set_allow_blocking_flush(false); // memtables are empty
            let db = &self.database.db;
            db.ingest_external_file_opts(&options, tables).map_err(|error| rocks(db.path(), error))?;
        }
        parts.iter().flat_map(|part| &part.layers).for_each(|layer| layer.set_ingested());
        fail::fail_point!("state-ingest-after");
        Ok(())
    }

    /// Hard-links all tables into the checkpoint folder; durable on return.
    fn checkpoint(&self, id: CheckpointId, checksums: &mut Checksums) -> Result<StateSnapshot> {
        fail::fail_point!("state-link-before");
        let name = format!("state-{}/{id}", self.epoch);
        let folder = local_path(&*self.blobs, &name)?;
        Checkpoint::new(&self.database.db)
            .and_then(|checkpoint| checkpoint.create_checkpoint(&folder))
            .map_err(|error| rocks(&folder, error))?;
        let files = checksums.list(&folder, &name)?;
        self.blobs.sync_folder(&name)?;
        fail::fail_point!("state-link-after");
        Ok(StateSnapshot { files })
    }
}

impl OpenBackend for OpenRocksDb {
    fn store(&self, _groups: Range<u16>) -> Result<Box<dyn StateStore>> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(RocksDbStore::new(self.database.clone(), number)))
    }

    /// When it fails after the ingestion, the changes are in the database, and so in every later checkpoint.
    fn usage(&self) -> Option<StateTotals> {
        let property = |name: &str| self.database.db.property_int_value(name).ok().flatten();
        Some(StateTotals {
            entries: property("rocksdb.estimate-num-keys")?,
            bytes: property("rocksdb.estimate-live-data-size")?,
        })
    }

    fn link(&self, id: CheckpointId, parts: Vec<SnapshotPart>) -> Result<StateSnapshot> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if id <= progress.last {
            return Err(Error::internal(format!("checkpoint {id} is linked after checkpoint {}", progress.last)));
        }
        progress.last = id;
        let parts = parts.into_iter().map(part).collect::<Result<Vec<_>>>()?;
        self.ingest(&parts)?;
        self.checkpoint(id, &mut progress.checksums)
    }
}

fn part(part: SnapshotPart) -> Result<Part> {
    let part = part.0.downcast();
    part.map(|part| *part)
        .map_err(|_| Error::internal("a snapshot part of another state backend was handed to \"rocksdb\""))
}
