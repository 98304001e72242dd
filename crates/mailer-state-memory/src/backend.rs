//! The backend: opens from a chain of files, and links the parts of all stores into the next one.

use crate::chain::Chain;
use crate::store::{Base, MemoryStore, Part};
use mailer_core::{BlobStore, CheckpointId, Error, OwnerEpoch, Result};
use mailer_state::{OpenBackend, OpenContext, SnapshotPart, StateBackend, StateSnapshot, StateStore};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Keyed state in memory.
///
/// Restored entries are shared by all stores and stay in memory until the next start, also when they have been overwritten
/// since.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryBackend;

impl StateBackend for MemoryBackend {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn open(&self, context: OpenContext<'_>) -> Result<Arc<dyn OpenBackend>> {
        let OpenContext { blobs, epoch, restore } = context;
        let chain = restore.map(Chain::of).unwrap_or_default();
        let entries = chain.read(&*blobs)?;
        let base: Base = entries.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        let progress = Mutex::new(Progress { chain, last: CheckpointId(0) });
        Ok(Arc::new(OpenMemory { blobs, epoch, base: Arc::new(base), stores: AtomicU64::new(0), progress }))
    }
}

struct OpenMemory {
    blobs: Arc<dyn BlobStore>,
    epoch: OwnerEpoch,
    base: Arc<Base>,
    stores: AtomicU64,
    progress: Mutex<Progress>,
}

struct Progress {
    chain: Chain,
    last: CheckpointId,
}

impl OpenBackend for OpenMemory {
    fn store(&self, groups: Range<u16>) -> Result<Box<dyn StateStore>> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(MemoryStore::new(self.base.clone(), groups, self.blobs.clone(), self.epoch, number)))
    }

    fn link(&self, id: CheckpointId, parts: Vec<SnapshotPart>) -> Result<StateSnapshot> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if id <= progress.last {
            return Err(Error::internal(format!("checkpoint {id} is linked after checkpoint {}", progress.last)));
        }
        let parts = parts.into_iter().map(part).collect::<Result<Vec<_>>>()?;
        let grown = progress.chain.clone().with(parts.iter().filter_map(|part| part.file.clone()));
        let chain = grown.kept_up(&*self.blobs, &format!("state-{}/{id}", self.epoch))?;
        parts.iter().for_each(|part| part.set_linked());
        *progress = Progress { chain, last: id };
        Ok(progress.chain.snapshot())
    }
}

fn part(part: SnapshotPart) -> Result<Box<Part>> {
    part.0.downcast().map_err(|_| Error::internal("a snapshot part of another state backend was handed to \"memory\""))
}
