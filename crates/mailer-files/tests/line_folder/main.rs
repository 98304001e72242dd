//! What a second publish does, who is fenced, and what is in the folder in the end.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use mailer_core::conformance::MemoryBlobs;
use mailer_core::{ErrorKind, ExactlyOnceSink, OwnerEpoch};
use std::fs;
use std::sync::Arc;
use support::{expected, files, marker, publisher, sink, staged};
use tempfile::TempDir;

#[test]
fn a_second_publish_of_a_checkpoint_does_nothing() {
    let folder = TempDir::new().unwrap();
    let (blobs, sink) = (Arc::new(MemoryBlobs::default()), sink(folder.path()));
    let segments = staged(&sink, &blobs, 1, [1, 2]);
    let mut owner = publisher(folder.path(), 1);
    owner.open().unwrap();
    owner.publish(&marker(1, 1), &segments, blobs.as_ref()).unwrap();
    // A reader takes files away.
    fs::remove_file(folder.path().join(expected(1, "").0)).unwrap();
    owner.publish(&marker(1, 1), &segments, blobs.as_ref()).unwrap();
    owner.open().unwrap();
    assert_eq!(owner.last_published().unwrap(), Some(marker(1, 1)));
    assert_eq!(files(folder.path()), []);
}

#[test]
fn a_former_owner_is_told_so_and_cannot_come_back() {
    let folder = TempDir::new().unwrap();
    let mut former = publisher(folder.path(), 1);
    former.open().unwrap();
    let recorded = former.recorded();
    let mut owner = sink(folder.path()).publisher("job", OwnerEpoch(2), Some(&recorded)).unwrap();
    owner.open().unwrap();
    owner.publish(&marker(1, 2), &[], &MemoryBlobs::default()).unwrap();
    let error = former.publish(&marker(1, 1), &[], &MemoryBlobs::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced);
    assert!(error.message().contains("belongs to owner 2 of job \"job\" now; this is owner 1"), "{error}");
    assert_eq!(former.open().unwrap_err().kind(), ErrorKind::Fenced, "nor when it tries again");
    owner.publish(&marker(2, 2), &[], &MemoryBlobs::default()).unwrap();
}

#[test]
fn a_folder_is_one_target_however_it_is_written() {
    let target = |folder: &str| ExactlyOnceSink::<u64>::target(&sink(folder.as_ref()), "job");
    assert_eq!(target("out"), target("out//."));
    assert_ne!(target("out"), target("out/a"));
}

#[test]
fn two_sinks_share_a_folder_and_each_has_its_files() {
    let folder = TempDir::new().unwrap();
    let blobs = Arc::new(MemoryBlobs::default());
    let rows = sink(folder.path()).prefix("rows").extension("csv").first_line("number");
    let mut segments = staged(&sink(folder.path()), &blobs, 1, [1, 2]);
    segments.extend(staged(&rows, &blobs, 2, [3, 4]));
    let mut owner = publisher(folder.path(), 2);
    owner.open().unwrap();
    owner.publish(&marker(1, 2), &segments, blobs.as_ref()).unwrap();
    let csv = (format!("rows-{:012}-{:016x}.csv", 1, 101), "number\n3\n4\n".to_owned());
    assert_eq!(files(folder.path()), [expected(1, "1\n2\n"), csv]);
}

#[test]
fn what_cannot_be_repaired_by_trying_again_is_for_a_person() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("no/such");
    let error = publisher(&missing, 1).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Blocked);
    assert!(error.message().contains("cannot make the folder") && error.message().contains("no/such"), "{error}");
    for bad in [sink(&missing).prefix("../x"), sink(&missing).extension("")] {
        let error = bad.publisher("job", OwnerEpoch(1), None).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    }
}
