//! CRC-32C of the files of a checkpoint. A table file never changes, so each is read once: cost follows changed data.

use crate::error::io;
use mailer_core::{BlobRef, Error, Result};
use mailer_state::StateSnapshot;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Checksums of table files by file name. RocksDB never uses a file number twice in one database.
#[derive(Default)]
pub(crate) struct Checksums(HashMap<String, BlobRef>);

impl Checksums {
    /// Knows the files of a restored snapshot.
    pub(crate) fn of(snapshot: &StateSnapshot) -> Self {
        Self(snapshot.files.iter().map(|file| (file_name(file).to_owned(), file.clone())).collect())
    }

    /// Describes all files in `folder` as blobs below `name`, in the order of names. Forgets files that are gone.
    pub(crate) fn list(&mut self, folder: &Path, name: &str) -> Result<Vec<BlobRef>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| io(folder, error))? {
            let path = entry.map_err(|error| io(folder, error))?.path();
            files.push(self.describe(&path, name)?);
        }
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.0 =
            files.iter().filter(|file| is_table(file)).map(|file| (file_name(file).to_owned(), file.clone())).collect();
        Ok(files)
    }

    fn describe(&self, path: &Path, folder: &str) -> Result<BlobRef> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name =
            name.ok_or_else(|| Error::internal(format!("{}: a file name RocksDB does not make", path.display())))?;
        let length = fs::metadata(path).map_err(|error| io(path, error))?.len();
        let known = self.0.get(name).filter(|known| is_table(known) && known.length == length);
        let checksum = known.map_or_else(|| checksum(path), |known| Ok(known.checksum))?;
        Ok(BlobRef { name: format!("{folder}/{name}"), length, checksum })
    }
}

/// The last part of a blob's name.
pub(crate) fn file_name(file: &BlobRef) -> &str {
    file.name.rsplit('/').next().unwrap_or(&file.name)
}

/// Whether it is a table: immutable, and shared between checkpoints by hard links.
pub(crate) fn is_table(file: &BlobRef) -> bool {
    file.name.ends_with(".sst")
}

fn checksum(path: &Path) -> Result<u32> {
    let mut file = File::open(path).map_err(|error| io(path, error))?;
    let (mut buffer, mut checksum) = (vec![0; 256 << 10], 0);
    loop {
        match file.read(&mut buffer).map_err(|error| io(path, error))? {
            0 => return Ok(checksum),
            length => checksum = crc32c::crc32c_append(checksum, &buffer[..length]),
        }
    }
}
