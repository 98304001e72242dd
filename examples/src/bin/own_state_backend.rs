//! A state backend of one's own, in ninety lines, and how a job is given one.
//!
//! It keeps everything in ordered maps and writes all of it at every checkpoint: right, and slow for large state. The
//! conformance suite says that it is right.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_core::{BlobStore, CheckpointId, Error, OwnerEpoch, Result, codec};
use mailer_runtime::{Collect, Env, FileStorage, SliceSource};
use mailer_state::testing::FolderBlobs;
use mailer_state::{
    OpenBackend, OpenContext, SnapshotJob, SnapshotPart, StateBackend, StateSnapshot, StateStore, conformance,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

// ANCHOR: backend
type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
/// Everything a store has changed since the restore; `None` is a removed key.
type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

#[derive(Clone, Copy)]
struct Whole;

impl StateBackend for Whole {
    fn name(&self) -> &'static str {
        "whole"
    }

    fn open(&self, context: OpenContext<'_>) -> Result<Arc<dyn OpenBackend>> {
        let OpenContext { blobs, epoch, restore } = context;
        let files = restore.map(|snapshot| &*snapshot.files).unwrap_or_default();
        let mut restored = Entries::new();
        for file in files {
            restored.extend(codec::decode::<Entries>(&blobs.read(file)?)?);
        }
        Ok(Arc::new(OpenWhole { blobs, epoch, restored: Arc::new(restored) }))
    }
}

struct OpenWhole {
    blobs: Arc<dyn BlobStore>,
    epoch: OwnerEpoch,
    restored: Arc<Entries>,
}

impl OpenBackend for OpenWhole {
    fn store(&self, _groups: Range<u16>) -> Result<Box<dyn StateStore>> {
        Ok(Box::new(WholeStore { restored: self.restored.clone(), changes: Changes::new() }))
    }

    /// Stores never share a key, so the order in which their changes are applied does not matter.
    fn link(&self, id: CheckpointId, parts: Vec<SnapshotPart>) -> Result<StateSnapshot> {
        let mut entries = Entries::clone(&self.restored);
        for part in parts {
            let changes = part.0.downcast::<Changes>().map_err(|_| Error::internal("a part of another backend"))?;
            apply(*changes, &mut entries);
        }
        let mut bytes = Vec::new();
        codec::encode(&entries, &mut bytes)?;
        let file = self.blobs.write(&format!("state-{}/{id}", self.epoch), &[&bytes])?;
        Ok(StateSnapshot { files: vec![file] })
    }
}

fn apply(changes: Changes, entries: &mut Entries) {
    for (key, value) in changes {
        match value {
            Some(value) => entries.insert(key, value),
            None => entries.remove(&key),
        };
    }
}

struct WholeStore {
    restored: Arc<Entries>,
    changes: Changes,
}

impl StateStore for WholeStore {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.changes.get(key).map_or_else(|| self.restored.get(key), Option::as_ref);
        value.clear();
        value.extend_from_slice(found.map_or(&[], Vec::as_slice));
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.changes.insert(key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.changes.insert(key.to_vec(), None);
        Ok(())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        let mut found: Entries = with_prefix(&self.restored, prefix).collect();
        apply(with_prefix(&self.changes, prefix).collect(), &mut found);
        for (key, value) in &found {
            if !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }

    /// Nothing is ever forgotten, so a failed checkpoint needs no care: the next one holds its changes too.
    fn snapshot(&mut self, _id: CheckpointId) -> Result<SnapshotJob> {
        let changes = self.changes.clone();
        Ok(Box::new(move || Ok(SnapshotPart(Box::new(changes)))))
    }
}

fn with_prefix<V: Clone>(map: &BTreeMap<Vec<u8>, V>, prefix: &[u8]) -> impl Iterator<Item = (Vec<u8>, V)> {
    let found = map.range(prefix.to_vec()..).take_while(move |(key, _)| key.starts_with(prefix));
    found.map(|(key, value)| (key.clone(), value.clone()))
}
// ANCHOR_END: backend

/// Counts some words; a second run in the same folder goes on counting.
fn count(folder: &Path) -> Result<Vec<(String, u64)>> {
    let counts = Collect::new();
    let storage = FileStorage::new(folder.join("checkpoints"));
    // ANCHOR: swap
    let env = Env::new("counting").checkpointing(Duration::from_secs(1), storage).state_backend(Whole);
    // ANCHOR_END: swap
    env.source("words", SliceSource::new(["a", "b", "a"].map(String::from)))
        .key_by(|word| word.clone())
        .aggregate("counts", || 0, |count, _| *count += 1, |word, count| (word.clone(), *count))
        .sink("out", counts.clone());
    env.execute()?;
    Ok(counts.take())
}

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| Error::invalid_plan("name an empty folder to work in"))?;
    // ANCHOR: check
    // Panics with the seed and the step where the backend differs from a map.
    conformance::check(|| Box::new(Whole), |seed| Arc::new(FolderBlobs::new(folder.join(seed.to_string()))));
    // ANCHOR_END: check
    println!("the backend passes the conformance suite");
    println!("counted {} words", count(&folder)?.len());
    Ok(())
}
