//! Changes between two snapshots of a store, in memory: above the database until a link has ingested them.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Changes in key order; `None` is a tombstone.
pub(crate) type Changes = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

/// A borrowed change.
pub(crate) type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// Changes that a snapshot has frozen.
pub(crate) struct Layer {
    pub(crate) changes: Changes,
    ingested: AtomicBool,
}

impl Layer {
    pub(crate) fn new(changes: Changes) -> Self {
        Self { changes, ingested: AtomicBool::new(false) }
    }

    /// The database holds these changes from now on. A store that still reads the layer reads the same.
    pub(crate) fn set_ingested(&self) {
        self.ingested.store(true, Ordering::Release);
    }

    pub(crate) fn is_ingested(&self) -> bool {
        self.ingested.load(Ordering::Acquire)
    }
}

/// All layers of one store. Newer ones hide older ones.
#[derive(Default)]
pub(crate) struct Layers {
    /// Since the last snapshot.
    open: Changes,
    /// Frozen, oldest first.
    sealed: Vec<Arc<Layer>>,
}

impl Layers {
    pub(crate) fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.open.insert(key.into(), value.map(Into::into));
    }

    /// The newest change of `key`; the outer `None` says that the database knows.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let newest_first = std::iter::once(&self.open).chain(self.sealed.iter().rev().map(|layer| &layer.changes));
        newest_first.filter_map(|changes| changes.get(key)).next().map(Option::as_deref)
    }

    /// The newest change of every key that begins with `prefix`, in key order. Lazy: a scan for due timers stops early.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a [u8]) -> impl Iterator<Item = Change<'a>> {
        let newest_first = std::iter::once(&self.open).chain(self.sealed.iter().rev().map(|layer| &layer.changes));
        merged(newest_first, prefix).take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Lets go of what the database holds. To be called *before* reading the database, never between.
    #[inline]
    pub(crate) fn drop_ingested(&mut self) {
        if self.sealed.first().is_some_and(|oldest| oldest.is_ingested()) {
            self.sealed.retain(|layer| !layer.is_ingested());
        }
    }

    /// Freezes the open layer, and returns all that are not in the database.
    pub(crate) fn seal(&mut self) -> Vec<Arc<Layer>> {
        self.drop_ingested();
        if !self.open.is_empty() {
            self.sealed.push(Arc::new(Layer::new(std::mem::take(&mut self.open))));
        }
        self.sealed.clone()
    }
}

/// The newest change of every key from `start` on, in key order, out of layers of which the newest comes first.
pub(crate) fn merged<'a>(
    newest_first: impl Iterator<Item = &'a Changes>,
    start: &'a [u8],
) -> impl Iterator<Item = Change<'a>> {
    let sources = newest_first.map(|changes| changes.range::<[u8], _>((Included(start), Unbounded)).peekable());
    let mut sources: Vec<_> = sources.collect();
    std::iter::from_fn(move || {
        let key = sources.iter_mut().filter_map(|source| source.peek().map(|(key, _)| *key)).min()?;
        let found = sources.iter_mut().filter_map(|source| source.next_if(|(other, _)| *other == key));
        found.fold(None, |newest, (key, value)| newest.or(Some((&**key, value.as_deref()))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_changes_hide_older_ones_until_the_database_has_them() {
        let mut layers = Layers::default();
        layers.set(b"a", Some(b"1"));
        layers.set(b"b", Some(b"1"));
        let first = layers.seal();
        layers.set(b"a", None);
        assert_eq!(layers.get(b"a"), Some(None));
        assert_eq!(layers.get(b"b"), Some(Some(b"1".as_slice())));
        assert_eq!(layers.get(b"c"), None);
        let all: Vec<Change<'_>> = layers.with_prefix(b"").collect();
        assert_eq!(all, [(b"a".as_slice(), None), (b"b", Some(b"1".as_slice()))]);

        assert_eq!(layers.seal().len(), 2, "what was not ingested is part of the next snapshot");
        first[0].set_ingested();
        assert_eq!(layers.seal().len(), 1);
        assert_eq!(layers.get(b"b"), None);
    }
}
