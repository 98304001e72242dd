//! Damage: shown by `list` with the file's name, refused by `load`, never hidden.

use crate::support::{Folder, commit, listed, staged};
use mailer_core::{CheckpointId, ErrorKind, OwnerEpoch};
use std::fs;

/// A prepared checkpoint, damaged; the list's text without the root's path, after `load` said the same.
fn damaged(damage: impl FnOnce(&Folder)) -> String {
    let folder = Folder::new();
    let root = folder.start((0, 0));
    root.prepare(&staged(&*root, 1)).unwrap();
    damage(&folder);
    let error = root.load(CheckpointId(1), OwnerEpoch(1)).unwrap_err();
    let list = listed(&*root);
    assert_eq!(list, [format!("1-1 damaged: {error}")]);
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let path = folder.path.canonicalize().unwrap();
    error.message().replace(path.to_str().unwrap(), "…")
}

#[test]
fn a_missing_segment() {
    let text = damaged(|folder| fs::remove_file(folder.at("staging-1/out-0-1.segment")).unwrap());
    assert_eq!(text, "checkpoint 1 of owner 1: …/staging-1/out-0-1.segment is missing");
}

#[test]
fn a_truncated_segment() {
    let text = damaged(|folder| fs::write(folder.at("staging-1/out-0-1.segment"), b"segm").unwrap());
    assert_eq!(text, "checkpoint 1 of owner 1: …/staging-1/out-0-1.segment has 4 bytes, the manifest says 7");
}

#[test]
fn a_missing_state_file() {
    let text = damaged(|folder| fs::remove_file(folder.at("state-1/1")).unwrap());
    assert_eq!(text, "checkpoint 1 of owner 1: …/state-1/1 is missing");
}

#[test]
fn an_altered_manifest() {
    let text = damaged(|folder| {
        let mut bytes = fs::read(folder.at("1-1/manifest")).unwrap();
        bytes[30] ^= 1;
        fs::write(folder.at("1-1/manifest"), bytes).unwrap();
    });
    assert_eq!(text, "…/1-1/manifest: the checksum does not match");
}

#[test]
fn an_empty_manifest() {
    let text = damaged(|folder| fs::write(folder.at("1-1/manifest"), b"").unwrap());
    assert_eq!(text, "…/1-1/manifest: 0 bytes are too few for a manifest");
}

#[test]
fn the_manifest_of_another_checkpoint() {
    let text = damaged(|folder| {
        let root = crate::support::Folder::new();
        let other = root.start((0, 0));
        other.prepare(&staged(&*other, 9)).unwrap();
        fs::copy(root.at("9-1/manifest"), folder.at("1-1/manifest")).unwrap();
    });
    assert_eq!(text, "…/1-1/manifest: this is the manifest of checkpoint 9 of owner 1: was it moved?");
}

#[test]
fn a_damaged_checkpoint_is_not_deleted_and_nothing_it_may_need_either() {
    let folder = Folder::new();
    let root = folder.start((0, 0));
    (1..=3).for_each(|id| commit(&*root, &staged(&*root, id)));
    fs::write(folder.at("1-1/manifest"), b"rotten").unwrap();
    root.prune(1).unwrap();
    assert!(
        folder.at("1-1/manifest").exists() && folder.at("state-1/1").exists() && folder.at("2-1/manifest").exists()
    );
    assert!(!folder.at("staging-1/out-0-3.segment").exists(), "published segments have no other user");
}

#[test]
fn a_damaged_base_is_an_error_not_an_empty_list() {
    let folder = Folder::new();
    let root = folder.start((0, 0));
    fs::write(folder.at("base-1"), b"checkpoint 7\nepoch 1\n").unwrap();
    let error = root.list().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("base-1: damaged"), "{error}");
}

#[test]
fn a_rotten_blob_is_found_when_it_is_read() {
    let folder = Folder::new();
    let root = folder.acquire();
    let blob = root.blobs().write("state-1/a", &[b"state"]).unwrap();
    fs::write(folder.at("state-1/a"), b"stale").unwrap();
    let error = root.blobs().read(&blob).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("state-1/a: the checksum does not match: restore"), "{error}");
}
