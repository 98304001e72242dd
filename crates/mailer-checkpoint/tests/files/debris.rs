//! Tests that begin with the debris of a crash: files made or left out by hand, then a start.

use crate::support::{Folder, commit, listed, options, staged};
use mailer_checkpoint::{Base, CheckpointStorage, FileStorage};
use mailer_core::{CheckpointId, ErrorKind, OwnerEpoch};
use std::fs;

/// Checkpoint 1 completed, 2 as a crash left it after `damage`; what the next start lists.
fn after(damage: impl FnOnce(&Folder)) -> (Folder, Vec<String>) {
    let folder = Folder::new();
    let root = folder.start((0, 0));
    commit(&*root, &staged(&*root, 1));
    root.prepare(&staged(&*root, 2)).unwrap();
    drop(root);
    damage(&folder);
    let list = listed(&*folder.acquire());
    (folder, list)
}

fn move_back(folder: &Folder, name: &str) {
    fs::rename(folder.at(name), folder.at(&format!("{name}.tmp"))).unwrap();
}

const ONLY_FIRST: [&str; 1] = ["1-1 completed"];
const BOTH: [&str; 2] = ["1-1 completed", "2-1 prepared"];

#[test]
fn an_empty_checkpoint_folder_is_no_checkpoint() {
    let (_, list) = after(|folder| {
        fs::remove_dir_all(folder.at("2-1")).unwrap();
        fs::create_dir(folder.at("2-1")).unwrap();
    });
    assert_eq!(list, ONLY_FIRST);
}

#[test]
fn a_manifest_under_its_temporary_name_was_not_decided() {
    let (_, list) = after(|folder| move_back(folder, "2-1/manifest"));
    assert_eq!(list, ONLY_FIRST);
}

#[test]
fn a_half_written_temporary_manifest_was_not_decided() {
    let (_, list) = after(|folder| {
        move_back(folder, "2-1/manifest");
        fs::write(folder.at("2-1/manifest.tmp"), b"MAILC").unwrap();
    });
    assert_eq!(list, ONLY_FIRST);
}

#[test]
fn a_manifest_under_both_names_was_decided() {
    let (_, list) = after(|folder| fs::hard_link(folder.at("2-1/manifest"), folder.at("2-1/manifest.tmp")).unwrap());
    assert_eq!(list, BOTH);
}

#[test]
fn completed_under_its_temporary_name_is_prepared_and_can_be_completed() {
    let (folder, list) = after(|_| {});
    assert_eq!(list, BOTH);
    let root = folder.start((2, 1));
    root.sync_prepared(CheckpointId(2), OwnerEpoch(1)).unwrap();
    root.complete(CheckpointId(2), OwnerEpoch(1)).unwrap();
    assert_eq!(listed(&*root), ["1-1 completed", "2-1 completed"]);
    assert!(!folder.at("2-1/completed.tmp").exists());
}

#[test]
fn a_checkpoint_whose_temporary_completed_file_is_lost_can_be_completed() {
    let (folder, list) = after(|folder| fs::remove_file(folder.at("2-1/completed.tmp")).unwrap());
    assert_eq!(list, BOTH);
    let root = folder.start((2, 1));
    root.complete(CheckpointId(2), OwnerEpoch(1)).unwrap();
    assert_eq!(listed(&*root), ["1-1 completed", "2-1 completed"]);
}

#[test]
fn a_deletion_that_took_only_the_manifest_leaves_no_checkpoint() {
    let (_, list) = after(|folder| fs::remove_file(folder.at("1-1/manifest")).unwrap());
    assert_eq!(list, ["2-1 prepared"]);
}

#[test]
fn a_completed_checkpoint_needs_no_segments() {
    let (_, list) = after(|folder| fs::remove_file(folder.at("staging-1/out-0-1.segment")).unwrap());
    assert_eq!(list, BOTH);
}

#[test]
fn the_next_start_removes_the_debris_and_nothing_else() {
    let (folder, _) = after(|folder| {
        move_back(folder, "2-1/manifest");
        fs::write(folder.at("staging-1/half.segment.tmp"), b"ha").unwrap();
        fs::write(folder.at("base-1.tmp"), b"").unwrap();
        fs::create_dir_all(folder.at("state-1/empty/folder")).unwrap();
        fs::write(folder.at("notes.txt"), b"a person's own file").unwrap();
    });
    let root = folder.acquire();
    root.prune(1).unwrap();
    let expected = ["1-1/completed", "1-1/manifest", "base-1", "lock", "notes.txt", "owner-3", "state-1/1"];
    assert_eq!(folder.files(), expected.map(String::from).into());
    assert!(!folder.at("state-1/empty").exists() && !folder.at("2-1").exists());
    assert_eq!(listed(&*root), ONLY_FIRST);
}

#[test]
fn an_owner_that_died_while_it_wrote_its_name_counts() {
    let folder = Folder::new();
    drop(folder.acquire());
    fs::write(folder.at("owner-2"), b"job ord").unwrap();
    assert_eq!(folder.acquire().epoch(), OwnerEpoch(3));
}

#[test]
fn an_epoch_is_not_used_again_even_if_somebody_deleted_the_owner_files() {
    let folder = Folder::new();
    let root = folder.start((0, 0));
    commit(&*root, &staged(&*root, 1));
    drop(root);
    fs::remove_file(folder.at("owner-1")).unwrap();
    fs::remove_file(folder.at("base-1")).unwrap();
    assert_eq!(folder.acquire().epoch(), OwnerEpoch(2));
}

/// Stopped between the last check and the rename, overtaken, and continued: its manifest appears after all.
#[test]
fn the_late_manifest_of_a_zombie_is_void_for_this_start_and_the_third() {
    let folder = Folder::new();
    let zombie = folder.start((0, 0));
    commit(&*zombie, &staged(&*zombie, 1));
    zombie.prepare(&staged(&*zombie, 2)).unwrap();
    fs::rename(folder.at("2-1"), folder.path.with_file_name("late")).unwrap();

    let owner = FileStorage::new(&folder.path).acquire(&options(true)).unwrap();
    owner.record_base(Base { id: CheckpointId(1), epoch: OwnerEpoch(1) }).unwrap();
    fs::rename(folder.path.with_file_name("late"), folder.at("2-1")).unwrap();
    assert_eq!(listed(&*owner), ["1-1 completed"]);
    commit(&*owner, &staged(&*owner, 2));
    assert_eq!(listed(&*owner), ["1-1 completed", "2-2 completed"]);
    owner.prune(2).unwrap();
    assert!(!folder.at("2-1").exists(), "a void manifest is deleted");
    drop((owner, zombie));

    let third = folder.start((2, 2));
    assert_eq!(listed(&*third), ["1-1 completed", "2-2 completed"]);
}

#[test]
fn a_base_stays_while_the_owner_it_holds_back_lives() {
    let folder = Folder::new();
    let zombie = folder.start((0, 0));
    let take_over = || FileStorage::new(&folder.path).acquire(&options(true)).unwrap();
    let second = take_over();
    second.record_base(Base::default()).unwrap();
    drop(second);
    let third = take_over();
    third.record_base(Base::default()).unwrap();
    third.prune(1).unwrap();
    assert!(folder.at("base-2").exists() && folder.at("owner-1").exists());
    drop(zombie);
    third.prune(1).unwrap();
    let expected = ["base-3", "lock", "owner-3"];
    assert_eq!(folder.files(), expected.map(String::from).into());
}

#[test]
fn an_owner_that_was_overtaken_is_told_by_whom_and_touches_nothing() {
    let folder = Folder::new();
    let zombie = folder.start((0, 0));
    commit(&*zombie, &staged(&*zombie, 1));
    let late = staged(&*zombie, 2);
    let owner = FileStorage::new(&folder.path).acquire(&options(true)).unwrap();
    let before = folder.files();
    let calls: [&dyn Fn() -> mailer_core::Result<()>; 5] = [
        &|| zombie.prepare(&late),
        &|| zombie.complete(CheckpointId(1), OwnerEpoch(1)),
        &|| zombie.sync_prepared(CheckpointId(1), OwnerEpoch(1)),
        &|| zombie.record_base(Base::default()),
        &|| zombie.prune(1).map(drop),
    ];
    for call in calls {
        let error = call().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced);
        let owner = format!("taken over by job \"order-totals\", pid {} on host", std::process::id());
        assert!(error.message().contains(&owner) && error.message().contains("(owner 2)"), "{error}");
    }
    assert_eq!(folder.files(), before);
    drop(owner);
}
