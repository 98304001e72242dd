//! A blob store that fails when told to: the disk is full, the network is down.

use mailer_core::{BlobRef, BlobStore, Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Faulty {
    blobs: Arc<dyn BlobStore>,
    failing: AtomicBool,
}

impl Faulty {
    pub(super) fn new(blobs: Arc<dyn BlobStore>) -> Self {
        Self { blobs, failing: AtomicBool::new(false) }
    }

    pub(super) fn fail(&self, failing: bool) {
        self.failing.store(failing, Ordering::Relaxed);
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    fn working(&self) -> Result<&dyn BlobStore> {
        match self.is_failing() {
            true => Err(Error::unavailable("the examination lets the blob store fail")),
            false => Ok(&*self.blobs),
        }
    }
}

impl BlobStore for Faulty {
    fn write(&self, name: &str, chunks: &[&[u8]]) -> Result<BlobRef> {
        self.working()?.write(name, chunks)
    }

    fn read(&self, blob: &BlobRef) -> Result<Vec<u8>> {
        self.working()?.read(blob)
    }

    fn local_path(&self, name: &str) -> Result<Option<PathBuf>> {
        self.blobs.local_path(name)
    }

    fn sync_folder(&self, name: &str) -> Result<()> {
        self.working()?.sync_folder(name)
    }
}
