//! Checkpoints are hard links: the state folder and the checkpoint folder belong on one file system.

use crate::life::{Counting, lines};
use mailer_core::ErrorKind;
use mailer_state_rocksdb::RocksDbBackend;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A folder on another file system than `path`; where there is none, a notice.
fn elsewhere(path: &Path) -> Option<tempfile::TempDir> {
    let other = Path::new("/dev/shm");
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let found = device(other).filter(|device_of_other| Some(*device_of_other) != device(path));
    let folder = found.and_then(|_| tempfile::tempdir_in(other).ok());
    if folder.is_none() {
        println!("skipped: {} is no other file system than that of {}", other.display(), path.display());
    }
    folder
}

#[test]
fn another_file_system_is_refused_unless_copies_are_allowed() {
    let job = Counting::new();
    let Some(other) = elsewhere(job.checkpoints.parent().unwrap()) else { return };
    let (here, there) = (RocksDbBackend::new(&job.state), RocksDbBackend::new(other.path()));
    job.live(job.env().state_backend(here.clone()), 100).began();
    assert_eq!(job.written(), lines(0..100));

    let (checkpoints, state) = (job.checkpoints.to_string_lossy(), other.path().to_string_lossy());
    let parts = [&*checkpoints, &*state, "allow_copy(true)", "one file system"];
    job.live(job.env().state_backend(there.clone()), 150).refused(ErrorKind::InvalidPlan, &parts);
    assert_eq!(job.written(), [""; 0]);

    // Restored by a copy, checkpointed by a copy, and restored by links again.
    job.live(job.env().state_backend(there.allow_copy(true)), 150).went_on();
    assert_eq!(job.written(), lines(100..150));
    job.live(job.env().state_backend(here), 200).went_on();
    assert_eq!(job.written(), lines(150..200));
}
