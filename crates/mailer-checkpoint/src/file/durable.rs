//! Durability, in the order in which it must happen: write under a temporary name, fsync the file, give it its name
//! without replacing anything, fsync the folder. Everything this crate makes durable goes through here.

use super::failed;
use mailer_core::Result;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The whole of it: a new file, durable on return. `false` when the name is taken.
pub(crate) fn create(path: &Path, chunks: &[&[u8]]) -> Result<bool> {
    let file = write(path, chunks)?;
    sync_file(&file, path)?;
    let is_new = publish(path)?;
    sync_folder(parent(path))?;
    Ok(is_new)
}

/// Step 1: the bytes, under the temporary name. A crash from here on leaves debris that nothing refers to.
pub(crate) fn write(path: &Path, chunks: &[&[u8]]) -> Result<File> {
    let temporary = temporary(path);
    // Never truncate what is there: it may be a second link to a published file (see `publish`).
    remove_if_there(&temporary)?;
    write_new(&temporary, chunks).map_err(|e| {
        let _ = fs::remove_file(&temporary); // a full disk gets its space back
        failed("write", &temporary, e)
    })
}

fn write_new(path: &Path, chunks: &[&[u8]]) -> io::Result<File> {
    let mut out = BufWriter::with_capacity(64 * 1024, OpenOptions::new().write(true).create_new(true).open(path)?);
    for chunk in chunks {
        out.write_all(chunk)?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Step 2: the bytes reach the disk. A failed fsync is never repeated: the kernel may have dropped the pages.
pub(crate) fn sync_file(file: &File, path: &Path) -> Result<()> {
    file.sync_all().map_err(|e| failed("fsync", path, e))
}

/// Step 3: the temporary file gets its name; `false` when the name is taken. A link, because it cannot replace (a rename
/// does so silently) and because POSIX has it everywhere. A crash in between leaves both names, which is no harm.
pub(crate) fn publish(path: &Path) -> Result<bool> {
    let temporary = temporary(path);
    match fs::hard_link(&temporary, path) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(e) => return Err(failed("name", path, e)),
    }
    remove_if_there(&temporary)?;
    Ok(true)
}

/// Step 4: the names in a folder reach the disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    let synced = File::open(folder).and_then(|handle| handle.sync_all());
    synced.map_err(|e| failed("fsync the folder", folder, e))
}

/// A folder and those above it, durable: each one's name is fsynced in its parent, even if somebody else just made it.
pub(crate) fn create_folders(root: &Path, folder: &Path) -> Result<()> {
    if folder == root || !folder.starts_with(root) {
        return Ok(());
    }
    create_folders(root, parent(folder))?;
    match fs::create_dir(folder) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(failed("create the folder", folder, e)),
        _ => sync_folder(parent(folder)),
    }
}

/// The name a file has until it is published.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// Removes a file; one that is gone already is no error.
pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(failed("delete", path, e)),
        _ => Ok(()),
    }
}

/// The folder a file is in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        assert!(create(&path, &[b"one", b"two"]).unwrap());
        assert!(!create(&path, &[b"other"]).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"onetwo");
    }

    #[test]
    fn a_crash_between_link_and_unlink_does_not_let_the_next_write_truncate_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        create(&path, &[b"published"]).unwrap();
        fs::hard_link(&path, temporary(&path)).unwrap(); // the debris
        write(&path, &[b""]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"published");
    }

    #[test]
    fn errors_name_the_path_and_what_the_system_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/a");
        let error = create(&path, &[b"x"]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}.tmp: ", path.display())), "{error}");
        assert!(error.contains("No such file"), "{error}");
    }
}
