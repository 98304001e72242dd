//! The examination of a checkpoint storage: a new one is one call to [`check`] away from being trusted.

use crate::manifest::{FORMAT_VERSION, File, Kind, Manifest, Segment};
use crate::{AcquireOptions, Base, CheckpointRoot, CheckpointStorage, Entry, Status};
use mailer_core::{BlobRef, CheckpointId, Error, ErrorKind, OwnerEpoch, Result};
use std::sync::Arc;

const JOB: &str = "conformance";

/// Examines a storage; `make` returns one over a new, empty root at each call. Panics where a promise is broken.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let count = std::cell::Cell::new(0);
/// mailer_checkpoint::conformance::check(|| {
///     count.set(count.get() + 1);
///     Box::new(mailer_checkpoint::FileStorage::new(folder.path().join(count.get().to_string())))
/// });
/// ```
pub fn check(make: impl Fn() -> Box<dyn CheckpointStorage>) {
    let examinations: [fn(&dyn CheckpointStorage); 13] = [
        a_new_root_is_empty,
        every_start_takes_the_next_epoch,
        a_held_root_is_refused_until_it_is_dropped,
        a_root_belongs_to_one_job,
        blobs_come_back_and_are_written_once,
        altered_references_are_corrupt,
        a_manifest_comes_back_whole,
        a_wrong_manifest_never_becomes_a_decision,
        a_stop_after_each_step_leaves_the_truth,
        entries_are_in_order_of_id_and_owner,
        what_lies_above_the_base_is_void,
        a_former_owner_changes_nothing,
        retention_deletes_what_nothing_needs,
    ];
    for examine in examinations {
        examine(&*make());
    }
}

fn a_new_root_is_empty(storage: &dyn CheckpointStorage) {
    let root = acquire(storage);
    assert_eq!(root.epoch(), OwnerEpoch(1));
    assert_eq!(good(root.list()), []);
    assert_eq!(good(root.prune(1)), [""; 0]);
    assert!(!storage.describe().is_empty());
}

fn every_start_takes_the_next_epoch(storage: &dyn CheckpointStorage) {
    for epoch in 1..=4 {
        let root = acquire(storage);
        assert_eq!(root.epoch(), OwnerEpoch(epoch));
        good(root.record_base(Base::default()));
        good(root.prune(1)); // what it deletes of former owners must not set the epoch back
    }
}

fn a_held_root_is_refused_until_it_is_dropped(storage: &dyn CheckpointStorage) {
    let first = acquire(storage);
    let error = bad(storage.acquire(&options(false)), ErrorKind::Refused);
    let (pid, text) = (std::process::id().to_string(), error.message());
    assert!(text.contains(&pid), "the owner's pid {pid} is missing in: {text}");
    assert!(text.contains("host") && text.contains("take_over"), "host or the way out is missing in: {text}");
    let second = take_over(storage);
    assert_eq!((first.epoch(), second.epoch()), (OwnerEpoch(1), OwnerEpoch(2)));
    drop(first);
    bad(storage.acquire(&options(false)), ErrorKind::Refused); // the second one still runs
    let blobs = second.blobs();
    drop(second);
    assert_eq!(acquire(storage).epoch(), OwnerEpoch(3));
    drop(blobs); // only now: a stray job of a former run must not hold the root
}

fn a_root_belongs_to_one_job(storage: &dyn CheckpointStorage) {
    drop(acquire(storage));
    for take_over in [false, true] {
        let other = AcquireOptions { job: "other".into(), take_over };
        let error = bad(storage.acquire(&other), ErrorKind::Refused);
        let text = error.message();
        assert!(text.contains("\"other\"") && text.contains("\"conformance\""), "both jobs must be named in: {text}");
    }
}

fn blobs_come_back_and_are_written_once(storage: &dyn CheckpointStorage) {
    let root = acquire(storage);
    let blobs = root.blobs();
    for (i, chunks) in [&[][..], &[&b""[..]], &[b"one"], &[b"one", b"", b"two"]].into_iter().enumerate() {
        let name = format!("staging-1/folder/{i}.segment");
        let blob = good(blobs.write(&name, chunks));
        assert_eq!(blob, BlobRef::of(&*name, chunks));
        assert_eq!(good(blobs.read(&blob)), chunks.concat());
        assert!(blobs.write(&name, &[b"again"]).is_err(), "{name} was written twice");
        assert_eq!(good(blobs.read(&blob)), chunks.concat());
    }
    for name in ["", "/staging-1/x", "staging-1/../x", "manifest", "1-1/manifest", "owner-1", "staging-2/x"] {
        assert!(blobs.write(name, &[b"x"]).is_err(), "a blob may not be called {name:?}");
    }
}

fn altered_references_are_corrupt(storage: &dyn CheckpointStorage) {
    let root = acquire(storage);
    let blob = good(root.blobs().write("state-1/a", &[b"bytes"]));
    let longer = BlobRef { length: blob.length + 1, ..blob.clone() };
    let other = BlobRef { checksum: blob.checksum ^ 1, ..blob.clone() };
    let missing = BlobRef { name: "state-1/b".into(), ..blob };
    for reference in [longer, other, missing] {
        let error = bad(root.blobs().read(&reference), ErrorKind::Corrupt);
        assert!(error.message().contains(&reference.name), "{error} does not name {}", reference.name);
    }
}

fn a_manifest_comes_back_whole(storage: &dyn CheckpointStorage) {
    let root = start(storage, Base::default());
    let manifest = staged(&*root, 1);
    good(root.prepare(&manifest));
    assert_eq!(good(root.load(CheckpointId(1), root.epoch())), manifest);
    bad(root.load(CheckpointId(2), root.epoch()), ErrorKind::Refused);
}

fn a_wrong_manifest_never_becomes_a_decision(storage: &dyn CheckpointStorage) {
    let root = acquire(storage);
    let good_one = staged(&*root, 1);
    assert!(root.prepare(&good_one).is_err(), "prepared before the base was recorded");
    good(root.record_base(Base::default()));
    let missing = File { name: "state-1/missing".into(), length: 1, checksum: 0 };
    let wrong = [
        Manifest { job: "other".into(), ..good_one.clone() },
        Manifest { epoch: 7, ..good_one.clone() },
        Manifest { id: 0, ..good_one.clone() },
        Manifest { state_files: vec![missing], ..good_one.clone() },
        Manifest { format_version: FORMAT_VERSION + 1, ..good_one.clone() },
    ];
    for manifest in wrong {
        assert!(root.prepare(&manifest).is_err(), "prepared: {manifest:?}");
    }
    assert!(root.complete(CheckpointId(1), root.epoch()).is_err(), "completed what was never prepared");
    assert_eq!(good(root.list()), []);
    good(root.prepare(&good_one));
    assert!(root.prepare(&good_one).is_err(), "an id was used twice");
    assert_eq!(good(root.list()), [entry(1, 1, Status::Prepared)]);
}

/// The life of a checkpoint, cut off after each step; the next owner must see exactly what was decided.
fn a_stop_after_each_step_leaves_the_truth(storage: &dyn CheckpointStorage) {
    type Step = fn(&dyn CheckpointRoot, u64);
    let steps: [(Step, Option<Status>); 6] = [
        (|root, id| drop(staged(root, id)), None),
        (|root, id| good(root.prepare(&staged(root, id))), Some(Status::Prepared)),
        (|root, id| good(root.sync_prepared(CheckpointId(id), root.epoch())), Some(Status::Prepared)),
        (|root, id| good(root.complete(CheckpointId(id), root.epoch())), Some(Status::Completed)),
        (|root, id| good(root.complete(CheckpointId(id), root.epoch())), Some(Status::Completed)),
        (|root, _| drop(good(root.prune(1))), Some(Status::Completed)),
    ];
    let mut base = Base::default();
    for end in 0..steps.len() {
        let id = base.id.0 + 1;
        let root = start(storage, base);
        let life = if end == 0 { &steps[..1] } else { &steps[1..=end] };
        life.iter().for_each(|(step, _)| step(&*root, id));
        let epoch = root.epoch();
        drop(root);
        let newest = steps[end].1.clone().map(|status| entry(id, epoch.0, status));
        check_newest(&*acquire(storage), newest.as_ref());
        if newest.is_some() {
            base = Base { id: CheckpointId(id), epoch };
        }
    }
}

fn check_newest(root: &dyn CheckpointRoot, newest: Option<&Entry>) {
    assert_eq!(good(root.list()).last(), newest);
    good(root.prune(1)); // deletes the debris, and only that
    assert_eq!(good(root.list()).last(), newest);
    if let Some(entry) = newest {
        let manifest = good(root.load(entry.id, entry.epoch));
        read_all(root, &manifest, entry.status == Status::Completed);
        good(root.complete(entry.id, entry.epoch)); // recovery finishes it
    }
}

fn entries_are_in_order_of_id_and_owner(storage: &dyn CheckpointStorage) {
    let root = start(storage, Base::default());
    for id in [2, 10, 1] {
        good(root.prepare(&manifest(&*root, id)));
    }
    let ids: Vec<_> = good(root.list()).into_iter().map(|entry| entry.id.0).collect();
    assert_eq!(ids, [1, 2, 10]);
}

fn what_lies_above_the_base_is_void(storage: &dyn CheckpointStorage) {
    let first = start(storage, Base::default());
    (1..=3).for_each(|id| commit(&*first, &manifest(&*first, id)));
    drop(first);
    let second = acquire(storage);
    assert_eq!(good(second.list()).len(), 3, "nothing is void before a base is recorded");
    good(second.record_base(Base { id: CheckpointId(2), epoch: OwnerEpoch(1) }));
    assert_eq!(listed(&*second), [(1, 1), (2, 1)]);
    commit(&*second, &manifest(&*second, 4));
    drop(second);
    let third = acquire(storage);
    assert_eq!(listed(&*third), [(1, 1), (2, 1), (4, 2)]);
    good(third.prune(9));
    assert_eq!(listed(&*third), [(1, 1), (2, 1), (4, 2)]);
    good(third.record_base(Base::default()));
    assert_eq!(listed(&*third), [], "a fresh start leaves nothing of former owners");
}

/// An owner that was stopped, overtaken, and goes on. Whether its calls succeed or not, they change nothing.
fn a_former_owner_changes_nothing(storage: &dyn CheckpointStorage) {
    let zombie = start(storage, Base::default());
    commit(&*zombie, &staged(&*zombie, 1));
    let late = staged(&*zombie, 2);
    let owner = take_over(storage);
    good(owner.prune(1)); // the zombie is not fenced yet: what it may be about to decide stays
    read_all(&*owner, &late, false);
    good(owner.record_base(Base { id: CheckpointId(1), epoch: OwnerEpoch(1) }));
    for outcome in [zombie.prepare(&late), zombie.complete(CheckpointId(1), OwnerEpoch(1)), zombie.prune(1).map(drop)] {
        assert!(outcome.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::Fenced), "{outcome:?}");
    }
    assert_eq!(listed(&*owner), [(1, 1)]);
    commit(&*owner, &staged(&*owner, 2));
    drop(owner);
    drop(zombie);
    let third = acquire(storage);
    assert_eq!(good(third.list()), [entry(1, 1, Status::Completed), entry(2, 2, Status::Completed)]);
}

fn retention_deletes_what_nothing_needs(storage: &dyn CheckpointStorage) {
    let root = start(storage, Base::default());
    let shared = state(&*root, "shared");
    let with = |id, own: &str| Manifest { state_files: vec![shared.clone(), state(&*root, own)], ..staged(&*root, id) };
    let (first, second) = (with(1, "first"), with(2, "second"));
    let savepoint = Manifest { kind: Kind::Savepoint as i32, ..with(3, "savepoint") };
    let (fourth, prepared) = (with(4, "fourth"), with(5, "fifth"));
    [&first, &second, &savepoint, &fourth].into_iter().for_each(|manifest| commit(&*root, manifest));
    good(root.prepare(&prepared));
    let in_flight = state(&*root, "in-flight");
    let deleted = good(root.prune(1));
    assert!(!deleted.is_empty() && good(root.prune(1)).is_empty(), "the second call finds nothing");
    assert_eq!(listed(&*root), [(3, 1), (4, 1), (5, 1)]);
    good(root.blobs().read(&BlobRef::from(&in_flight)));
    [&savepoint, &fourth].into_iter().for_each(|manifest| read_all(&*root, manifest, true));
    read_all(&*root, &prepared, false);
    let gone = [&first.state_files[1], &second.state_files[1], &first.segments[0].file, &fourth.segments[0].file];
    for file in gone {
        assert!(root.blobs().read(&BlobRef::from(file)).is_err(), "{} is still there", file.name);
    }
}

fn options(take_over: bool) -> AcquireOptions {
    AcquireOptions { job: JOB.into(), take_over }
}

fn acquire(storage: &dyn CheckpointStorage) -> Arc<dyn CheckpointRoot> {
    good(storage.acquire(&options(false)))
}

fn take_over(storage: &dyn CheckpointStorage) -> Arc<dyn CheckpointRoot> {
    good(storage.acquire(&options(true)))
}

fn start(storage: &dyn CheckpointStorage, base: Base) -> Arc<dyn CheckpointRoot> {
    let root = acquire(storage);
    good(root.record_base(base));
    root
}

fn commit(root: &dyn CheckpointRoot, manifest: &Manifest) {
    good(root.prepare(manifest));
    good(root.complete(CheckpointId(manifest.id), root.epoch()));
}

fn manifest(root: &dyn CheckpointRoot, id: u64) -> Manifest {
    let epoch = root.epoch().0;
    Manifest {
        format_version: FORMAT_VERSION,
        job: JOB.into(),
        id,
        epoch,
        kind: Kind::Periodic as i32,
        ..Manifest::default()
    }
}

/// A manifest whose state file and staged segment are written.
fn staged(root: &dyn CheckpointRoot, id: u64) -> Manifest {
    let name = format!("staging-{}/out-0-{id}.segment", root.epoch());
    let file = File::from(good(root.blobs().write(&name, &[b"segment"])));
    let segments = vec![Segment { sink: "out".into(), sequence: id, records: 1, file, ..Segment::default() }];
    Manifest { state_files: vec![state(root, &id.to_string())], segments, ..manifest(root, id) }
}

fn state(root: &dyn CheckpointRoot, name: &str) -> File {
    File::from(good(root.blobs().write(&format!("state-{}/{name}", root.epoch()), &[name.as_bytes()])))
}

fn read_all(root: &dyn CheckpointRoot, manifest: &Manifest, completed: bool) {
    let files = manifest.needed_files(completed);
    files.for_each(|file| drop(good(root.blobs().read(&BlobRef::from(file)))));
}

fn listed(root: &dyn CheckpointRoot) -> Vec<(u64, u64)> {
    good(root.list()).into_iter().map(|entry| (entry.id.0, entry.epoch.0)).collect()
}

fn entry(id: u64, epoch: u64, status: Status) -> Entry {
    Entry { id: CheckpointId(id), epoch: OwnerEpoch(epoch), status, savepoint: false }
}

#[track_caller]
fn good<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error:?}"),
    }
}

#[track_caller]
fn bad<T>(result: Result<T>, kind: ErrorKind) -> Error {
    match result {
        Err(error) if error.kind() == kind => error,
        Err(error) => panic!("expected a {kind} error, got {error:?}"),
        Ok(_) => panic!("expected a {kind} error"),
    }
}
