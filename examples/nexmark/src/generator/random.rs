//! Chance that depends on seed and event number alone.

use crate::event::Text;

/// SplitMix64: one addition and three mixing steps a number.
pub(super) struct Random(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Random {
    pub(super) fn of(seed: u64, number: u64) -> Self {
        Self(mix(mix(seed.wrapping_add(STEP)) ^ number.wrapping_mul(STEP)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// From 0 to below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether it is one of the `of - 1` in `of` cases.
    pub(super) fn mostly(&mut self, of: u64) -> bool {
        self.below(of) > 0
    }

    /// One of a list.
    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// A price in cents: every magnitude from a dollar to a million is as likely as the other.
    pub(super) fn price(&mut self) -> u64 {
        (10f64.powf(self.unit() * 6.0) * 100.0).round() as u64
    }

    /// Words of 3 to below `end` letters altogether.
    pub(super) fn words(&mut self, end: u64) -> String {
        let length = 3 + self.below(end - 3);
        let text: String = (0..length).map(|_| if self.below(13) == 0 { ' ' } else { self.letter() }).collect();
        text.trim().to_owned()
    }

    /// So many letters.
    pub(super) fn letters(&mut self, length: u64) -> String {
        (0..length).map(|_| self.letter()).collect()
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + self.below(26) as u8)
    }

    /// Letters that bring an event of `size` to about `wanted` bytes: up to a fifth of the difference more or less.
    pub(super) fn extra(&mut self, size: usize, wanted: usize) -> Text {
        let missing = wanted.saturating_sub(size) as u64;
        let fifth = (missing + 2) / 5;
        let length = missing - fifth + self.below(2 * fifth + 1);
        self.letters(length).into()
    }
}
