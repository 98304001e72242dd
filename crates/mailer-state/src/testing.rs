//! What tests of state need: randomness with a seed, a store that is a map, blobs that are files.

use crate::{SnapshotJob, StateStore};
use mailer_core::{BlobRef, BlobStore, CheckpointId, Error, Result};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Random numbers that a seed decides (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % (bound.max(1) as u64)) as usize
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A store that is an ordered map, open to inspection. Takes no snapshots.
#[derive(Clone, Debug, Default)]
pub struct MapStore {
    /// Everything in it.
    pub entries: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl StateStore for MapStore {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.entries.get(key);
        value.extend_from_slice(found.map_or(&[], Vec::as_slice));
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.entries.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.entries.remove(key);
        Ok(())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        for (key, value) in self.entries.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix)) {
            if !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, _id: CheckpointId) -> Result<SnapshotJob> {
        Err(Error::internal("MapStore takes no snapshots: use a state backend"))
    }
}

/// A [`BlobStore`] in a folder, for tests of backends. The engine's own is `mailer-checkpoint`'s.
#[derive(Clone, Debug)]
pub struct FolderBlobs {
    root: PathBuf,
    sync: bool,
}

impl FolderBlobs {
    /// Blobs under `root`, made durable as the contract asks.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), sync: true }
    }

    /// Leaves out every fsync: for tests in which no machine loses power.
    #[must_use]
    pub fn without_sync(self) -> Self {
        Self { sync: false, ..self }
    }

    fn sync(&self, path: &Path) -> Result<()> {
        if !self.sync {
            return Ok(());
        }
        File::open(path).and_then(|file| file.sync_all()).map_err(|error| at(path, error))
    }

    fn sync_parents(&self, path: &Path) -> Result<()> {
        path.ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(&self.root))
            .try_for_each(|folder| self.sync(folder))
    }
}

fn at(path: &Path, error: std::io::Error) -> Error {
    let message = path.display().to_string();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::UnexpectedEof => Error::corrupt(message).caused_by(error),
        _ => Error::unavailable(message).caused_by(error),
    }
}

impl BlobStore for FolderBlobs {
    fn write(&self, name: &str, chunks: &[&[u8]]) -> Result<BlobRef> {
        let Some(path) = self.local_path(name)? else { return Err(Error::internal("a folder has paths")) };
        let mut file = File::create_new(&path).map_err(|error| at(&path, error))?;
        for chunk in chunks {
            file.write_all(chunk).map_err(|error| at(&path, error))?;
        }
        self.sync(&path)?;
        self.sync_parents(&path)?;
        Ok(BlobRef::of(name, chunks))
    }

    fn read(&self, blob: &BlobRef) -> Result<Vec<u8>> {
        let path = self.root.join(&blob.name);
        let bytes = fs::read(&path).map_err(|error| at(&path, error))?;
        if BlobRef::of(&blob.name, &[&bytes]) != *blob {
            return Err(Error::corrupt(format!("{} is not what was written", path.display())));
        }
        Ok(bytes)
    }

    fn local_path(&self, name: &str) -> Result<Option<PathBuf>> {
        let path = self.root.join(name);
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(|error| at(parent, error))?;
        Ok(Some(path))
    }

    fn sync_folder(&self, name: &str) -> Result<()> {
        let folder = self.root.join(name);
        for entry in fs::read_dir(&folder).map_err(|error| at(&folder, error))? {
            self.sync(&entry.map_err(|error| at(&folder, error))?.path())?;
        }
        self.sync(&folder)?;
        self.sync_parents(&folder)
    }
}
