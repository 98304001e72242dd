//! Checkpoint storage in memory, with the faults a disk has.

use super::faults::Faults;
use mailer_checkpoint::manifest::{Kind, Manifest};
use mailer_checkpoint::{AcquireOptions, Base, CheckpointRoot, CheckpointStorage, Entry, Status};
use mailer_core::{BlobRef, BlobStore, CheckpointId, Error, OwnerEpoch, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Name = (CheckpointId, OwnerEpoch);

#[derive(Default)]
struct Disk {
    epoch: OwnerEpoch,
    bases: BTreeMap<OwnerEpoch, Base>,
    manifests: BTreeMap<Name, (Manifest, Status)>,
    blobs: BTreeMap<String, Vec<u8>>,
}

/// The disk; clones share it, and it outlives every crash.
#[derive(Clone)]
pub struct SimStorage {
    disk: Arc<Mutex<Disk>>,
    faults: Faults,
}

impl SimStorage {
    /// An empty disk.
    pub fn new(faults: Faults) -> Self {
        Self { disk: Arc::default(), faults }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of staged segments that are still there.
    pub fn segments(&self) -> Vec<String> {
        self.disk().blobs.keys().filter(|name| name.starts_with("staging-")).cloned().collect()
    }

    /// The newest manifest.
    pub fn newest(&self) -> Option<(Manifest, Status)> {
        self.disk().manifests.last_key_value().map(|(_, newest)| newest.clone())
    }
}

impl CheckpointStorage for SimStorage {
    fn acquire(&self, _options: &AcquireOptions) -> Result<Arc<dyn CheckpointRoot>> {
        let mut disk = self.disk();
        disk.epoch = OwnerEpoch(disk.epoch.0 + 1);
        Ok(Arc::new(SimRoot { storage: self.clone(), epoch: disk.epoch }))
    }

    fn describe(&self) -> String {
        "memory of the simulation".into()
    }
}

struct SimRoot {
    storage: SimStorage,
    epoch: OwnerEpoch,
}

/// Above the base of a later owner: decided by someone who had been replaced.
fn is_void(disk: &Disk, (id, epoch): Name) -> bool {
    disk.bases.iter().any(|(owner, base)| *owner > epoch && (id, epoch) > (base.id, base.epoch))
}

impl CheckpointRoot for SimRoot {
    fn epoch(&self) -> OwnerEpoch {
        self.epoch
    }

    fn check_owner(&self) -> Result<()> {
        if self.storage.disk().epoch > self.epoch { Err(Error::fenced("a later owner")) } else { Ok(()) }
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(SimBlobs(self.storage.clone()))
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let disk = self.storage.disk();
        let entry = |(name, (manifest, status)): (&Name, &(Manifest, Status))| Entry {
            id: name.0,
            epoch: name.1,
            status: damage(&disk, manifest, status).unwrap_or_else(|| status.clone()),
            savepoint: manifest.kind() == Kind::Savepoint,
        };
        Ok(disk.manifests.iter().filter(|(name, _)| !is_void(&disk, **name)).map(entry).collect())
    }

    fn load(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<Manifest> {
        let disk = self.storage.disk();
        disk.manifests.get(&(id, epoch)).map(|(m, _)| m.clone()).ok_or_else(|| Error::corrupt("no such manifest"))
    }

    fn record_base(&self, base: Base) -> Result<()> {
        self.storage.disk().bases.insert(self.epoch, base);
        Ok(())
    }

    fn prepare(&self, manifest: &Manifest) -> Result<()> {
        let (lost, unknown) = (self.storage.faults.one_in(80), self.storage.faults.one_in(80));
        if lost {
            return Err(Error::unavailable("the manifest could not be written"));
        }
        let name = (CheckpointId(manifest.id), self.epoch);
        self.storage.disk().manifests.insert(name, (manifest.clone(), Status::Prepared));
        if unknown { Err(Error::unavailable("fsync failed after the rename")) } else { Ok(()) }
    }

    fn sync_prepared(&self, _id: CheckpointId, _epoch: OwnerEpoch) -> Result<()> {
        Ok(())
    }

    fn complete(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<()> {
        match self.storage.disk().manifests.get_mut(&(id, epoch)) {
            Some((_, status)) => *status = Status::Completed,
            None => return Err(Error::internal("completing what is not there")),
        }
        Ok(())
    }

    fn prune(&self, keep_completed: usize) -> Result<Vec<String>> {
        let mut disk = self.storage.disk();
        let kept: Vec<Name> = disk.manifests.keys().filter(|name| !is_void(&disk, **name)).copied().collect();
        let first = kept.len().saturating_sub(keep_completed);
        disk.manifests.retain(|name, _| kept[first..].contains(name));
        let needed: BTreeSet<String> = disk.manifests.values().flat_map(|(m, s)| files(m, s)).collect();
        let own = [format!("staging-{}/", self.epoch), format!("state-{}/", self.epoch)];
        let newest = disk.manifests.last_key_value().map(|(name, _)| *name);
        let completed = |segment: &str| {
            newest.is_some_and(|n| disk.manifests[&n].0.segments.iter().any(|s| s.file.name == segment))
        };
        let done: Vec<_> = disk.blobs.keys().filter(|n| !needed.contains(*n)).cloned().collect();
        let done: Vec<_> =
            done.into_iter().filter(|n| completed(n) || !own.iter().any(|prefix| n.starts_with(prefix))).collect();
        done.iter().for_each(|name| {
            disk.blobs.remove(name);
        });
        Ok(done)
    }
}

/// What a manifest needs: all its state, and its segments until it is completed.
fn files(manifest: &Manifest, status: &Status) -> Vec<String> {
    manifest.needed_files(*status == Status::Completed).map(|file| file.name.clone()).collect()
}

fn damage(disk: &Disk, manifest: &Manifest, status: &Status) -> Option<Status> {
    let missing = files(manifest, status).into_iter().find(|name| !disk.blobs.contains_key(name))?;
    Some(Status::Damaged(format!("{missing} is missing")))
}

struct SimBlobs(SimStorage);

impl BlobStore for SimBlobs {
    fn write(&self, name: &str, chunks: &[&[u8]]) -> Result<BlobRef> {
        let (state_fails, segment_fails) = (self.0.faults.one_in(25), self.0.faults.one_in(200));
        if if name.starts_with("state-") { state_fails } else { segment_fails } {
            return Err(Error::unavailable(format!("{name}: no space left on device")));
        }
        let mut disk = self.0.disk();
        if disk.blobs.insert(name.to_owned(), chunks.concat()).is_some() {
            return Err(Error::internal(format!("{name} was written twice")));
        }
        Ok(BlobRef::of(name, chunks))
    }

    fn read(&self, blob: &BlobRef) -> Result<Vec<u8>> {
        let disk = self.0.disk();
        disk.blobs.get(&blob.name).cloned().ok_or_else(|| Error::corrupt(format!("{} is missing", blob.name)))
    }

    fn local_path(&self, _name: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    fn sync_folder(&self, _name: &str) -> Result<()> {
        Ok(())
    }
}
