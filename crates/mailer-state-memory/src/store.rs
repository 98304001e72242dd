//! The state of one task.

use crate::file;
use crate::tally::Tally;
use mailer_core::{BlobRef, BlobStore, CheckpointId, OwnerEpoch, Result};
use mailer_state::{SnapshotJob, SnapshotPart, StateStore, StateUsage};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound::{Included, Unbounded};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Restored entries, never changed.
pub(crate) type Base = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// Entries since the restore or since a snapshot; `None` is a tombstone. Both maps of a store share the bytes.
type Changes = BTreeMap<Arc<[u8]>, Option<Arc<[u8]>>>;

/// Changes between two snapshots, frozen.
struct Layer {
    changes: Changes,
    linked: AtomicBool,
}

impl Layer {
    fn is_linked(&self) -> bool {
        self.linked.load(Ordering::Acquire)
    }
}

/// A delta file on its way into the chain, with the layers it holds.
pub(crate) struct Part {
    /// `None` when nothing has changed.
    pub(crate) file: Option<BlobRef>,
    layers: Vec<Arc<Layer>>,
}

impl Part {
    /// The chain holds the file: its layers need not be written again.
    pub(crate) fn set_linked(&self) {
        self.layers.iter().for_each(|layer| layer.linked.store(true, Ordering::Release));
    }
}

pub(crate) struct MemoryStore {
    base: Arc<Base>,
    /// Everything that differs from the base: what reads see.
    current: Changes,
    /// What the next snapshot freezes.
    changes: Changes,
    /// Frozen, and not linked as far as this store knows; oldest first.
    pending: Vec<Arc<Layer>>,
    /// How much of it belongs to which operator.
    tally: Tally,
    blobs: Arc<dyn BlobStore>,
    epoch: OwnerEpoch,
    number: u64,
}

impl MemoryStore {
    /// A store of the key groups `groups`: what the base has of them counts as its own.
    pub(crate) fn new(
        base: Arc<Base>,
        groups: Range<u16>,
        blobs: Arc<dyn BlobStore>,
        epoch: OwnerEpoch,
        number: u64,
    ) -> Self {
        let tally = Tally::of(&base, groups);
        let (current, changes, pending) = (Changes::new(), Changes::new(), Vec::new());
        Self { base, current, changes, pending, tally, blobs, epoch, number }
    }

    fn find(&self, key: &[u8]) -> Option<&[u8]> {
        match self.current.get(key) {
            Some(value) => value.as_deref(),
            None => self.base.get(key).map(|value| &**value),
        }
    }

    fn freeze(&mut self) {
        self.pending.retain(|layer| !layer.is_linked());
        if !self.changes.is_empty() {
            let changes = std::mem::take(&mut self.changes);
            self.pending.push(Arc::new(Layer { changes, linked: AtomicBool::new(false) }));
        }
    }
}

impl StateStore for MemoryStore {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.find(key);
        value.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.tally.change(key, self.find(key).map(<[u8]>::len), Some(value.len()));
        let (key, value): (Arc<[u8]>, Arc<[u8]>) = (key.into(), value.into());
        self.current.insert(key.clone(), Some(value.clone()));
        self.changes.insert(key, Some(value));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.tally.change(key, self.find(key).map(<[u8]>::len), None);
        let key: Arc<[u8]> = key.into();
        if self.base.contains_key(&*key) {
            self.current.insert(key.clone(), None);
        } else {
            self.current.remove(&*key);
        }
        self.changes.insert(key, None);
        Ok(())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        let from = (Included(prefix), Unbounded);
        let base = self.base.range::<[u8], _>(from).map(|(key, value)| (&**key, Some(&**value)));
        let current = self.current.range::<[u8], _>(from).map(|(key, value)| (&**key, value.as_deref()));
        let merged = Merged { below: base.peekable(), above: current.peekable() };
        for (key, value) in merged.take_while(|(key, _)| key.starts_with(prefix)) {
            if let Some(value) = value
                && !visit(key, value)?
            {
                break;
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, id: CheckpointId) -> Result<SnapshotJob> {
        self.freeze();
        let (layers, blobs) = (self.pending.clone(), self.blobs.clone());
        let name = format!("state-{}/{id}-{}.delta", self.epoch, self.number);
        Ok(Box::new(move || {
            let file = write_delta(&layers, &*blobs, &name)?;
            Ok(SnapshotPart(Box::new(Part { file, layers })))
        }))
    }

    fn usage(&self) -> Vec<StateUsage> {
        self.tally.usage()
    }
}

/// Writes the newest change of every key of `layers`.
fn write_delta(layers: &[Arc<Layer>], blobs: &dyn BlobStore, name: &str) -> Result<Option<BlobRef>> {
    let bytes = match layers {
        [] => return Ok(None),
        [only] => encode(only.changes.iter()),
        _ => encode(layers.iter().flat_map(|layer| &layer.changes).collect::<BTreeMap<_, _>>().into_iter()),
    };
    blobs.write(name, &[&bytes?]).map(Some)
}

fn encode<'a>(changes: impl Iterator<Item = (&'a Arc<[u8]>, &'a Option<Arc<[u8]>>)>) -> Result<Vec<u8>> {
    file::encode(changes.map(|(key, value)| (&**key, value.as_deref())))
}

/// Two sequences in key order as one; where both have a key, the one above counts.
struct Merged<'a, B: Iterator<Item = file::Entry<'a>>, A: Iterator<Item = file::Entry<'a>>> {
    below: Peekable<B>,
    above: Peekable<A>,
}

impl<'a, B: Iterator<Item = file::Entry<'a>>, A: Iterator<Item = file::Entry<'a>>> Iterator for Merged<'a, B, A> {
    type Item = file::Entry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.below.peek(), self.above.peek()) {
            (Some((below, _)), Some((above, _))) => below.cmp(above),
            (below, _) => {
                if below.is_some() {
                    Less
                } else {
                    Greater
                }
            }
        };
        match order {
            Less => self.below.next(),
            Greater => self.above.next(),
            Equal => {
                self.below.next();
                self.above.next()
            }
        }
    }
}
