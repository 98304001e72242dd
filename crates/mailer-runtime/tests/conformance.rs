//! The connectors of this crate pass the examination of their contracts.

use mailer_core::conformance::{Input, SinkHost, SourceHost, check_sink, check_source};
use mailer_runtime::{Collect, Generator, SliceSource};

struct Slices;

impl SourceHost for Slices {
    type Factory = SliceSource<u64>;

    fn bounded(&mut self, workers: u16) -> Input<Self::Factory> {
        let splits = u32::from(workers) + 1;
        let of = |split: u32| (u64::from(split)..5_000).step_by(splits as usize).collect();
        Input { source: SliceSource::new(0..5_000).splits(splits), splits: (0..splits).map(of).collect() }
    }

    fn number(&self, item: &u64) -> u64 {
        *item
    }
}

struct Generated;

impl SourceHost for Generated {
    type Factory = Generator<fn(u64) -> u64>;

    fn bounded(&mut self, workers: u16) -> Input<Self::Factory> {
        let of = |worker: u16| (u64::from(worker)..5_000).step_by(workers.into()).collect();
        let source = Generator::new((|n| n) as fn(u64) -> u64).count(5_000);
        Input { source, splits: (0..workers).map(of).collect() }
    }

    fn number(&self, item: &u64) -> u64 {
        *item
    }
}

#[derive(Default)]
struct Collected(Collect<u64>, Vec<u64>);

impl SinkHost for Collected {
    type Item = u64;
    type Factory = Collect<u64>;

    fn sink(&mut self) -> Collect<u64> {
        *self = Self::default();
        self.0.clone()
    }

    fn item(&self, number: u64) -> u64 {
        number
    }

    /// Two workers write to one list: an order holds for each of them.
    fn written(&mut self) -> Vec<Vec<u64>> {
        self.1.append(&mut self.0.take());
        let (low, high) = self.1.iter().partition(|number| **number < 5_000);
        vec![low, high]
    }
}

#[test]
fn a_slice_is_a_source() {
    check_source(&mut Slices);
}

#[test]
fn a_generator_is_a_source() {
    check_source(&mut Generated);
}

#[test]
fn a_collection_is_a_sink() {
    check_sink(&mut Collected::default());
}
