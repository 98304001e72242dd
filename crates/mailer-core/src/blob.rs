//! Where the bytes of a checkpoint go: staged output and state snapshots.

use crate::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A durable file of a checkpoint: its name relative to the checkpoint root, its length and its CRC-32C.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRef {
    /// Path relative to the checkpoint root, `/`-separated.
    pub name: String,
    /// Bytes.
    pub length: u64,
    /// CRC-32C of all bytes.
    pub checksum: u32,
}

impl BlobRef {
    /// Describes `chunks` laid end to end under `name`.
    pub fn of(name: impl Into<String>, chunks: &[&[u8]]) -> Self {
        let length = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let checksum = chunks.iter().fold(0, |crc, chunk| crc32c::crc32c_append(crc, chunk));
        Self { name: name.into(), length, checksum }
    }
}

/// Durable, write-once files under one checkpoint root. Given to stagers and state backends by the engine.
///
/// Calls wait for the disk: they belong into jobs that run beside the workers, never into a `step()`.
pub trait BlobStore: Send + Sync + 'static {
    /// Writes a new blob; durable on return, parent folders included. An existing name is an error.
    fn write(&self, name: &str, chunks: &[&[u8]]) -> Result<BlobRef>;

    /// Reads a whole blob; a wrong length or checksum is [`crate::ErrorKind::Corrupt`] and names the file.
    fn read(&self, blob: &BlobRef) -> Result<Vec<u8>>;

    /// The absolute path of `name` where blobs are local files: for backends that hard-link whole files into a
    /// checkpoint. `None` in stores without a file system. Parent folders exist on return.
    fn local_path(&self, name: &str) -> Result<Option<PathBuf>>;

    /// `false` in a job without checkpoints: nothing will ever be written here, so nothing about it need be checked.
    fn keeps_checkpoints(&self) -> bool {
        true
    }

    /// Makes a folder that a backend filled by [`BlobStore::local_path`] durable: the files, the folder, its parents.
    fn sync_folder(&self, name: &str) -> Result<()>;
}
