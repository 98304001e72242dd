//! A crash at every named point of a checkpoint's life, every time it is passed: what the next start lists is the truth,
//! it can go on from there, and nothing is left behind.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails ends the test")]

#[path = "files/support.rs"]
mod support;

use mailer_checkpoint::{Base, CheckpointRoot};
use mailer_core::{ErrorKind, OwnerEpoch, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Folder, commit, listed, staged};

const BEFORE: &[&str] = &["1-1 completed"];
const PREPARED: &[&str] = &["1-1 completed", "2-1 prepared"];
const COMPLETED: &[&str] = &["1-1 completed", "2-1 completed"];
const PRUNED: &[&str] = &["2-1 completed"];

/// Each point, and what may be listed after a crash there.
const POINTS: [(&str, &[&[&str]]); 11] = [
    ("segment-write", &[BEFORE]),
    ("segment-fsync", &[BEFORE]),
    ("manifest-write", &[BEFORE]),
    ("manifest-rename-before", &[BEFORE]),
    ("manifest-rename-after", &[PREPARED]),
    ("manifest-folder-fsync", &[PREPARED]),
    ("manifest-root-fsync", &[PREPARED]),
    ("complete-before", &[PREPARED]),
    ("complete-after", &[COMPLETED]),
    ("segment-delete", &[COMPLETED, PRUNED]),
    ("retention", &[COMPLETED, PRUNED]),
];

/// Runs `life` with a crash at the `n`th pass of `point`; whether it got there.
fn crashes(point: &str, n: usize, life: impl FnOnce()) -> bool {
    let passes = Arc::new(AtomicUsize::new(0));
    let count = passes.clone();
    let crash = move || assert_ne!(count.fetch_add(1, Ordering::Relaxed), n, "the injected crash");
    fail::cfg_callback(point, crash).unwrap();
    let crashed = catch_unwind(AssertUnwindSafe(life)).is_err();
    fail::remove(point);
    crashed
}

fn second_checkpoint(root: &dyn CheckpointRoot) {
    root.blobs().write("state-1/abandoned", &[b"by a checkpoint that failed"]).unwrap();
    commit(root, &staged(root, 2));
    root.prune(1).unwrap();
}

/// Recovery, as the engine does it: finish what is prepared, go on, clean up. Owner 2 was the look at the list.
fn go_on(folder: &Folder) {
    let root = folder.acquire();
    let base = root.list().unwrap().last().unwrap().id;
    root.prune(1).unwrap();
    root.record_base(Base { id: base, epoch: OwnerEpoch(1) }).unwrap();
    root.complete(base, OwnerEpoch(1)).unwrap();
    commit(&*root, &staged(&*root, 3));
    root.prune(1).unwrap();
    assert_eq!(listed(&*root), ["3-3 completed"]);
    let left = ["3-3/completed", "3-3/manifest", "base-3", "lock", "owner-3", "state-3/3"];
    assert_eq!(folder.files(), left.map(String::from).into());
    assert!(!folder.at("2-1").exists());
}

#[test]
fn a_crash_at_every_point_leaves_the_truth() {
    let scenario = fail::FailScenario::setup();
    for (point, truths) in POINTS {
        let mut n = 0;
        loop {
            let folder = Folder::new();
            let root = folder.start((0, 0));
            commit(&*root, &staged(&*root, 1));
            if !crashes(point, n, || second_checkpoint(&*root)) {
                break;
            }
            drop(root);
            let list = listed(&*folder.acquire());
            assert!(truths.iter().any(|truth| list == *truth), "{point}, pass {n}: {list:?}");
            go_on(&folder);
            n += 1;
        }
        assert!(n > 0, "{point} was never passed");
    }
    scenario.teardown();
}

#[test]
fn injected_errors_look_like_a_full_disk() {
    let scenario = fail::FailScenario::setup();
    let folder = Folder::new();
    let root = folder.start((0, 0));
    let manifest = staged(&*root, 1);
    check_full("blob-write-error", || root.blobs().write("state-1/x", &[b"x"]).map(drop));
    check_full("manifest-write-error", || root.prepare(&manifest));
    assert_eq!(listed(&*root), [""; 0]);
    scenario.teardown();
}

fn check_full(point: &str, call: impl Fn() -> Result<()>) {
    fail::cfg(point, "return").unwrap();
    let error = call().unwrap_err();
    fail::remove(point);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().starts_with("cannot write /"), "{error}");
    assert!(error.message().contains("storage space"), "{error}");
}
