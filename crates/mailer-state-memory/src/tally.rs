//! How much of a store belongs to which operator, counted while it is written.

use crate::store::Base;
use mailer_state::{StateUsage, layout};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::ops::Range;

#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<u16, StateUsage>);

impl Tally {
    /// What the base holds of some key groups.
    pub(crate) fn of(base: &Base, groups: Range<u16>) -> Self {
        let mut tally = Self::default();
        let (first, end) = (groups.start.to_be_bytes(), groups.end.to_be_bytes());
        if first < end {
            let entries = base.range::<[u8], _>((Included(&first[..]), Excluded(&end[..])));
            entries.for_each(|(key, value)| tally.change(key, None, Some(value.len())));
        }
        tally
    }

    /// The value of `key` had `before` bytes and has `after` bytes now; `None` for no value.
    pub(crate) fn change(&mut self, key: &[u8], before: Option<usize>, after: Option<usize>) {
        let Some(operator) = layout::operator_of(key) else { return };
        let usage = self.0.entry(operator).or_insert(StateUsage { operator, ..StateUsage::default() });
        let bytes = |value: usize| (key.len() + value) as u64;
        if let Some(value) = before {
            // Entries without a key group were not counted at the restore.
            usage.entries = usage.entries.saturating_sub(1);
            usage.bytes = usage.bytes.saturating_sub(bytes(value));
        }
        if let Some(value) = after {
            usage.entries += 1;
            usage.bytes += bytes(value);
        }
    }

    pub(crate) fn usage(&self) -> Vec<StateUsage> {
        self.0.values().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(group: u8, operator: u8) -> [u8; 7] {
        [0, group, 0, operator, 0, 0, 9]
    }

    #[test]
    fn entries_are_counted_by_operator_and_not_twice() {
        let mut tally = Tally::default();
        tally.change(&key(1, 5), None, Some(10));
        tally.change(&key(2, 5), None, Some(1));
        tally.change(&key(1, 5), Some(10), Some(20));
        tally.change(&key(1, 6), None, Some(3));
        tally.change(&key(1, 6), Some(3), None);
        tally.change(b"no", None, Some(3));
        let usage = |operator, entries, bytes| StateUsage { operator, entries, bytes };
        assert_eq!(tally.usage(), [usage(5, 2, 7 + 20 + 7 + 1), usage(6, 0, 0)]);
    }

    #[test]
    fn a_restored_store_counts_its_own_groups() {
        let entry = |group| (Box::from(key(group, 5)), Box::from([0u8; 3].as_slice()));
        let base: Base = [entry(1), entry(2), entry(3)].into_iter().collect();
        assert_eq!(Tally::of(&base, 1..3).usage(), [StateUsage { operator: 5, entries: 2, bytes: 20 }]);
        assert!(Tally::of(&base, 4..4).usage().is_empty());
    }
}
