//! The working folder: one sub folder per owner, locked while it lives, removed when it is dead.

use crate::error::io;
use mailer_core::{BlobStore, Error, OwnerEpoch, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells apart the folders of one process.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// The folder of this owner; removed on drop.
pub(crate) struct WorkingFolder {
    path: PathBuf,
    _lock: File,
}

impl WorkingFolder {
    /// Removes what dead owners left in `root` and makes a folder for this one. The lock on `root` keeps a folder from
    /// being taken for dead before its own lock is held.
    pub(crate) fn create(root: &Path, epoch: OwnerEpoch) -> Result<Self> {
        fs::create_dir_all(root).map_err(|error| io(root, error))?;
        let root_lock = open_lock(&root.join("lock"))?;
        root_lock.lock().map_err(|error| io(root, error))?;
        remove_dead(root)?;
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("{epoch}-{}-{number}", std::process::id()));
        for folder in [path.clone(), path.join("tables")] {
            fs::create_dir(&folder).map_err(|error| io(&folder, error))?;
        }
        let lock = open_lock(&path.join("lock"))?;
        lock.lock().map_err(|error| io(&path, error))?;
        Ok(Self { path, _lock: lock })
    }

    /// Where the database is.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("db")
    }

    /// Where table files wait for their ingestion.
    pub(crate) fn tables(&self) -> PathBuf {
        self.path.join("tables")
    }

    /// Tries whether files of this folder can be hard-linked into the checkpoint folder.
    pub(crate) fn check_links(&self, blobs: &dyn BlobStore, epoch: OwnerEpoch) -> Result<()> {
        let (from, to) = (self.path.join("lock"), local_path(blobs, &format!("state-{epoch}/link-test"))?);
        let _ = fs::remove_file(&to); // of an owner that died just here
        let linked = fs::hard_link(&from, &to);
        let _ = fs::remove_file(&to);
        linked.map_err(|error| {
            let to = to.parent().unwrap_or(&to);
            Error::invalid_plan(format!(
                "files of the state folder {} cannot be hard-linked into the checkpoint folder {}. Put both on one file \
                 system, or set allow_copy(true) and pay for a copy of the whole state at every checkpoint",
                self.path.display(),
                to.display()
            ))
            .caused_by(error)
        })
    }
}

impl Drop for WorkingFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path); // the next owner tries again
    }
}

/// The path of a blob; this backend needs one.
pub(crate) fn local_path(blobs: &dyn BlobStore, name: &str) -> Result<PathBuf> {
    blobs.local_path(name)?.ok_or_else(|| {
        Error::invalid_plan(
            "the RocksDB state backend links files into a checkpoint folder, and this checkpoint storage is none: keep \
             checkpoints in a local folder, or state in memory",
        )
    })
}

fn open_lock(path: &Path) -> Result<File> {
    File::options().create(true).append(true).open(path).map_err(|error| io(path, error))
}

fn remove_dead(root: &Path) -> Result<()> {
    for entry in fs::read_dir(root).map_err(|error| io(root, error))? {
        let entry = entry.map_err(|error| io(root, error))?;
        let path = entry.path();
        if is_ours(&entry.file_name().to_string_lossy()) && is_dead(&path)? {
            fs::remove_dir_all(&path).map_err(|error| io(&path, error))?;
        }
    }
    Ok(())
}

/// `<epoch>-<pid>-<number>`; everything else in the folder is somebody else's.
fn is_ours(name: &str) -> bool {
    name.split('-').count() == 3 && name.split('-').all(|part| part.parse::<u64>().is_ok())
}

fn is_dead(path: &Path) -> Result<bool> {
    match File::open(path.join("lock")) {
        Ok(lock) => Ok(lock.try_lock().is_ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true), // it died before it had a lock
        Err(error) => Err(io(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_owners_are_cleared_away_and_living_ones_and_strangers_stay() {
        let root = tempfile::tempdir().unwrap();
        let alive = WorkingFolder::create(root.path(), OwnerEpoch(1)).unwrap();
        let dead = root.path().join("1-4000000000-0");
        let unborn = root.path().join("2-4000000000-0");
        let stranger = root.path().join("my-own-things");
        for folder in [&dead, &unborn, &stranger] {
            fs::create_dir_all(folder.join("db")).unwrap();
        }
        File::create(dead.join("lock")).unwrap();

        let next = WorkingFolder::create(root.path(), OwnerEpoch(2)).unwrap();
        assert!(alive.path.is_dir() && next.path.is_dir() && stranger.is_dir());
        assert!(!dead.exists() && !unborn.exists());

        let path = next.path.clone();
        drop(next);
        assert!(!path.exists());
    }
}
