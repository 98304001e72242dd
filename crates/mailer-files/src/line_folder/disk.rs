//! What is done to the output folder, step by step, each durable when it returns, and what its errors mean.

use mailer_core::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Makes a folder if it is not there; the one above it has to be.
pub(super) fn create_folder(folder: &Path) -> Result<()> {
    match fs::create_dir(folder) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(failed("make the folder", folder, e)),
        _ => {}
    }
    match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => Ok(()),
    }
}

/// A new file for writing. What a crash has left under its name goes.
pub(super) fn create_file(path: &Path) -> Result<File> {
    remove_if_there(path)?;
    OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| failed("make", path, e))
}

/// Gives the bytes of `temporary` the name `path`; `false` when the name is taken, or when somebody who has taken the folder
/// over has tidied `temporary` away.
pub(super) fn claim_name(temporary: &Path, path: &Path) -> Result<bool> {
    let is_new = match fs::hard_link(temporary, path) {
        Ok(()) => true,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => false,
        Err(e) if e.kind() == ErrorKind::NotFound && is_there(path.parent()) => false,
        Err(e) => return Err(failed("name", path, e)),
    };
    remove_if_there(temporary)?;
    Ok(is_new)
}

/// Renames; `false` when `from` is not there.
pub(super) fn rename(from: &Path, to: &Path) -> Result<bool> {
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound && is_there(to.parent()) => Ok(false),
        Err(e) => Err(failed("make", to, e)),
    }
}

fn is_there(folder: Option<&Path>) -> bool {
    folder.is_some_and(Path::is_dir)
}

/// The names in a folder reach the disk.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|handle| handle.sync_all());
    synced.map_err(|e| failed("fsync the folder", folder, e))
}

/// Removes a file; one that is gone already is no error.
pub(super) fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(failed("delete", path, e)),
        _ => Ok(()),
    }
}

/// The names in a folder.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect();
    let names: io::Result<_> = list();
    names.map_err(|e| failed("list", folder, e))
}

/// Some errors only a person can end; all others may pass, and what was done is found out by looking.
pub(super) fn failed(what: &str, path: &Path, cause: io::Error) -> Error {
    let for_a_person = [
        ErrorKind::PermissionDenied,
        ErrorKind::ReadOnlyFilesystem,
        ErrorKind::NotADirectory,
        ErrorKind::NotFound,
        ErrorKind::Unsupported,
    ];
    let message = format!("cannot {what} {}", path.display());
    match for_a_person.contains(&cause.kind()) {
        true => {
            let way_out = "repair the output folder or its rights, then start the job again";
            Error::blocked(format!("{message}; {way_out}")).caused_by(cause)
        }
        false => Error::unavailable(message).caused_by(cause),
    }
}
