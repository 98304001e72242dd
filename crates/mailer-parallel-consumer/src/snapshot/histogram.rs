//! A histogram whose buckets double.

use crate::clock::Nanos;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// `N` buckets, each reaching twice as far as the one before, and one for everything beyond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram<const N: usize> {
    first: Nanos,
    buckets: [u64; N],
    beyond: u64,
    sum: u128,
}

impl<const N: usize> Histogram<N> {
    /// Empty, with a first bucket up to `first` nanoseconds.
    pub(crate) const fn new(first: Nanos) -> Self {
        Self { first, buckets: [0; N], beyond: 0, sum: 0 }
    }

    pub(crate) fn record(&mut self, nanos: Nanos) {
        self.sum += u128::from(nanos);
        // The first n with first × 2ⁿ ≥ nanos.
        let index = match nanos <= self.first {
            true => 0, // nearly always, and without a division
            false => (u64::BITS - (nanos.div_ceil(self.first) - 1).leading_zeros()) as usize,
        };
        *self.buckets.get_mut(index).unwrap_or(&mut self.beyond) += 1;
    }

    /// How many durations there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum::<u64>() + self.beyond
    }

    /// Their sum in seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// Upper bounds in seconds, and how many durations were not longer.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        self.buckets.iter().enumerate().map(move |(n, count)| {
            sum += count;
            ((self.first << n) as f64 / 1e9, sum)
        })
    }
}

impl Default for Histogram<15> {
    fn default() -> Self {
        Self::new(1_000_000)
    }
}

impl Default for Histogram<18> {
    fn default() -> Self {
        Self::new(100_000)
    }
}

impl<const N: usize> Serialize for Histogram<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Histogram", 3)?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("sum_seconds", &self.sum_seconds())?;
        fields.serialize_field("cumulative", &self.cumulative().collect::<Vec<_>>())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let mut histogram = Histogram::<15>::default();
        for nanos in [0, 1_000_000, 1_000_001, 2_000_000, 16_384_000_000, 16_384_000_001] {
            histogram.record(nanos);
        }
        let cumulative: Vec<_> = histogram.cumulative().collect();
        assert_eq!(cumulative[..2], [(0.001, 2), (0.002, 4)]);
        assert_eq!(cumulative[13..], [(8.192, 4), (16.384, 5)]);
        assert_eq!(histogram.count(), 6);
        assert!((histogram.sum_seconds() - 32.772).abs() < 0.001);
        assert_eq!(Histogram::<18>::default().cumulative().last(), Some((13.1072, 0)));
    }
}
