//! Whole pipelines against hand-written loops in the same run.
//!
//! `cargo bench -p mailer-runtime --bench pipelines`; with `-- --test` every case runs once with few records.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mailer_runtime::{Blackhole, Env, Generator, SliceSource};
use std::hint::black_box;
use std::time::Duration;

fn records(full: u64) -> u64 {
    if std::env::args().any(|argument| argument == "--test") { 10_000 } else { full }
}

fn scramble(x: u64) -> u64 {
    x.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// map → filter over a slice: the engine's whole cost per record is the difference to the loop.
fn chain(c: &mut Criterion) {
    let n = records(20_000_000);
    let values: Vec<u64> = (0..n).collect();
    let mut group = c.benchmark_group("chain");
    group.throughput(Throughput::Elements(n)).sample_size(10).measurement_time(Duration::from_secs(5));
    group.bench_function("hand-written loop", |b| {
        b.iter(|| {
            let mut kept = 0u64;
            for value in &values {
                let mapped = scramble(black_box(*value));
                if mapped & 7 != 0 {
                    black_box(mapped);
                    kept += 1;
                }
            }
            kept
        });
    });
    let source = SliceSource::new(values.iter().copied());
    group.bench_function("pipeline map filter", |b| {
        b.iter(|| {
            let env = Env::new("chain").workers(1);
            env.source("numbers", source.clone()).map(scramble).filter(|x| x & 7 != 0).sink("out", Blackhole);
            env.execute()
        });
    });
    group.finish();
}

/// key_by → reduce in memory, every update put out, 1,000 keys.
fn keyed(c: &mut Criterion) {
    let n = records(20_000_000);
    let mut group = c.benchmark_group("keyed reduce, 1000 keys");
    group.throughput(Throughput::Elements(n)).sample_size(10).measurement_time(Duration::from_secs(10));
    group.bench_function("hand-written loop, 1 thread", |b| {
        b.iter(|| {
            let mut sums = std::collections::HashMap::<u64, u64>::new();
            for i in 0..n {
                let sum = sums.entry(scramble(i) % 1_000).or_default();
                *sum = sum.wrapping_add(1);
                black_box(*sum);
            }
            sums.len()
        });
    });
    for workers in [1, 2, 4] {
        group.bench_function(format!("pipeline, {workers} workers"), |b| {
            b.iter(|| {
                let env = Env::new("keyed").workers(workers);
                env.source("numbers", Generator::new(|i| (scramble(i) % 1_000, 1u64)).count(n))
                    .key_by(|(key, _)| *key)
                    .partitions(workers)
                    .reduce("sums", |sum, one| sum.1 = sum.1.wrapping_add(one.1))
                    .sink("out", Blackhole);
                env.execute()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, chain, keyed);
criterion_main!(benches);
