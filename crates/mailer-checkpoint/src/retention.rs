//! What may be deleted: a pure decision over what lies in a root.
//!
//! A file goes only because no kept manifest names it, and only when nobody can still be about to name it: files of this
//! owner that no manifest ever named may be in flight, and so may those of an older owner that lives and is not yet fenced.

use crate::manifest::{File, Kind, Manifest};
use mailer_core::{CheckpointId, OwnerEpoch};
use std::collections::{BTreeMap, BTreeSet};

/// One checkpoint folder.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    pub(crate) id: CheckpointId,
    pub(crate) epoch: OwnerEpoch,
    pub(crate) void: bool,
    pub(crate) completed: bool,
    pub(crate) manifest: Found,
}

/// What is in a checkpoint folder.
#[derive(Debug)]
pub(crate) enum Found {
    /// No manifest: debris of a crash, or a checkpoint being made or deleted.
    Nothing,
    /// A manifest that cannot be read: nobody knows which files it names.
    Unreadable,
    /// A manifest.
    Manifest(Box<Manifest>),
}

/// Everything in a root.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// The owner that asks.
    pub(crate) own: OwnerEpoch,
    /// In order.
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// Blobs: owner and length.
    pub(crate) blobs: BTreeMap<String, (OwnerEpoch, u64)>,
    /// Owner files, and whether that owner still lives.
    pub(crate) owners: BTreeMap<OwnerEpoch, bool>,
    /// Owners that recorded a base.
    pub(crate) bases: BTreeSet<OwnerEpoch>,
}

/// What goes, in the order of deletion.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletions {
    /// Manifests, before the files they name.
    pub(crate) manifests: Vec<(CheckpointId, OwnerEpoch)>,
    /// Staged segments of completed checkpoints.
    pub(crate) segments: Vec<String>,
    /// Other blobs.
    pub(crate) blobs: Vec<String>,
    /// Checkpoint folders that hold no manifest, or no longer.
    pub(crate) folders: Vec<(CheckpointId, OwnerEpoch)>,
    /// Bases of owners, after the void manifests.
    pub(crate) bases: Vec<OwnerEpoch>,
    /// Owner files.
    pub(crate) owners: Vec<OwnerEpoch>,
}

/// Decides. The newest completed checkpoint always stays, whatever `keep_completed` says.
pub(crate) fn decide(view: &View, keep_completed: usize) -> Deletions {
    if view.checkpoints.iter().any(|c| !c.void && matches!(c.manifest, Found::Unreadable)) {
        // Anything might belong to it. Only segments have a single user.
        return Deletions { segments: view.published_segments(&BTreeSet::new()), ..Deletions::default() };
    }
    let cut = view.cut(keep_completed);
    let (going, kept): (Vec<_>, Vec<_>) = view.with_manifest().partition(|c| c.is_going(cut));
    let needed: BTreeSet<&str> = kept.iter().flat_map(|c| c.needed()).map(|file| &*file.name).collect();
    let segments = view.published_segments(&needed);
    let blobs = view.unneeded_blobs(&going, &needed, &segments);
    Deletions {
        manifests: going.iter().map(|c| (c.id, c.epoch)).collect(),
        folders: view.folders(&going),
        bases: view.bases.iter().copied().filter(|base| view.is_spent(*base)).collect(),
        owners: view.owners.keys().copied().filter(|owner| *owner < view.own && !view.is_alive(*owner)).collect(),
        segments,
        blobs,
    }
}

impl Checkpoint {
    fn is_going(&self, cut: Option<(CheckpointId, OwnerEpoch)>) -> bool {
        self.void || (!self.is_savepoint() && cut.is_some_and(|cut| (self.id, self.epoch) < cut))
    }

    fn is_savepoint(&self) -> bool {
        self.readable().is_some_and(|manifest| manifest.kind() == Kind::Savepoint)
    }

    fn readable(&self) -> Option<&Manifest> {
        if let Found::Manifest(manifest) = &self.manifest { Some(manifest) } else { None }
    }

    fn needed(&self) -> impl Iterator<Item = &File> {
        self.readable().into_iter().flat_map(|manifest| manifest.needed_files(self.completed))
    }

    fn segments(&self) -> impl Iterator<Item = &str> {
        self.readable().into_iter().flat_map(|manifest| &manifest.segments).map(|segment| &*segment.file.name)
    }
}

impl View {
    fn with_manifest(&self) -> impl Iterator<Item = &Checkpoint> {
        self.checkpoints.iter().filter(|c| !matches!(c.manifest, Found::Nothing))
    }

    /// The oldest of the newest `keep` usable completed checkpoints. Savepoints and damaged ones do not count.
    fn cut(&self, keep: usize) -> Option<(CheckpointId, OwnerEpoch)> {
        let counts = |c: &&Checkpoint| c.completed && !c.void && !c.is_savepoint() && self.is_usable(c);
        self.checkpoints.iter().rev().filter(counts).map(|c| (c.id, c.epoch)).take(keep.max(1)).last()
    }

    fn is_usable(&self, checkpoint: &Checkpoint) -> bool {
        let is_whole = |file: &File| self.blobs.get(&file.name).is_some_and(|(_, length)| *length == file.length);
        checkpoint.readable().is_some() && checkpoint.needed().all(is_whole)
    }

    fn published_segments(&self, needed: &BTreeSet<&str>) -> Vec<String> {
        let completed = self.with_manifest().filter(|c| c.completed && !c.void);
        let segments: BTreeSet<_> = completed.flat_map(Checkpoint::segments).collect();
        segments
            .into_iter()
            .filter(|name| self.blobs.contains_key(*name) && !needed.contains(name))
            .map(Into::into)
            .collect()
    }

    /// What checkpoints that go have named, and what past owners left behind; but nothing that a kept one needs.
    fn unneeded_blobs(&self, going: &[&Checkpoint], kept: &BTreeSet<&str>, segments: &[String]) -> Vec<String> {
        let manifests = going.iter().filter_map(|c| c.readable());
        let named: BTreeSet<&str> = manifests.flat_map(|m| m.needed_files(false)).map(|file| &*file.name).collect();
        let is_ours_to_take = |name: &str, owner| named.contains(name) || self.is_past(owner);
        let goes = |name: &String, owner| {
            is_ours_to_take(name, owner) && !kept.contains(&**name) && segments.binary_search(name).is_err()
        };
        self.blobs.iter().filter(|(name, (owner, _))| goes(name, *owner)).map(|(name, _)| name.clone()).collect()
    }

    fn folders(&self, going: &[&Checkpoint]) -> Vec<(CheckpointId, OwnerEpoch)> {
        let is_going = |c: &Checkpoint| going.iter().any(|g| (g.id, g.epoch) == (c.id, c.epoch));
        let is_debris = |c: &Checkpoint| matches!(c.manifest, Found::Nothing) && self.is_past(c.epoch);
        self.checkpoints.iter().filter(|c| is_going(c) || is_debris(c)).map(|c| (c.id, c.epoch)).collect()
    }

    /// Whatever this owner still does cannot matter: it is dead, or our base makes void what it writes.
    fn is_past(&self, owner: OwnerEpoch) -> bool {
        owner < self.own && (self.bases.contains(&self.own) || !self.is_alive(owner))
    }

    fn is_alive(&self, owner: OwnerEpoch) -> bool {
        self.owners.get(&owner).copied().unwrap_or(false)
    }

    /// An old base whose void manifests are gone and can never come again: every owner before it is dead.
    fn is_spent(&self, base: OwnerEpoch) -> bool {
        let has_base = self.bases.contains(&self.own);
        has_base && base < self.own && self.owners.range(..base).all(|(_, alive)| !alive)
    }
}

#[cfg(test)]
mod tests;
