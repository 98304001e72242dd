//! What a snapshot holds and costs, and what a start refuses.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use mailer_core::{BlobRef, BlobStore, CheckpointId, ErrorKind, OwnerEpoch, Result};
use mailer_state::testing::FolderBlobs;
use mailer_state::{OpenBackend, OpenContext, StateBackend, StateSnapshot, StateStore};
use mailer_state_rocksdb::RocksDbBackend;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Job {
    folder: PathBuf,
    open: Arc<dyn OpenBackend>,
    store: Box<dyn StateStore>,
}

impl Job {
    fn open(folder: &Path, epoch: u64, restore: Option<&StateSnapshot>) -> Result<Self> {
        let context = OpenContext { blobs: Arc::new(blobs(folder)), epoch: OwnerEpoch(epoch), restore };
        let open = RocksDbBackend::new(folder.join("work")).open(context)?;
        let store = open.store(0..8)?;
        Ok(Self { folder: folder.into(), open, store })
    }

    fn put(&mut self, keys: std::ops::Range<u32>, value: &[u8]) {
        keys.for_each(|key| self.store.put(&key.to_be_bytes(), value).unwrap());
    }

    fn get(&mut self, key: u32) -> Result<Option<Vec<u8>>> {
        let mut value = Vec::new();
        let found = self.store.get(&key.to_be_bytes(), &mut value)?;
        Ok(found.then_some(value))
    }

    fn checkpoint(&mut self, id: u64) -> StateSnapshot {
        let part = self.store.snapshot(CheckpointId(id)).unwrap()().unwrap();
        self.open.link(CheckpointId(id), vec![part]).unwrap()
    }

    fn inode(&self, file: &BlobRef) -> u64 {
        fs::metadata(self.folder.join("blobs").join(&file.name)).unwrap().ino()
    }
}

fn blobs(folder: &Path) -> FolderBlobs {
    FolderBlobs::new(folder.join("blobs"))
}

fn tables(snapshot: &StateSnapshot) -> Vec<&BlobRef> {
    snapshot.files.iter().filter(|file| file.name.ends_with(".sst")).collect()
}

#[test]
fn a_snapshot_adds_one_table_with_the_changes_and_links_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::open(folder.path(), 1, None).unwrap();
    assert_eq!(tables(&job.checkpoint(1)).len(), 0, "nothing yet");
    job.put(0..10_000, b"value");
    let first = job.checkpoint(2);
    job.put(7..8, b"other");
    job.store.snapshot(CheckpointId(3)).unwrap()().unwrap(); // never linked
    job.put(8..9, b"other");
    let second = job.checkpoint(4);

    let (old, new) = (tables(&first), tables(&second));
    assert_eq!((old.len(), new.len()), (1, 2));
    assert_eq!(job.inode(old[0]), job.inode(new[0]), "the old table is not written again");
    assert!(new[1].length < 4_096, "{new:?}");
    for file in first.files.iter().chain(&second.files) {
        blobs(folder.path()).read(file).unwrap(); // length and checksum are right
    }
    let leftovers = walk(&folder.path().join("work")).into_iter().filter(|path| path.ends_with("3-0.sst"));
    assert_eq!(leftovers.count(), 0, "the table of the abandoned checkpoint is deleted");
}

#[test]
fn every_linked_snapshot_can_be_restored_and_the_owner_before_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::open(folder.path(), 1, None).unwrap();
    job.put(0..10, b"1");
    let first = job.checkpoint(1);
    job.put(0..10, b"2");
    let second = job.checkpoint(2);
    drop(job);
    for (epoch, snapshot, value) in [(2, &first, b"1"), (3, &second, b"2"), (4, &first, b"1")] {
        let mut job = Job::open(folder.path(), epoch, Some(snapshot)).unwrap();
        assert_eq!(job.get(3).unwrap().unwrap(), value);
        job.put(0..10, b"never seen again");
    }
    let left: Vec<_> =
        fs::read_dir(folder.path().join("work")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn damaged_files_are_corrupt_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::open(folder.path(), 1, None).unwrap();
    job.put(0..10_000, b"value");
    let snapshot = job.checkpoint(1);
    drop(job);
    for file in &snapshot.files {
        let path = folder.path().join("blobs").join(&file.name);
        let good = fs::read(&path).unwrap();
        if good.is_empty() {
            continue;
        }
        damage(&path, &good[..good.len() - 1]);
        refused(folder.path(), &snapshot, &file.name);
        if !file.name.ends_with(".sst") {
            damage(&path, &[good.as_slice(), b"x"].concat());
            refused(folder.path(), &snapshot, &file.name);
        }
        fs::remove_file(&path).unwrap();
        refused(folder.path(), &snapshot, &file.name);
        fs::write(&path, good).unwrap();
    }
    assert!(Job::open(folder.path(), 9, Some(&snapshot)).is_ok());
}

#[test]
fn a_flipped_bit_in_a_table_is_found_when_its_block_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::open(folder.path(), 1, None).unwrap();
    job.put(0..10_000, b"value");
    let snapshot = job.checkpoint(1);
    drop(job);
    let path = folder.path().join("blobs").join(&tables(&snapshot)[0].name);
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    damage(&path, &bytes);
    let mut job = Job::open(folder.path(), 2, Some(&snapshot)).unwrap();
    assert_eq!(job.get(0).unwrap_err().kind(), ErrorKind::Corrupt);
    let scanned = job.store.scan(b"", &mut |_, _| Ok(true));
    assert_eq!(scanned.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn folders_on_different_file_systems_are_refused_or_copied() {
    let Ok(far) = tempfile::tempdir_in("/dev/shm") else { return };
    let near = tempfile::tempdir().unwrap();
    if fs::metadata(&far).unwrap().dev() == fs::metadata(&near).unwrap().dev() {
        return;
    }
    let context =
        |epoch, restore| OpenContext { blobs: Arc::new(blobs(near.path())), epoch: OwnerEpoch(epoch), restore };
    let backend = RocksDbBackend::new(far.path().join("work"));
    let error = backend.open(context(1, None)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
    assert!(error.message().contains(far.path().to_str().unwrap()), "{error}");
    assert!(error.message().contains(near.path().to_str().unwrap()), "{error}");

    let backend = backend.allow_copy(true);
    let open = backend.open(context(2, None)).unwrap();
    let mut store = open.store(0..8).unwrap();
    store.put(b"key", b"value").unwrap();
    let part = store.snapshot(CheckpointId(1)).unwrap()().unwrap();
    let snapshot = open.link(CheckpointId(1), vec![part]).unwrap();
    let open = backend.open(context(3, Some(&snapshot))).unwrap();
    assert!(open.store(0..8).unwrap().get(b"key", &mut Vec::new()).unwrap());
}

#[test]
fn a_checkpoint_storage_without_a_folder_is_refused() {
    struct Remote;
    impl BlobStore for Remote {
        fn write(&self, name: &str, chunks: &[&[u8]]) -> Result<BlobRef> {
            Ok(BlobRef::of(name, chunks))
        }
        fn read(&self, _blob: &BlobRef) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
        fn local_path(&self, _name: &str) -> Result<Option<PathBuf>> {
            Ok(None)
        }
        fn sync_folder(&self, _name: &str) -> Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let context = OpenContext { blobs: Arc::new(Remote), epoch: OwnerEpoch(1), restore: None };
    let error = RocksDbBackend::new(folder.path()).open(context).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidPlan);
}

/// In a new file: the old one is linked to.
fn damage(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

fn refused(folder: &Path, snapshot: &StateSnapshot, name: &str) {
    let error = Job::open(folder, 2, Some(snapshot)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains(name), "{name} is not in: {error}");
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn it_says_about_how_much_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::open(folder.path(), 1, None).unwrap();
    assert_eq!(job.open.usage().unwrap().entries, 0);
    job.put(0..10_000, &[7; 100]);
    job.checkpoint(1);
    let usage = job.open.usage().unwrap();
    assert!((5_000..=20_000).contains(&usage.entries), "{usage:?}");
    assert!(usage.bytes > 0, "{usage:?}");
    assert!(job.store.usage().is_empty(), "the backend knows of all stores together");
}
