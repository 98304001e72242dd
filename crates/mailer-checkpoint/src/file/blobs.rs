//! Staged segments and state snapshots as files.

use super::catalog::Catalog;
use super::{durable, failed, names};
use mailer_core::{BlobRef, BlobStore, Error, OwnerEpoch, Result};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The blobs of one owner: it writes under its own epoch and reads everybody's.
#[derive(Debug)]
pub(crate) struct FileBlobs {
    catalog: Catalog,
    epoch: OwnerEpoch,
    /// Folders whose names are known to be on disk.
    durable: Mutex<HashSet<PathBuf>>,
}

impl FileBlobs {
    pub(crate) fn new(catalog: Catalog, epoch: OwnerEpoch) -> Self {
        Self { catalog, epoch, durable: Mutex::default() }
    }

    fn check_own(&self, name: &str) -> Result<()> {
        let owner = names::blob_owner(name)?;
        if owner == self.epoch && name.contains('/') {
            return Ok(());
        }
        Err(Error::internal(format!("owner {} may not write blob {name}: it must be <word>-{0}/…", self.epoch)))
    }

    fn create_parents(&self, path: &Path) -> Result<()> {
        let folder = durable::parent(path);
        let known = || self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if !known().contains(folder) {
            durable::create_folders(self.catalog.root(), folder)?;
            known().insert(folder.to_owned());
        }
        Ok(())
    }
}

impl BlobStore for FileBlobs {
    fn write(&self, name: &str, chunks: &[&[u8]]) -> Result<BlobRef> {
        self.check_own(name)?;
        let path = self.catalog.path(name);
        self.create_parents(&path)?;
        fail::fail_point!("segment-write");
        fail::fail_point!("blob-write-error", |_| Err(super::disk_full(&path)));
        let file = durable::write(&path, chunks)?;
        fail::fail_point!("segment-fsync");
        durable::sync_file(&file, &path)?;
        if !durable::publish(&path)? {
            return Err(Error::internal(format!("blob {} exists already: blobs are written once", path.display())));
        }
        durable::sync_folder(durable::parent(&path))?;
        Ok(BlobRef::of(name, chunks))
    }

    fn read(&self, blob: &BlobRef) -> Result<Vec<u8>> {
        names::blob_owner(&blob.name)?;
        let path = self.catalog.path(&blob.name);
        let bytes = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(Error::corrupt(format!("{} is missing", path.display())));
            }
            bytes => bytes.map_err(|e| failed("read", &path, e))?,
        };
        let found = BlobRef::of(&*blob.name, &[&bytes]);
        if found.length != blob.length {
            let text = format!("{} has {} bytes, expected {}", path.display(), found.length, blob.length);
            return Err(Error::corrupt(text));
        }
        if found.checksum != blob.checksum {
            return Err(Error::corrupt(format!(
                "{}: the checksum does not match: restore the file from a backup",
                path.display()
            )));
        }
        Ok(bytes)
    }

    fn local_path(&self, name: &str) -> Result<Option<PathBuf>> {
        let owner = names::blob_owner(name)?;
        let path = self.catalog.path(name);
        if owner == self.epoch && name.contains('/') {
            self.create_parents(&path)?;
        }
        Ok(Some(path))
    }

    fn sync_folder(&self, name: &str) -> Result<()> {
        names::blob_owner(name)?;
        let folder = self.catalog.path(name);
        sync_contents(&folder)?;
        durable::create_folders(self.catalog.root(), &folder)
    }
}

fn sync_contents(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(|e| failed("read the folder", folder, e))? {
        let path = entry.map_err(|e| failed("read the folder", folder, e))?.path();
        if path.is_dir() {
            sync_contents(&path)?;
        } else {
            let file = fs::File::open(&path).map_err(|e| failed("open", &path, e))?;
            durable::sync_file(&file, &path)?;
        }
    }
    durable::sync_folder(folder)
}
