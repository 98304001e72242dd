//! Snapshots of older builds open for ever: `testdata/v1/snapshot` is one, in bytes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mailer_core::{BlobRef, CheckpointId, OwnerEpoch};
use mailer_state::testing::FolderBlobs;
use mailer_state::{OpenBackend, OpenContext, StateBackend, StateSnapshot};
use mailer_state_rocksdb::RocksDbBackend;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1/snapshot")
}

fn open(folder: &Path, restore: Option<&StateSnapshot>) -> Arc<dyn OpenBackend> {
    let blobs = Arc::new(FolderBlobs::new(folder).without_sync());
    let context = OpenContext { blobs, epoch: OwnerEpoch(2), restore };
    RocksDbBackend::new(folder.join("work")).open(context).unwrap()
}

#[test]
fn a_snapshot_of_version_1_opens() {
    let folder = tempfile::tempdir().unwrap();
    let mut snapshot = StateSnapshot::default();
    for entry in fs::read_dir(fixture()).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name().into_string().unwrap())).unwrap();
        fs::copy(&path, folder.path().join(&name)).unwrap();
        snapshot.files.push(BlobRef::of(name, &[&fs::read(path).unwrap()]));
    }
    let mut store = open(folder.path(), Some(&snapshot)).store(0..8).unwrap();
    let mut found = Vec::new();
    let collect = &mut |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        Ok(true)
    };
    store.scan(b"", collect).unwrap();
    let expected: [(&[u8], &[u8]); 3] = [(b"", b"empty key"), (b"a", b""), (b"c\xff", b"value")];
    assert_eq!(found, expected.map(|(key, value)| (key.to_vec(), value.to_vec())));
}

#[test]
#[ignore = "writes the fixture; only for a new format version"]
fn write_the_fixture() {
    let folder = tempfile::tempdir().unwrap();
    let open = open(folder.path(), None);
    let mut store = open.store(0..8).unwrap();
    let mut checkpoint = |id, entries: &[(&[u8], Option<&[u8]>)]| {
        for (key, value) in entries {
            match value {
                Some(value) => store.put(key, value).unwrap(),
                None => store.delete(key).unwrap(),
            }
        }
        let part = store.snapshot(CheckpointId(id)).unwrap()().unwrap();
        open.link(CheckpointId(id), vec![part]).unwrap()
    };
    checkpoint(1, &[(b"", Some(b"empty key")), (b"b", Some(b"old"))]);
    copy(folder.path(), &checkpoint(2, &[(b"a", Some(b"")), (b"b", None), (b"c\xff", Some(b"value"))]));
}

/// Without OPTIONS, which no restore needs and which holds paths of this machine.
fn copy(folder: &Path, snapshot: &StateSnapshot) {
    let _ = fs::remove_dir_all(fixture());
    fs::create_dir_all(fixture()).unwrap();
    for file in snapshot.files.iter().filter(|file| !file.name.contains("OPTIONS")) {
        let from = folder.join(&file.name);
        fs::copy(&from, fixture().join(from.file_name().unwrap())).unwrap();
    }
}
