//! Tables of what lies in a root and what goes.

use super::*;
use crate::manifest::Segment;

fn file(name: &str) -> File {
    File { name: name.into(), length: 1, checksum: 0 }
}

/// `id` of owner `epoch` with these state files and segments.
fn checkpoint(id: u64, epoch: u64, completed: bool, state: &[&str], segments: &[&str]) -> Checkpoint {
    let segments = segments.iter().map(|name| Segment { file: file(name), ..Segment::default() }).collect();
    let state_files = state.iter().map(|name| file(name)).collect();
    let manifest = Box::new(Manifest { state_files, segments, kind: Kind::Periodic as i32, ..Manifest::default() });
    let (id, epoch) = (CheckpointId(id), OwnerEpoch(epoch));
    Checkpoint { id, epoch, void: false, completed, manifest: Found::Manifest(manifest) }
}

fn savepoint(mut checkpoint: Checkpoint) -> Checkpoint {
    if let Found::Manifest(manifest) = &mut checkpoint.manifest {
        manifest.kind = Kind::Savepoint as i32;
    }
    checkpoint
}

/// Owner 2's view; owner 1 is dead and owner 2 has recorded its base. Blobs are named `<word>-<epoch>/…`.
fn view(checkpoints: Vec<Checkpoint>, blobs: &[&str]) -> View {
    let owner = |name: &str| OwnerEpoch(name.split(['-', '/']).nth(1).unwrap().parse().unwrap());
    View {
        own: OwnerEpoch(2),
        checkpoints,
        blobs: blobs.iter().map(|name| (name.to_string(), (owner(name), 1))).collect(),
        owners: [(OwnerEpoch(1), false), (OwnerEpoch(2), true)].into(),
        bases: [OwnerEpoch(1), OwnerEpoch(2)].into(),
    }
}

fn ids(list: &[(CheckpointId, OwnerEpoch)]) -> Vec<(u64, u64)> {
    list.iter().map(|(id, epoch)| (id.0, epoch.0)).collect()
}

#[test]
fn the_newest_completed_stay_and_shared_files_with_them() {
    let checkpoints = vec![
        checkpoint(1, 2, true, &["state-2/a", "state-2/b"], &[]),
        checkpoint(2, 2, true, &["state-2/b", "state-2/c"], &[]),
        checkpoint(3, 2, true, &["state-2/c", "state-2/d"], &[]),
    ];
    let view = view(checkpoints, &["state-2/a", "state-2/b", "state-2/c", "state-2/d"]);
    let two = decide(&view, 2);
    assert_eq!((ids(&two.manifests), two.blobs), (vec![(1, 2)], vec!["state-2/a".to_string()]));
    let one = decide(&view, 1);
    assert_eq!((ids(&one.manifests), one.blobs), (vec![(1, 2), (2, 2)], vec!["state-2/a".into(), "state-2/b".into()]));
    assert_eq!(one.folders, one.manifests);
}

#[test]
fn keeping_none_keeps_one() {
    let view = view(vec![checkpoint(1, 2, true, &[], &[]), checkpoint(2, 2, true, &[], &[])], &[]);
    assert_eq!(ids(&decide(&view, 0).manifests), [(1, 2)]);
}

#[test]
fn savepoints_stay_and_do_not_count() {
    let checkpoints = vec![
        checkpoint(1, 2, true, &[], &[]),
        savepoint(checkpoint(2, 2, true, &["state-2/s"], &[])),
        checkpoint(3, 2, true, &[], &[]),
        savepoint(checkpoint(4, 2, true, &[], &[])),
    ];
    let deletions = decide(&view(checkpoints, &["state-2/s"]), 1);
    assert_eq!((ids(&deletions.manifests), deletions.blobs.len()), (vec![(1, 2)], 0));
}

#[test]
fn a_prepared_checkpoint_above_the_newest_completed_stays_with_its_segments() {
    let checkpoints =
        vec![checkpoint(1, 2, true, &[], &["staging-2/1"]), checkpoint(2, 2, false, &["state-2/a"], &["staging-2/2"])];
    let deletions = decide(&view(checkpoints, &["staging-2/1", "staging-2/2", "state-2/a"]), 1);
    assert_eq!(deletions.segments, ["staging-2/1"]);
    assert_eq!((deletions.manifests.len(), deletions.blobs.len()), (0, 0));
}

#[test]
fn own_files_that_no_manifest_names_are_in_flight() {
    let view = view(vec![], &["staging-2/next", "state-2/next", "state-1/left", "state-3/newer"]);
    assert_eq!(decide(&view, 1).blobs, ["state-1/left"]);
}

#[test]
fn an_older_owner_that_lives_keeps_its_files_until_our_base_fences_it() {
    let mut view = view(vec![], &["state-1/left"]);
    view.owners.insert(OwnerEpoch(1), true);
    assert_eq!(decide(&view, 1).blobs, ["state-1/left"]);
    view.bases.remove(&OwnerEpoch(2));
    assert_eq!(decide(&view, 1).blobs, [""; 0]);
}

#[test]
fn void_manifests_go_with_their_files_but_not_with_files_of_others() {
    let mut zombie = checkpoint(6, 1, true, &["state-1/shared", "state-1/own"], &[]);
    zombie.void = true;
    let checkpoints = vec![checkpoint(5, 1, true, &["state-1/shared"], &[]), zombie];
    let deletions = decide(&view(checkpoints, &["state-1/shared", "state-1/own"]), 1);
    assert_eq!((ids(&deletions.manifests), deletions.blobs), (vec![(6, 1)], vec!["state-1/own".to_string()]));
}

#[test]
fn an_unreadable_manifest_stops_everything_but_published_segments() {
    let mut unreadable = checkpoint(1, 1, true, &[], &[]);
    unreadable.manifest = Found::Unreadable;
    let checkpoints =
        vec![unreadable, checkpoint(2, 2, true, &["state-2/a"], &["staging-2/2"]), checkpoint(3, 2, true, &[], &[])];
    let deletions = decide(&view(checkpoints, &["state-1/x", "state-2/a", "staging-2/2"]), 1);
    assert_eq!(deletions, Deletions { segments: vec!["staging-2/2".into()], ..Deletions::default() });
}

#[test]
fn a_void_unreadable_manifest_goes() {
    let mut unreadable = checkpoint(6, 1, false, &[], &[]);
    (unreadable.manifest, unreadable.void) = (Found::Unreadable, true);
    assert_eq!(ids(&decide(&view(vec![unreadable], &[]), 1).manifests), [(6, 1)]);
}

#[test]
fn a_damaged_checkpoint_does_not_push_a_good_one_out() {
    let checkpoints =
        vec![checkpoint(1, 2, true, &["state-2/a"], &[]), checkpoint(2, 2, true, &["state-2/missing"], &[])];
    assert_eq!(decide(&view(checkpoints, &["state-2/a"]), 1).manifests, []);
}

#[test]
fn folders_without_a_manifest_go_when_their_owner_is_past() {
    let empty = |epoch| Checkpoint { manifest: Found::Nothing, ..checkpoint(7, epoch, false, &[], &[]) };
    let deletions = decide(&view(vec![empty(1), empty(2)], &[]), 1);
    assert_eq!(ids(&deletions.folders), [(7, 1)]);
}

#[test]
fn bases_stay_while_an_owner_before_them_may_still_write() {
    let mut view = view(vec![], &[]);
    view.own = OwnerEpoch(4);
    view.bases = [2, 3, 4].map(OwnerEpoch).into();
    view.owners = [(2, true), (3, false), (4, true)].map(|(owner, alive)| (OwnerEpoch(owner), alive)).into();
    let deletions = decide(&view, 1);
    assert_eq!(deletions.bases, [OwnerEpoch(2)], "base 3 holds owner 2 back");
    assert_eq!(deletions.owners, [OwnerEpoch(3)], "owner 2 lives");
    view.bases.remove(&OwnerEpoch(4));
    assert_eq!(decide(&view, 1).bases, [], "until our own base is recorded all stay");
}
