//! The backend and what can be set on it.

use crate::checksums::Checksums;
use crate::error::rocks;
use crate::folder::WorkingFolder;
use crate::link::{Database, OpenRocksDb};
use crate::options::Tuning;
use crate::restore::restore;
use mailer_core::Result;
use mailer_state::{OpenBackend, OpenContext, StateBackend};
use rocksdb::DB;
use std::path::PathBuf;
use std::sync::Arc;

/// Keyed state in RocksDB, in a disposable working folder.
///
/// Every start makes a sub folder of its own and removes those of dead owners; several jobs may share one working folder.
#[derive(Clone, Debug)]
pub struct RocksDbBackend {
    folder: PathBuf,
    allow_copy: bool,
    tuning: Tuning,
}

impl RocksDbBackend {
    /// State below `working_folder`, on the file system of the checkpoint folder.
    pub fn new(working_folder: impl Into<PathBuf>) -> Self {
        Self { folder: working_folder.into(), allow_copy: false, tuning: Tuning::default() }
    }

    /// Memory for blocks of table files, shared by all stores of the process. Default 256 MiB.
    #[must_use]
    pub fn block_cache_bytes(mut self, bytes: usize) -> Self {
        self.tuning.block_cache_bytes = bytes;
        self
    }

    /// Memory for RocksDB's write buffers, within the block cache. They stay nearly empty. Default 16 MiB.
    #[must_use]
    pub fn write_buffer_bytes(mut self, bytes: usize) -> Self {
        self.tuning.write_buffer_bytes = bytes;
        self
    }

    /// Threads for compaction, at low priority. Default 2.
    #[must_use]
    pub fn background_jobs(mut self, jobs: u16) -> Self {
        self.tuning.background_jobs = i32::from(jobs.max(1));
        self
    }

    /// Whether table files are compressed (LZ4). Default yes.
    #[must_use]
    pub fn compress(mut self, compress: bool) -> Self {
        self.tuning.compress = compress;
        self
    }

    /// What happens when the working folder and the checkpoint folder are on different file systems, where no hard links
    /// can be made: by default the start is refused; with `true`, every checkpoint copies the whole state.
    #[must_use]
    pub fn allow_copy(mut self, allow: bool) -> Self {
        self.allow_copy = allow;
        self
    }
}

impl StateBackend for RocksDbBackend {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn open(&self, context: OpenContext<'_>) -> Result<Arc<dyn OpenBackend>> {
        let OpenContext { blobs, epoch, restore: snapshot } = context;
        let folder = WorkingFolder::create(&self.folder, epoch)?;
        if blobs.keeps_checkpoints() && !self.allow_copy {
            folder.check_links(&*blobs, epoch)?;
        }
        let (path, mut options) = (folder.database(), self.tuning.options()?);
        if let Some(snapshot) = snapshot.filter(|snapshot| !snapshot.files.is_empty()) {
            restore(snapshot, &*blobs, &path, self.allow_copy)?;
            options.create_if_missing(false);
        }
        let db = DB::open(&options, &path).map_err(|error| rocks(&path, error))?;
        let checksums = snapshot.map(Checksums::of).unwrap_or_default();
        Ok(Arc::new(OpenRocksDb::new(Database { db, options, folder }, blobs, epoch, checksums)))
    }
}
