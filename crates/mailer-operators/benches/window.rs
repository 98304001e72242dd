//! Windows against a hand-written loop in the same run, and sliding windows against tumbling ones.
//!
//! `cargo bench -p mailer-operators --bench window`; with `-- --test` every case runs once with few records. A million
//! records a second of event time over 100,000 keys, a watermark behind every batch, results dropped. "hand-written" is a
//! hash map per window, which is drained in no order when the window is over: what a window costs at the least.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a program for people; criterion's macros make undocumented items"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mailer_core::{Batch, Error, KeyGroup, KeyHash, Keyed, Record, Result, Timestamp, Watermark};
use mailer_operators::harness::OrderedStore;
use mailer_operators::{
    Chain, ChainContext, Counter, OpenOperator, SideOutputs, Sliding, Spawner, Tumbling, Windowed, Windows,
};
use mailer_state::{StateStore, layout::FIRST_UNKEYED_GROUP};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

type Input = Keyed<u64, u64>;

const KEYS: u64 = 100_000;
const PER_MILLISECOND: u64 = 1_000;

fn records(full: u64) -> u64 {
    if std::env::args().any(|argument| argument == "--test") { 20_000 } else { full }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Hands `count` records to `take`, batch by batch; the last time in a batch is the watermark behind it.
fn feed(count: u64, mut take: impl FnMut(&mut Batch<Input>, i64)) {
    let hash = |key: u64| KeyHash::of(&key, &mut Vec::new()).unwrap();
    let keys: Vec<(KeyHash, u64)> = (0..KEYS).map(|key| (hash(key), key)).collect();
    let (mut batch, mut random) = (Batch::with_capacity(1_024), 1u64);
    for first in (0..count).step_by(1_024) {
        for number in first..(first + 1_024).min(count) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (hash, key) = keys[((u128::from(random) * u128::from(KEYS)) >> 64) as usize];
            let time = Timestamp((number / PER_MILLISECOND) as i64);
            batch.push(Record::new(time, Keyed { hash, key, value: number }));
        }
        take(&mut batch, (first / PER_MILLISECOND) as i64);
        batch.clear();
    }
}

fn by_hand(count: u64, size: i64) -> u64 {
    let mut windows: BTreeMap<i64, FxHashMap<u64, u64>> = BTreeMap::new();
    let mut results = 0;
    feed(count, |batch, watermark| {
        for record in batch.drain(..) {
            let counts = windows.entry(record.timestamp.0.div_euclid(size)).or_default();
            *counts.entry(record.value.key).or_insert(0) += 1;
        }
        while let Some(window) = windows.first_entry().filter(|window| (window.key() + 1) * size <= watermark) {
            results += window.remove().into_iter().map(black_box).count() as u64;
        }
    });
    results
}

fn by_operator(count: u64, mut windows: impl Chain<Input, Windowed<u64, u64>>) -> u64 {
    let mut worker = Worker::default();
    windows.open(&mut worker).unwrap();
    let (mut out, mut results) = (Batch::new(), 0);
    feed(count, |batch, watermark| {
        windows.process(batch, &mut out, worker.context()).unwrap();
        windows.watermark(Watermark(Timestamp(watermark)), &mut out, worker.context()).unwrap();
        results += out.drain(..).map(black_box).count() as u64;
    });
    results
}

fn tumbling(size: u64) -> impl Chain<Input, Windowed<u64, u64>> {
    Windows::of(Tumbling::of(millis(size))).count::<u64>("counts")
}

fn sliding(size: u64, slide: u64) -> impl Chain<Input, Windowed<u64, u64>> {
    Windows::of(Sliding::of(millis(size), millis(slide))).count::<u64>("counts")
}

fn windows(c: &mut Criterion) {
    let mut group = c.benchmark_group("window count, 100,000 keys, 1 M/s of event time");
    group.sample_size(10).warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(5));
    let mut case = |name: &str, seconds: u64, run: &mut dyn FnMut(u64) -> u64| {
        let count = records(seconds * 1_000 * PER_MILLISECOND);
        group.throughput(Throughput::Elements(count));
        group.bench_function(name, |b| b.iter(|| run(count)));
    };
    case("records alone", 10, &mut |count| {
        let mut results = 0;
        feed(count, |batch, _| results += batch.drain(..).map(black_box).count() as u64);
        results
    });
    case("hand-written, tumbling 1 s", 10, &mut |count| by_hand(count, 1_000));
    case("tumbling 1 s", 10, &mut |count| by_operator(count, tumbling(1_000)));
    case("hand-written, tumbling 10 s", 30, &mut |count| by_hand(count, 10_000));
    case("tumbling 10 s", 30, &mut |count| by_operator(count, tumbling(10_000)));
    case("sliding 10 s / 2 s", 30, &mut |count| by_operator(count, sliding(10_000, 2_000)));
    case("sliding 10 s / 1 s", 30, &mut |count| by_operator(count, sliding(10_000, 1_000)));
    case("sliding 60 s / 1 s", 120, &mut |count| by_operator(count, sliding(60_000, 1_000)));
    group.finish();
}

/// What a worker is to an operator.
#[derive(Default)]
struct Worker {
    store: OrderedStore,
    sides: SideOutputs,
}

impl Worker {
    fn context(&mut self) -> ChainContext<'_> {
        ChainContext { store: &mut self.store, sides: &mut self.sides, now: Timestamp(0) }
    }
}

impl OpenOperator for Worker {
    fn operator_id(&self, _name: &str) -> Result<u16> {
        Ok(1)
    }

    fn key_groups(&self) -> u16 {
        mailer_core::DEFAULT_KEY_GROUPS
    }

    fn owned_groups(&self) -> Range<u16> {
        0..self.key_groups()
    }

    fn unkeyed_group(&self) -> KeyGroup {
        KeyGroup(FIRST_UNKEYED_GROUP)
    }

    fn state(&mut self) -> &mut dyn StateStore {
        &mut self.store
    }

    fn counter(&mut self, _operator: &str, _what: &'static str) -> Counter {
        Counter::default()
    }

    fn spawner(&self) -> Result<Arc<dyn Spawner>> {
        Err(Error::internal("windows spawn nothing"))
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

criterion_group!(benches, windows);
criterion_main!(benches);
