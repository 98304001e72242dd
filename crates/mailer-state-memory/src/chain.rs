//! Which files together hold the state: a base, and the deltas since, oldest first.

use crate::file;
use mailer_core::{BlobRef, BlobStore, Result};
use mailer_state::StateSnapshot;
use std::collections::BTreeMap;

/// Deltas beyond this many become one, so that a manifest never lists thousands of files.
const MAX_DELTAS: usize = 64;

/// Entries by key; `None` is a tombstone.
pub(crate) type Entries = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    base: Option<BlobRef>,
    deltas: Vec<BlobRef>,
}

/// What a chain should become.
#[derive(Debug, PartialEq, Eq)]
enum Upkeep {
    /// It is fine.
    Nothing,
    /// One base in place of all files: the deltas are larger than half of the base.
    Base,
    /// One delta in place of many.
    Delta,
}

impl Chain {
    pub(crate) fn of(snapshot: &StateSnapshot) -> Self {
        let (bases, deltas) = snapshot.files.iter().cloned().partition(|file: &BlobRef| file.name.ends_with(".base"));
        Self { base: Vec::into_iter(bases).next(), deltas }
    }

    pub(crate) fn snapshot(&self) -> StateSnapshot {
        StateSnapshot { files: self.base.iter().chain(&self.deltas).cloned().collect() }
    }

    pub(crate) fn with(mut self, deltas: impl IntoIterator<Item = BlobRef>) -> Self {
        self.deltas.extend(deltas);
        self
    }

    /// All entries in the files, the newest of each key.
    pub(crate) fn read(&self, blobs: &dyn BlobStore) -> Result<Entries> {
        read(self.base.iter().chain(&self.deltas), blobs)
    }

    fn upkeep(&self) -> Upkeep {
        let deltas: u64 = self.deltas.iter().map(|file| file.length).sum();
        let base = self.base.as_ref().map_or(0, |file| file.length);
        match () {
            () if deltas > base / 2 => Upkeep::Base,
            () if self.deltas.len() > MAX_DELTAS => Upkeep::Delta,
            () => Upkeep::Nothing,
        }
    }

    /// The chain in good order, after writing the file that takes; `name` without ending.
    pub(crate) fn kept_up(self, blobs: &dyn BlobStore, name: &str) -> Result<Self> {
        match self.upkeep() {
            Upkeep::Nothing => Ok(self),
            Upkeep::Base => {
                let mut entries = self.read(blobs)?;
                entries.retain(|_, value| value.is_some());
                Ok(Self { base: Some(write(&entries, blobs, &format!("{name}.base"))?), deltas: Vec::new() })
            }
            Upkeep::Delta => {
                let entries = read(self.deltas.iter(), blobs)?;
                Ok(Self { base: self.base, deltas: vec![write(&entries, blobs, &format!("{name}.delta"))?] })
            }
        }
    }
}

fn read<'a>(files: impl Iterator<Item = &'a BlobRef>, blobs: &dyn BlobStore) -> Result<Entries> {
    let mut entries = Entries::new();
    for file in files {
        file::decode(&file.name, &blobs.read(file)?, |(key, value)| {
            entries.insert(key.into(), value.map(Into::into));
        })?;
    }
    Ok(entries)
}

fn write(entries: &Entries, blobs: &dyn BlobStore, name: &str) -> Result<BlobRef> {
    let bytes = file::encode(entries.iter().map(|(key, value)| (&**key, value.as_deref())))?;
    blobs.write(name, &[&bytes])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, length: u64) -> BlobRef {
        BlobRef { name: name.into(), length, checksum: 0 }
    }

    fn chain(base: u64, deltas: &[u64]) -> Chain {
        let deltas = deltas.iter().map(|length| file("x.delta", *length)).collect();
        Chain { base: (base > 0).then(|| file("x.base", base)), deltas }
    }

    #[test]
    fn a_base_is_due_when_the_deltas_outgrow_half_of_it() {
        assert_eq!(chain(0, &[]).upkeep(), Upkeep::Nothing);
        assert_eq!(chain(0, &[1]).upkeep(), Upkeep::Base);
        assert_eq!(chain(100, &[20, 30]).upkeep(), Upkeep::Nothing);
        assert_eq!(chain(100, &[20, 31]).upkeep(), Upkeep::Base);
    }

    #[test]
    fn many_small_deltas_become_one() {
        assert_eq!(chain(1_000_000, &[1; MAX_DELTAS]).upkeep(), Upkeep::Nothing);
        assert_eq!(chain(1_000_000, &[1; MAX_DELTAS + 1]).upkeep(), Upkeep::Delta);
    }

    #[test]
    fn a_snapshot_names_base_and_deltas_in_order_and_is_read_back() {
        for chain in [chain(0, &[]), chain(100, &[1, 2]), chain(0, &[3])] {
            assert_eq!(Chain::of(&chain.snapshot()), chain);
        }
    }
}
