//! A blob store in memory, for examinations and tests of connectors.

use crate::{BlobRef, BlobStore, Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps blobs in memory. Writing a name twice is an error, as it is on disk.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<BTreeMap<String, Vec<u8>>>);

impl MemoryBlobs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlobStore for MemoryBlobs {
    fn write(&self, name: &str, chunks: &[&[u8]]) -> Result<BlobRef> {
        if self.lock().insert(name.to_owned(), chunks.concat()).is_some() {
            return Err(Error::internal(format!("the blob {name} was written twice")));
        }
        Ok(BlobRef::of(name, chunks))
    }

    fn read(&self, blob: &BlobRef) -> Result<Vec<u8>> {
        let bytes = self.lock().get(&blob.name).cloned();
        bytes
            .filter(|bytes| *blob == BlobRef::of(&*blob.name, &[bytes]))
            .ok_or_else(|| Error::corrupt(format!("the blob {} is missing or altered", blob.name)))
    }

    fn local_path(&self, _name: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    fn sync_folder(&self, _name: &str) -> Result<()> {
        Ok(())
    }
}
