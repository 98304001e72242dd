//! Brings the files of a snapshot into a fresh working folder.
//!
//! Verified here: the length of every file, and the checksum of all but the tables (they would cost the size of the
//! state). RocksDB verifies the checksum of each table block when it reads it.

use crate::checksums::{file_name, is_table};
use crate::error::io;
use crate::folder::local_path;
use mailer_core::{BlobRef, BlobStore, Error, Result};
use mailer_state::StateSnapshot;
use std::fs;
use std::path::Path;

/// Fills the empty folder `to`. Tables are hard-linked; what RocksDB will write to is copied.
pub(crate) fn restore(snapshot: &StateSnapshot, blobs: &dyn BlobStore, to: &Path, allow_copy: bool) -> Result<()> {
    fs::create_dir(to).map_err(|error| io(to, error))?;
    for file in &snapshot.files {
        let target = to.join(file_name(file));
        if is_table(file) {
            link(file, &local_path(blobs, &file.name)?, &target, allow_copy)?;
        } else {
            fs::write(&target, blobs.read(file)?).map_err(|error| io(&target, error))?;
        }
    }
    Ok(())
}

fn link(file: &BlobRef, from: &Path, to: &Path, allow_copy: bool) -> Result<()> {
    let missing = |error| Error::corrupt(format!("{} of the snapshot", from.display())).caused_by(error);
    let length = fs::metadata(from).map_err(|error: std::io::Error| missing(error))?.len();
    if length != file.length {
        return Err(Error::corrupt(format!("{} has {length} bytes, and had {}", from.display(), file.length)));
    }
    match fs::hard_link(from, to) {
        Err(_) if allow_copy => fs::copy(from, to).map(|_| ()),
        linked => linked,
    }
    .map_err(|error| io(to, error))
}
