//! RocksDB's and the file system's errors as ours: named by what the reader does next, with the path in front.

use mailer_core::Error;
use std::path::Path;

/// An error of RocksDB about `path`, in its own words.
pub(crate) fn rocks(path: &Path, error: rocksdb::Error) -> Error {
    let message = format!("RocksDB at {}", path.display());
    match error.kind() {
        rocksdb::ErrorKind::Corruption => {
            let way_out = "the state files of the checkpoint are damaged, restore its folder from a backup";
            Error::corrupt(format!("{message}: {way_out}")).caused_by(error)
        }
        rocksdb::ErrorKind::InvalidArgument | rocksdb::ErrorKind::NotSupported => {
            Error::internal(message).caused_by(error)
        }
        _ => Error::unavailable(message).caused_by(error),
    }
}

/// An error of the file system about `path`.
pub(crate) fn io(path: &Path, error: std::io::Error) -> Error {
    Error::unavailable(path.display().to_string()).caused_by(error)
}
