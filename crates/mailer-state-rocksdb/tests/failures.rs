//! A checkpoint that fails at any step loses nothing: the next one holds its changes.

use mailer_core::{CheckpointId, OwnerEpoch};
use mailer_state::testing::FolderBlobs;
use mailer_state::{OpenContext, StateBackend};
use mailer_state_rocksdb::RocksDbBackend;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[test]
fn the_checkpoint_after_a_failed_one_holds_its_changes() {
    let steps =
        ["state-table-write", "state-ingest-before", "state-ingest-after", "state-link-before", "state-link-after"];
    let panics = steps.map(|point| (point, "panic"));
    for (point, action) in panics.into_iter().chain([("state-table-write-error", "return")]) {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Arc::new(FolderBlobs::new(folder.path().join("blobs")).without_sync());
        let open_at = |epoch, restore| {
            let context = OpenContext { blobs: blobs.clone(), epoch: OwnerEpoch(epoch), restore };
            RocksDbBackend::new(folder.path().join("work")).open(context).unwrap()
        };
        let open = open_at(1, None);
        let mut store = open.store(0..8).unwrap();
        let mut checkpoint = |id: u64, key: &[u8]| {
            store.put(key, b"value").unwrap();
            let part = store.snapshot(CheckpointId(id)).unwrap()()?;
            open.link(CheckpointId(id), vec![part])
        };

        let _scenario = fail::FailScenario::setup();
        checkpoint(1, b"before").unwrap();
        fail::cfg(point, action).unwrap();
        let failed = catch_unwind(AssertUnwindSafe(|| checkpoint(2, b"failed")));
        assert!(!matches!(failed, Ok(Ok(_))), "{point} was not passed");
        fail::remove(point);
        let snapshot = checkpoint(3, b"after").unwrap();

        let mut restored = open_at(2, Some(&snapshot)).store(0..8).unwrap();
        for key in ["before", "failed", "after"] {
            assert!(restored.get(key.as_bytes(), &mut Vec::new()).unwrap(), "{key} is lost after {point}");
        }
    }
}

#[test]
fn a_full_disk_is_said_with_the_path() {
    let _scenario = fail::FailScenario::setup();
    let folder = tempfile::tempdir().unwrap();
    let blobs = Arc::new(FolderBlobs::new(folder.path().join("blobs")).without_sync());
    let context = OpenContext { blobs, epoch: OwnerEpoch(1), restore: None };
    let open = RocksDbBackend::new(folder.path().join("work")).open(context).unwrap();
    let mut store = open.store(0..8).unwrap();
    store.put(b"key", b"value").unwrap();
    fail::cfg("state-table-write-error", "return").unwrap();
    let error = store.snapshot(CheckpointId(7)).unwrap()().unwrap_err();
    let (message, folder) = (error.message(), folder.path().to_str().unwrap());
    for part in [folder, "7-0.sst", "no storage space"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}
