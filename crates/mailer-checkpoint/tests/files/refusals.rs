//! Roots that cannot be used, and folders that backends fill themselves.

use crate::support::{Folder, listed, options, staged};
use mailer_checkpoint::{AcquireOptions, CheckpointStorage, FileStorage};
use mailer_core::{CheckpointId, Error, ErrorKind};
use std::fs;
use std::path::Path;

fn refused(path: impl AsRef<Path>) -> Error {
    let error = FileStorage::new(path.as_ref()).acquire(&options(false)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    assert!(error.message().contains(path.as_ref().to_str().unwrap()), "{error} does not name the path");
    error
}

#[test]
fn a_file_is_not_a_root() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), b"").unwrap();
    assert!(refused(folder.path().join("file")).message().contains("exists"));
    assert!(refused(folder.path().join("file/below")).message().contains("ot a directory"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_cannot_be_made_or_written_is_not_a_root() {
    assert!(refused("/proc/mailer-checkpoints").message().contains("give a folder this process may write to"));
    assert!(refused("/proc/1").message().contains("must be a writable folder"));
}

#[test]
fn a_job_name_is_one_line() {
    let folder = Folder::new();
    let options = AcquireOptions { job: "a\nb".into(), take_over: false };
    let error = FileStorage::new(&folder.path).acquire(&options).err().unwrap();
    assert_eq!(error.to_string(), "job name \"a\\nb\" has a control character: rename the job");
}

#[test]
fn a_look_from_outside_needs_no_lock_and_makes_no_owner() {
    let folder = Folder::new();
    let storage = FileStorage::new(&folder.path);
    assert_eq!(storage.list().unwrap_err().kind(), ErrorKind::InvalidPlan);
    let root = folder.start((0, 0));
    let manifest = staged(&*root, 1);
    root.prepare(&manifest).unwrap();
    assert_eq!(storage.list().unwrap(), root.list().unwrap());
    assert_eq!(storage.load(CheckpointId(1), root.epoch()).unwrap(), manifest);
    assert_eq!(listed(&*root), ["1-1 prepared"]);
}

#[test]
fn a_backend_fills_a_folder_by_itself() {
    let folder = Folder::new();
    let root = folder.acquire();
    let blobs = root.blobs();
    let path = blobs.local_path("state-1/5/000001.table").unwrap().unwrap();
    assert!(path.is_absolute());
    fs::write(&path, b"table").unwrap();
    blobs.sync_folder("state-1/5").unwrap();
    let blob = mailer_core::BlobRef::of("state-1/5/000001.table", &[b"table"]);
    assert_eq!(blobs.read(&blob).unwrap(), b"table");
    let error = blobs.sync_folder("state-1/6").unwrap_err();
    assert!(error.message().contains("state-1/6: No such file"), "{error}");
    assert!(blobs.local_path("../x").is_err());
}
