//! From numbers to offsets: a run for every stretch without a gap.

use super::{Ranges, Seq};
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Clone, Copy, Debug)]
struct Run {
    seq: Seq,
    offset: i64,
}

impl Run {
    fn offset(self, seq: Seq) -> i64 {
        self.offset + (seq - self.seq) as i64
    }
}

/// Runs of consecutive offsets, by their first number.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(VecDeque<Run>);

impl Runs {
    pub(super) fn push(&mut self, seq: Seq, offset: i64) {
        if self.0.back().is_none_or(|run| run.offset(seq) != offset) {
            self.0.push_back(Run { seq, offset });
        }
    }

    /// The run of a number.
    fn index(&self, seq: Seq) -> usize {
        match self.0.back() {
            Some(last) if last.seq <= seq => self.0.len() - 1, // nearly always
            _ => self.0.partition_point(|run| run.seq <= seq) - 1,
        }
    }

    pub(super) fn offset(&self, seq: Seq) -> i64 {
        self.0[self.index(seq)].offset(seq)
    }

    /// The offsets of consecutive numbers.
    pub(super) fn offsets(&self, seqs: Range<Seq>) -> impl Iterator<Item = Range<i64>> {
        let mut index = self.index(seqs.start);
        let mut at = seqs.start;
        std::iter::from_fn(move || {
            let run = self.0.get(index).filter(|_| at < seqs.end)?;
            let end = self.0.get(index + 1).map_or(seqs.end, |next| next.seq.min(seqs.end));
            let range = run.offset(at)..run.offset(end);
            (index, at) = (index + 1, end);
            Some(range)
        })
    }

    /// Forgets runs that lie wholly before `seq`.
    pub(super) fn forget_before(&mut self, seq: Seq) {
        while self.0.get(1).is_some_and(|second| second.seq <= seq) {
            self.0.pop_front();
        }
    }

    /// Forgets `seq` and what follows it.
    pub(super) fn truncate(&mut self, seq: Seq) {
        let keep = self.0.partition_point(|run| run.seq < seq);
        self.0.truncate(keep);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Run>()
    }
}

impl Ranges {
    /// Joins ranges that touch.
    pub(crate) fn merged(ranges: impl Iterator<Item = Range<i64>>) -> impl Iterator<Item = Range<i64>> {
        let mut ranges = ranges.peekable();
        std::iter::from_fn(move || {
            let mut range = ranges.next()?;
            while let Some(next) = ranges.next_if(|next| next.start == range.end) {
                range.end = next.end;
            }
            Some(range)
        })
    }
}
