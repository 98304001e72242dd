//! Offsets of an earlier life that were complete, as the offset map told them.

use std::collections::VecDeque;
use std::ops::Range;

/// Ranges of offsets, rising and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(VecDeque<Range<i64>>);

impl Ranges {
    /// Whether `offset` is in one of them. Offsets are asked for in rising order: what lies before is forgotten.
    pub fn take(&mut self, offset: i64) -> bool {
        while self.0.front().is_some_and(|range| range.end <= offset) {
            self.0.pop_front();
        }
        self.0.front().is_some_and(|range| range.start <= offset)
    }

    /// The first offset from `offset` on that is in none of them.
    pub fn first_missing(&self, offset: i64) -> i64 {
        let around = self.0.iter().find(|range| range.contains(&offset));
        around.map_or(offset, |range| range.end)
    }

    /// The part from `offset` on.
    pub fn from(&self, offset: i64) -> impl Iterator<Item = Range<i64>> {
        let later = self.0.iter().filter(move |range| range.end > offset);
        later.map(move |range| range.start.max(offset)..range.end)
    }

    /// Offsets in all of them.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|range| range.end.abs_diff(range.start)).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Range<i64>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<i64>>>(ranges: I) -> Self {
        Self(Ranges::merged(ranges.into_iter().filter(|range| !range.is_empty())).collect())
    }
}
