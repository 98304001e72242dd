//! The backend against a map, and the cost of its snapshots.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mailer_core::{CheckpointId, OwnerEpoch};
use mailer_state::testing::FolderBlobs;
use mailer_state::{OpenContext, StateBackend, StateSnapshot, conformance};
use mailer_state_memory::MemoryBackend;
use std::sync::Arc;

#[test]
fn behaves_like_a_map() {
    let folder = tempfile::tempdir().unwrap();
    conformance::check(
        || Box::new(MemoryBackend),
        |seed| Arc::new(FolderBlobs::new(folder.path().join(seed.to_string())).without_sync()),
    );
}

fn checkpoint(
    open: &dyn mailer_state::OpenBackend,
    store: &mut dyn mailer_state::StateStore,
    id: u64,
) -> StateSnapshot {
    let job = store.snapshot(CheckpointId(id)).unwrap();
    open.link(CheckpointId(id), vec![job().unwrap()]).unwrap()
}

#[test]
fn a_snapshot_costs_what_changed_and_a_failed_one_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Arc::new(FolderBlobs::new(folder.path()));
    let open = MemoryBackend.open(OpenContext { blobs, epoch: OwnerEpoch(3), restore: None }).unwrap();
    let mut store = open.store(0..8).unwrap();
    for key in 0..1_000u32 {
        store.put(&key.to_be_bytes(), b"value").unwrap();
    }
    let first = checkpoint(&*open, &mut *store, 1);
    assert_eq!(first.files.len(), 1, "one base: {first:?}");

    store.put(&7u32.to_be_bytes(), b"other").unwrap();
    store.snapshot(CheckpointId(2)).unwrap()().unwrap(); // never linked
    store.delete(&8u32.to_be_bytes()).unwrap();
    let third = checkpoint(&*open, &mut *store, 3);
    assert_eq!(third.files[0], first.files[0], "the base is not written again");
    assert_eq!(third.files[1].name, "state-3/3-0.delta");
    assert_eq!(third.files[1].length, 12 + (8 + 4 + 5) + (8 + 4), "both changes, and no more");

    let fourth = checkpoint(&*open, &mut *store, 4);
    assert_eq!(fourth, third, "nothing has changed, nothing is written");
    assert!(open.link(CheckpointId(4), Vec::new()).is_err(), "ids grow");
}
