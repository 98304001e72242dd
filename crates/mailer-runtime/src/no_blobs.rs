//! The blob store of a job without checkpoints: being asked is a bug.

use mailer_core::{BlobRef, BlobStore, Error, Result};
use std::path::PathBuf;

pub(crate) struct NoBlobs;

fn refuse<T>() -> Result<T> {
    Err(Error::internal("a job without checkpoints was asked to write one"))
}

impl BlobStore for NoBlobs {
    fn write(&self, _: &str, _: &[&[u8]]) -> Result<BlobRef> {
        refuse()
    }

    fn read(&self, _: &BlobRef) -> Result<Vec<u8>> {
        refuse()
    }

    fn local_path(&self, _: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    fn keeps_checkpoints(&self) -> bool {
        false
    }

    fn sync_folder(&self, _: &str) -> Result<()> {
        refuse()
    }
}
