//! What a checkpoint storage implements.

use crate::manifest::Manifest;
use mailer_core::{BlobStore, CheckpointId, OwnerEpoch, Result};
use std::sync::Arc;

/// How [`CheckpointStorage::acquire`] treats a root that is held.
#[derive(Clone, Debug, Default)]
pub struct AcquireOptions {
    /// Go on although another process holds the lock: its owner is stopped or unreachable. It is fenced by the epoch.
    pub take_over: bool,
    /// The job's name; a root that belongs to another job is refused.
    pub job: String,
}

/// A place for the checkpoints of one job: a folder, a prefix in an object store.
pub trait CheckpointStorage: Send + Sync + 'static {
    /// Locks the root, takes the next [`OwnerEpoch`] (created exclusively and durably) and opens it. A held lock is
    /// [`mailer_core::ErrorKind::Refused`] and names pid and host of the owner.
    fn acquire(&self, options: &AcquireOptions) -> Result<Arc<dyn CheckpointRoot>>;

    /// One line for people: `files in ./ckpt`.
    fn describe(&self) -> String;
}

/// How far a checkpoint got. There is no other durable state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Decided: it will be published.
    Prepared,
    /// Published and marked so.
    Completed,
    /// Its manifest is there and cannot be used; the text says why and names the file.
    Damaged(String),
}

/// One checkpoint in a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: CheckpointId,
    /// The owner that wrote it.
    pub epoch: OwnerEpoch,
    /// How far it got.
    pub status: Status,
    /// Kept until a person deletes it.
    pub savepoint: bool,
}

/// The checkpoint from which an owner started: manifests of older owners above it are void.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// Its id; 0 for a fresh start.
    pub id: CheckpointId,
    /// Its owner.
    pub epoch: OwnerEpoch,
}

/// An acquired root. Dropping it releases the lock. All calls wait for the disk and belong beside the workers.
pub trait CheckpointRoot: Send + Sync + 'static {
    /// This owner.
    fn epoch(&self) -> OwnerEpoch;

    /// [`mailer_core::ErrorKind::Fenced`] once a later owner has taken the root over. Asked when a run fails: an owner
    /// whose files vanish under it must learn that it was replaced, not that its disk is broken.
    fn check_owner(&self) -> Result<()>;

    /// Where segments and state snapshots go.
    fn blobs(&self) -> Arc<dyn BlobStore>;

    /// All checkpoints that are not void, oldest first; tells the truth whatever step a crash fell on. Checks manifest
    /// format and checksum and that every referenced file is there with its length.
    fn list(&self) -> Result<Vec<Entry>>;

    /// The manifest of a listed checkpoint.
    fn load(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<Manifest>;

    /// Durably records the base of this owner, once, before it writes its first checkpoint.
    fn record_base(&self, base: Base) -> Result<()>;

    /// Makes a manifest durable: PREPARED. The decision. After an error the outcome is unknown: stop and recover.
    fn prepare(&self, manifest: &Manifest) -> Result<()>;

    /// Makes an existing PREPARED manifest durable once more (a crash may have come between its rename and its fsync).
    fn sync_prepared(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<()>;

    /// Marks a PREPARED checkpoint COMPLETED, durably. Idempotent.
    fn complete(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<()>;

    /// Deletes what nothing needs: staged segments of completed checkpoints, checkpoints beyond the newest
    /// `keep_completed` (savepoints stay), void manifests, and files no kept manifest names. Files of this owner that no
    /// manifest names yet stay. Returns what it deleted.
    fn prune(&self, keep_completed: usize) -> Result<Vec<String>>;
}
