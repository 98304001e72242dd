//! What a state backend implements: bytes in, bytes out, and snapshots whose cost follows what changed.

use crate::StateId;
use mailer_core::{BlobRef, BlobStore, CheckpointId, OwnerEpoch, Result};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Writes the changes of one store for one checkpoint. Runs beside the worker.
pub type SnapshotJob = Box<dyn FnOnce() -> Result<SnapshotPart> + Send>;

/// What one store hands in for a checkpoint, opaque to everyone but its backend.
pub struct SnapshotPart(pub Box<dyn Any + Send>);

impl fmt::Debug for SnapshotPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SnapshotPart")
    }
}

/// The durable files that together hold all keyed state of a checkpoint; listed in its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateSnapshot {
    /// In the backend's own order.
    pub files: Vec<BlobRef>,
}

/// What [`StateBackend::open`] is given.
pub struct OpenContext<'a> {
    /// Where snapshot files are written, and read from at a restore.
    pub blobs: Arc<dyn BlobStore>,
    /// This owner; makes names of new files unique.
    pub epoch: OwnerEpoch,
    /// The snapshot to begin with; `None` begins empty.
    pub restore: Option<&'a StateSnapshot>,
}

/// A kind of storage for keyed state. Opened once per start of a job.
pub trait StateBackend: Send + Sync + 'static {
    /// Its name in manifests: a checkpoint of one backend is refused by another, naming both.
    fn name(&self) -> &'static str;

    /// Opens it, with the contents of a snapshot where one is given.
    fn open(&self, context: OpenContext<'_>) -> Result<Arc<dyn OpenBackend>>;
}

/// An open backend, shared by the tasks of one process.
pub trait OpenBackend: Send + Sync + 'static {
    /// The store of one task, which owns the key groups `groups`. Keys of different tasks never overlap,
    /// so stores need no lock between them.
    fn store(&self, groups: Range<u16>) -> Result<Box<dyn StateStore>>;

    /// All stores have handed in their part of checkpoint `id`: makes one durable snapshot of them. Calls come one at a
    /// time, in the order of ids; after a failed or abandoned checkpoint the next one holds its changes too.
    fn link(&self, id: CheckpointId, parts: Vec<SnapshotPart>) -> Result<StateSnapshot>;

    /// How much all stores hold together, as a cheap estimate, where only that is known. Asked about once a second, from
    /// any thread. A backend whose stores count ([`StateStore::usage`]) leaves it.
    fn usage(&self) -> Option<StateTotals> {
        None
    }
}

/// How much one operator keeps in one store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateUsage {
    /// The operator's id in state keys.
    pub operator: u16,
    /// Entries.
    pub entries: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// How often typed state was asked for an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// The entry was there, decoded.
    pub hits: u64,
    /// The store had to be asked.
    pub misses: u64,
}

impl std::ops::AddAssign for Lookups {
    fn add_assign(&mut self, more: Self) {
        self.hits += more.hits;
        self.misses += more.misses;
    }
}

/// How much a backend holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateTotals {
    /// Entries.
    pub entries: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// Bytes under ordered keys, touched by one thread. Reads see all earlier writes of the same store.
pub trait StateStore: Send + 'static {
    /// Copies the value of `key` into the cleared `value`; `false` when there is none.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Sets the value of `key`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes `key`; a missing key is no error.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Visits the entries whose key begins with `prefix`, in key order, until `visit` returns `false`.
    #[expect(clippy::type_complexity, reason = "shown in full, an implementer can copy it")]
    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()>;

    /// Freezes everything written so far as this store's part of checkpoint `id`. Cheap, whatever the size of the state;
    /// the job does the writing. What a part holds stays readable, and stays part of later snapshots until a `link` that
    /// includes it has succeeded.
    fn snapshot(&mut self, id: CheckpointId) -> Result<SnapshotJob>;

    /// How much it holds, by operator, where it counts while it is written: asked at every barrier, so it must not look
    /// at entries. Empty where it does not.
    fn usage(&self) -> Vec<StateUsage> {
        Vec::new()
    }

    /// Typed state tells how often it was asked for an entry since it told last: at the barrier, before the snapshot. The
    /// engine listens, in front of every store; a backend leaves it.
    fn note_lookups(&mut self, _state: StateId, _lookups: Lookups) {}
}
