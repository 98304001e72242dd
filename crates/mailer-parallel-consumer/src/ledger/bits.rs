//! A window of bits over rising numbers: grows at the end, is forgotten at the front.

use std::collections::VecDeque;
use std::ops::Range;

const WORD: u64 = 64;

/// Bits of numbers from `base` on, 64 in a word.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits {
    words: VecDeque<u64>,
    /// The number of the first bit of the first word, a multiple of 64.
    base: u64,
}

impl Bits {
    fn place(&self, number: u64) -> (usize, u64) {
        let distance = number - self.base;
        ((distance / WORD) as usize, 1 << (distance % WORD))
    }

    /// Makes room for `number`, clear. Numbers come one by one.
    pub(super) fn grow(&mut self, number: u64) {
        if self.words.is_empty() {
            self.base = number - number % WORD;
        }
        if self.place(number).0 == self.words.len() {
            self.words.push_back(0);
        }
    }

    /// Sets a bit; `false` when it was set.
    pub(super) fn set(&mut self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        let was_clear = self.words[word] & bit == 0;
        self.words[word] |= bit;
        was_clear
    }

    pub(super) fn get(&self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        self.words[word] & bit != 0
    }

    /// The first clear bit in `from..to`, or `to`.
    pub(super) fn first_clear(&self, from: u64, to: u64) -> u64 {
        self.find(from, to, |word| !word)
    }

    fn first_set(&self, from: u64, to: u64) -> u64 {
        self.find(from, to, |word| word)
    }

    /// The first number in `from..to` whose bit is set in what `view` makes of its word, or `to`.
    fn find(&self, from: u64, to: u64, view: impl Fn(u64) -> u64) -> u64 {
        let mut number = from;
        while number < to {
            let within = (number - self.base) % WORD;
            let rest = view(self.words[((number - self.base) / WORD) as usize]) >> within;
            if rest != 0 {
                return (number + u64::from(rest.trailing_zeros())).min(to);
            }
            number += WORD - within;
        }
        to
    }

    /// Ranges of set bits in `from..to`.
    pub(super) fn set_ranges(&self, from: u64, to: u64) -> impl Iterator<Item = Range<u64>> {
        let mut at = from;
        std::iter::from_fn(move || {
            let start = self.first_set(at, to);
            at = self.first_clear(start, to);
            (start < to).then_some(start..at)
        })
    }

    /// How many bits are set in `from..to`.
    pub(super) fn count(&self, from: u64, to: u64) -> u64 {
        self.set_ranges(from, to).map(|range| range.end - range.start).sum()
    }

    pub(super) fn forget_before(&mut self, number: u64) {
        while !self.words.is_empty() && self.base + WORD <= number {
            self.words.pop_front();
            self.base += WORD;
        }
    }

    /// Forgets `number` and what follows it.
    pub(super) fn truncate(&mut self, number: u64) {
        let (word, bit) = self.place(number);
        let keep = usize::from(bit != 1);
        if let Some(last) = self.words.get_mut(word) {
            *last &= bit - 1;
        }
        self.words.truncate(word + keep);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}
