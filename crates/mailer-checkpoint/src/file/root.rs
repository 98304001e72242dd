//! What an owner does with its root.

use super::blobs::FileBlobs;
use super::catalog::Catalog;
use super::lock::{self, Owned};
use super::names::{self, COMPLETED, MANIFEST};
use super::{durable, facts, failed, sweep};
use crate::manifest::{FORMAT_VERSION, Manifest};
use crate::{Base, CheckpointRoot, Entry, encode_manifest};
use mailer_core::{BlobStore, CheckpointId, Error, OwnerEpoch, Result};
use std::fs::{self, File};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An acquired folder. The blob store does not hold the locks: a stray job of a former run must not keep them.
#[derive(Debug)]
pub(crate) struct FileRoot {
    catalog: Catalog,
    job: String,
    owned: Owned,
    blobs: Arc<FileBlobs>,
    /// One call at a time: retention must not decide over a root that changes.
    turn: Mutex<()>,
}

impl FileRoot {
    pub(crate) fn new(catalog: Catalog, job: String, owned: Owned) -> Self {
        let blobs = Arc::new(FileBlobs::new(catalog.clone(), owned.epoch));
        Self { catalog, job, owned, blobs, turn: Mutex::default() }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn to change something, unless somebody took the root over. Not a proof (that owner may come a moment later):
    /// what protects the checkpoints is that manifests above its base are void.
    fn turn_of_owner(&self) -> Result<MutexGuard<'_, ()>> {
        let turn = self.turn();
        let newest = lock::newest_epoch(&self.catalog)?;
        if newest <= self.owned.epoch {
            return Ok(turn);
        }
        let owner = lock::owner(&self.catalog, newest).map_or(format!("owner {newest}"), |owner| owner.to_string());
        let root = self.catalog.root().display();
        Err(Error::fenced(format!("the checkpoint root {root} was taken over by {owner}: this instance must stop")))
    }

    /// A wrong manifest must not become a decision.
    fn check(&self, manifest: &Manifest) -> Result<()> {
        let wrong = |what: String| Err(Error::internal(format!("manifest of checkpoint {}: {what}", manifest.id)));
        if manifest.format_version != FORMAT_VERSION {
            return wrong(format!("format {} instead of {FORMAT_VERSION}", manifest.format_version));
        }
        if manifest.epoch != self.owned.epoch.0 || manifest.job != self.job || manifest.id == 0 {
            let Manifest { job, epoch, .. } = manifest;
            return wrong(format!(
                "job {job:?}, owner {epoch} in the root of {:?}, owner {}",
                self.job, self.owned.epoch
            ));
        }
        if !self.catalog.path(&names::base(self.owned.epoch)).exists() {
            return wrong("its owner has not recorded a base yet".into());
        }
        self.catalog.verify(manifest, false)
    }
}

impl CheckpointRoot for FileRoot {
    fn epoch(&self) -> OwnerEpoch {
        self.owned.epoch
    }

    fn check_owner(&self) -> Result<()> {
        self.turn_of_owner().map(drop)
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.blobs.clone()
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let _turn = self.turn();
        self.catalog.list()
    }

    fn load(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<Manifest> {
        let _turn = self.turn();
        self.catalog.load(id, epoch)
    }

    fn record_base(&self, base: Base) -> Result<()> {
        let _turn = self.turn_of_owner()?;
        let path = self.catalog.path(&names::base(self.owned.epoch));
        if durable::create(&path, &[facts::render_base(&base).as_bytes()])? {
            return Ok(());
        }
        Err(Error::internal(format!("{} exists already: an owner records its base once", path.display())))
    }

    fn prepare(&self, manifest: &Manifest) -> Result<()> {
        let _turn = self.turn_of_owner()?;
        self.check(manifest)?;
        let folder = self.catalog.folder(CheckpointId(manifest.id), self.owned.epoch);
        fs::create_dir(&folder).map_err(|e| failed("create the folder", &folder, e))?;
        write_files(&folder, manifest)?;
        decide(&folder, self.catalog.root())
    }

    fn sync_prepared(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<()> {
        let _turn = self.turn_of_owner()?;
        let folder = self.catalog.folder(id, epoch);
        let manifest = folder.join(MANIFEST);
        let file = File::open(&manifest).map_err(|e| failed("open", &manifest, e))?;
        durable::sync_file(&file, &manifest)?;
        durable::sync_folder(&folder)?;
        durable::sync_folder(self.catalog.root())
    }

    fn complete(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<()> {
        let _turn = self.turn_of_owner()?;
        let folder = self.catalog.folder(id, epoch);
        if !folder.join(MANIFEST).exists() {
            let text =
                format!("checkpoint {id} of owner {epoch} was never prepared in {}", self.catalog.root().display());
            return Err(Error::internal(text));
        }
        fail::fail_point!("complete-before");
        mark_completed(&folder, id, epoch)?;
        fail::fail_point!("complete-after");
        Ok(())
    }

    fn prune(&self, keep_completed: usize) -> Result<Vec<String>> {
        let _turn = self.turn_of_owner()?;
        sweep::prune(&self.catalog, self.owned.epoch, keep_completed)
    }
}

/// Both files of a checkpoint under their temporary names. `completed` is written now so that marking needs no space on a
/// disk that may be full by then.
fn write_files(folder: &Path, manifest: &Manifest) -> Result<()> {
    let completed = folder.join(COMPLETED);
    let text = completed_text(CheckpointId(manifest.id), OwnerEpoch(manifest.epoch));
    durable::sync_file(&durable::write(&completed, &[text.as_bytes()])?, &completed)?;
    let path = folder.join(MANIFEST);
    fail::fail_point!("manifest-write");
    fail::fail_point!("manifest-write-error", |_| Err(super::disk_full(&path)));
    durable::sync_file(&durable::write(&path, &[&encode_manifest(manifest)])?, &path)
}

/// The decision: after the name is given there is no way back, whatever fails then.
fn decide(folder: &Path, root: &Path) -> Result<()> {
    let path = folder.join(MANIFEST);
    fail::fail_point!("manifest-rename-before");
    if !durable::publish(&path)? {
        return Err(Error::internal(format!("{} exists already: checkpoint ids are never used twice", path.display())));
    }
    fail::fail_point!("manifest-rename-after");
    fail::fail_point!("manifest-folder-fsync");
    durable::sync_folder(folder)?;
    fail::fail_point!("manifest-root-fsync");
    durable::sync_folder(root)
}

fn mark_completed(folder: &Path, id: CheckpointId, epoch: OwnerEpoch) -> Result<()> {
    let path = folder.join(COMPLETED);
    if !path.exists() {
        if !durable::temporary(&path).exists() {
            durable::sync_file(&durable::write(&path, &[completed_text(id, epoch).as_bytes()])?, &path)?;
        }
        durable::publish(&path)?;
    }
    durable::sync_folder(folder)
}

fn completed_text(id: CheckpointId, epoch: OwnerEpoch) -> String {
    format!("checkpoint {id} of owner {epoch} is published\n")
}
