//! A scan over the changes of a store and the database beneath, as one sequence.

use crate::error::rocks;
use crate::layer::Change;
use mailer_core::Result;
use rocksdb::{DB, DBRawIterator, PrefixRange, ReadOptions};

/// Visits entries in key order until `visit` returns `false`; a change hides the database's entry of its key.
#[expect(clippy::type_complexity, reason = "the contract's own type")]
pub(crate) fn merged<'a>(
    changes: impl Iterator<Item = Change<'a>>,
    db: &DB,
    prefix: &[u8],
    visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>,
) -> Result<()> {
    let mut below = Below::new(db, prefix);
    for (key, value) in changes {
        if !below.visit(Some(key), visit)? {
            return Ok(());
        }
        below.skip(key);
        if let Some(value) = value
            && !visit(key, value)?
        {
            return Ok(());
        }
    }
    below.visit(None, visit).map(|_| ())
}

/// The database's entries.
struct Below<'a> {
    db: &'a DB,
    entries: DBRawIterator<'a>,
}

impl<'a> Below<'a> {
    fn new(db: &'a DB, prefix: &[u8]) -> Self {
        let mut options = ReadOptions::default();
        options.set_iterate_range(PrefixRange(prefix));
        let mut entries = db.raw_iterator_opt(options);
        entries.seek_to_first();
        Self { db, entries }
    }

    /// Visits the entries before `until`; `false` when the visitor has had enough.
    #[expect(clippy::type_complexity, reason = "the contract's own type")]
    fn visit(&mut self, until: Option<&[u8]>, visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<bool> {
        while let Some((key, value)) = self.entries.item() {
            if until.is_some_and(|until| key >= until) {
                return Ok(true);
            }
            if !visit(key, value)? {
                return Ok(false);
            }
            self.entries.next();
        }
        self.entries.status().map_err(|error| rocks(self.db.path(), error))?;
        Ok(true)
    }

    fn skip(&mut self, key: &[u8]) {
        if self.entries.key() == Some(key) {
            self.entries.next();
        }
    }
}
