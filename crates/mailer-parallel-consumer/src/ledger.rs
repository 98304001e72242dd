//! What is complete of one partition, and what may therefore be committed. Pure: no I/O, no clock, no records.
//!
//! Records get dense numbers in the order in which they are fetched ([`Seq`]); offsets may have gaps (compaction,
//! transaction markers), numbers have none. A bit a number says what is complete; runs of consecutive offsets translate
//! between the two. Whatever lies before the first incomplete record is forgotten. So one stuck record with a million
//! completed ones behind it costs an eighth of a byte for each of them, plus 16 bytes for each gap.

mod bits;
mod ranges;
mod runs;

pub use ranges::Ranges;

use bits::Bits;
use runs::Runs;
use std::ops::Range;

/// The number of a record within one assignment of its partition, dense from 0.
pub type Seq = u64;

/// The ledger of one assignment of one partition.
///
/// ```
/// use mailer_parallel_consumer::ledger::Ledger;
/// let mut ledger = Ledger::new(100);
/// let numbers: Vec<_> = [100, 101, 105].into_iter().map(|offset| ledger.push(offset).unwrap()).collect();
/// assert!(ledger.complete(numbers[1]));
/// assert_eq!(ledger.position(), 100); // 100 is not complete
/// assert!(ledger.complete(numbers[0]));
/// assert_eq!(ledger.position(), 105);
/// assert!(!ledger.complete(numbers[0])); // once only
/// ```
#[derive(Clone, Debug)]
pub struct Ledger {
    /// The first incomplete record; `next` when there is none.
    first: Seq,
    /// What the next record will be.
    next: Seq,
    /// Of the records from `first` on.
    done: Bits,
    runs: Runs,
    /// Completed records from `first` on.
    ahead: u64,
    /// The offset of the next record that will be fetched.
    next_offset: i64,
}

impl Ledger {
    /// The ledger of a partition that is fetched from `position` on.
    pub fn new(position: i64) -> Self {
        let (done, runs) = (Bits::default(), Runs::default());
        Self { first: 0, next: 0, done, runs, ahead: 0, next_offset: position }
    }

    /// Takes up a fetched record; `None` when its offset is behind what was fetched already.
    pub fn push(&mut self, offset: i64) -> Option<Seq> {
        if offset < self.next_offset {
            return None;
        }
        let seq = self.next;
        self.runs.push(seq, offset);
        self.done.grow(seq);
        self.next += 1;
        self.next_offset = offset + 1;
        Some(seq)
    }

    /// Fetching goes on at `offset`: nothing lies between the last record and it.
    pub fn advance(&mut self, offset: i64) {
        self.next_offset = self.next_offset.max(offset);
    }

    /// Marks a record as complete; `false` when it was, or was never taken up.
    pub fn complete(&mut self, seq: Seq) -> bool {
        if seq < self.first || seq >= self.next || !self.done.set(seq) {
            return false;
        }
        self.ahead += 1;
        if seq == self.first {
            self.forget();
        }
        true
    }

    /// Forgets the completed records at the front.
    fn forget(&mut self) {
        let first = self.done.first_clear(self.first, self.next);
        self.ahead -= first - self.first;
        self.first = first;
        self.done.forget_before(first);
        self.runs.forget_before(first);
    }

    /// Forgets that `seq` and what follows it were ever fetched: fetching goes on, in another assignment, at its offset.
    pub fn truncate(&mut self, seq: Seq) {
        if seq >= self.next {
            return;
        }
        let seq = seq.max(self.first);
        self.next_offset = self.runs.offset(seq);
        self.ahead -= self.done.count(seq, self.next);
        self.done.truncate(seq);
        self.runs.truncate(seq);
        self.next = seq;
    }

    /// What may be committed: the offset of the first incomplete record or, when there is none, of the next one that
    /// will be fetched.
    pub fn position(&self) -> i64 {
        if self.first == self.next { self.next_offset } else { self.runs.offset(self.first) }
    }

    /// The first incomplete record.
    pub fn first_incomplete(&self) -> Option<Seq> {
        (self.first < self.next).then_some(self.first)
    }

    /// The first incomplete record from `seq` on, or the number of the next record.
    pub fn next_incomplete(&self, seq: Seq) -> Seq {
        self.done.first_clear(seq.max(self.first), self.next)
    }

    /// Whether a record is complete.
    pub fn is_complete(&self, seq: Seq) -> bool {
        seq < self.first || (seq < self.next && self.done.get(seq))
    }

    /// Numbers from the first incomplete record to the last fetched one.
    pub fn window(&self) -> Range<Seq> {
        self.first..self.next
    }

    /// Records that are not complete.
    pub fn incomplete(&self) -> u64 {
        self.next - self.first - self.ahead
    }

    /// Completed records behind the first incomplete one.
    pub fn ahead(&self) -> u64 {
        self.ahead
    }

    /// The offset of a record in the window.
    pub fn offset(&self, seq: Seq) -> i64 {
        self.runs.offset(seq)
    }

    /// The offset of the next record that will be fetched.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Offsets of completed records behind [`position`](Self::position), as ranges: rising, apart from each other, and
    /// without any offset that no record had.
    pub fn completed(&self) -> impl Iterator<Item = Range<i64>> {
        let done = self.done.set_ranges(self.first, self.next);
        Ranges::merged(done.flat_map(|seqs| self.runs.offsets(seqs)))
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.done.heap_bytes() + self.runs.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn markers_and_compaction_leave_no_lag() {
        let mut ledger = Ledger::new(0);
        let seq = ledger.push(0).unwrap();
        ledger.advance(2); // offset 1 is a transaction marker
        assert_eq!(ledger.position(), 0);
        ledger.complete(seq);
        assert_eq!(ledger.position(), 2);
        ledger.advance(1);
        assert_eq!(ledger.position(), 2, "a position never goes back");
    }

    #[test]
    fn an_offset_that_was_fetched_is_not_taken_up_again() {
        let mut ledger = Ledger::new(10);
        assert_eq!(ledger.push(9), None);
        assert_eq!(ledger.push(10), Some(0));
        assert_eq!(ledger.push(10), None);
    }

    #[test]
    fn gaps_are_not_claimed() {
        let mut ledger = Ledger::new(0);
        let seqs: Vec<_> = [0, 1, 2, 5, 6, 9].into_iter().map(|offset| ledger.push(offset).unwrap()).collect();
        seqs[1..].iter().for_each(|seq| assert!(ledger.complete(*seq)));
        assert_eq!(ledger.completed().collect::<Vec<_>>(), [1..3, 5..7, 9..10]);
        assert_eq!((ledger.incomplete(), ledger.ahead()), (1, 5));
    }

    #[test]
    fn a_stuck_record_costs_less_than_a_byte_for_each_other() {
        let mut ledger = Ledger::new(0);
        let stuck = ledger.push(0).unwrap();
        for offset in 1..=300_000 {
            let seq = ledger.push(offset).unwrap();
            ledger.complete(seq);
        }
        assert!(ledger.heap_bytes() < 100_000, "{}", ledger.heap_bytes());
        assert_eq!(ledger.completed().collect::<Vec<_>>(), vec![1..300_001]);
        ledger.complete(stuck);
        assert_eq!((ledger.position(), ledger.ahead()), (300_001, 0));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push { gap: i64 },
        Advance { by: i64 },
        Complete(u64),
        Truncate(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => prop_oneof![4 => Just(0), 1 => 1_i64..70].prop_map(|gap| Step::Push { gap }),
            1 => (0_i64..5).prop_map(|by| Step::Advance { by }),
            8 => any::<u64>().prop_map(Step::Complete),
            1 => any::<u64>().prop_map(Step::Truncate),
        ]
    }

    /// The same in a map from numbers to offsets and a set of what is complete.
    #[derive(Default)]
    struct Model {
        offsets: BTreeMap<u64, i64>,
        done: BTreeSet<u64>,
        next: u64,
        next_offset: i64,
    }

    impl Model {
        fn position(&self) -> i64 {
            let open = self.offsets.iter().find(|(seq, _)| !self.done.contains(seq));
            open.map_or(self.next_offset, |(_, offset)| *offset)
        }

        fn completed(&self) -> Vec<i64> {
            let position = self.position();
            self.done.iter().map(|seq| self.offsets[seq]).filter(|offset| *offset > position).collect()
        }

        fn step(&mut self, ledger: &mut Ledger, step: Step) {
            match step {
                Step::Push { gap } => {
                    let offset = self.next_offset + gap;
                    assert_eq!(ledger.push(offset), Some(self.next));
                    self.offsets.insert(self.next, offset);
                    (self.next, self.next_offset) = (self.next + 1, offset + 1);
                }
                Step::Advance { by } => {
                    self.next_offset += by;
                    ledger.advance(self.next_offset);
                }
                Step::Complete(n) => {
                    let seq = n % (self.next + 2);
                    assert_eq!(ledger.complete(seq), seq < self.next && self.done.insert(seq));
                }
                Step::Truncate(n) => {
                    let open = self.offsets.keys().find(|seq| !self.done.contains(seq)).copied().unwrap_or(self.next);
                    let seq = open + n % (self.next - open + 1);
                    if let Some(offset) = self.offsets.get(&seq) {
                        self.next_offset = *offset;
                    }
                    ledger.truncate(seq);
                    self.offsets.split_off(&seq);
                    self.done.split_off(&seq);
                    self.next = seq;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_ledger_agrees_with_a_map(steps in prop::collection::vec(step(), 1..150)) {
            let (mut ledger, mut model) = (Ledger::new(0), Model::default());
            for step in steps {
                model.step(&mut ledger, step);
                prop_assert_eq!(ledger.position(), model.position());
                prop_assert_eq!(ledger.completed().flatten().collect::<Vec<_>>(), model.completed());
                prop_assert_eq!(ledger.incomplete(), model.next - model.done.len() as u64);
                prop_assert_eq!(ledger.next_offset(), model.next_offset);
            }
        }
    }
}
