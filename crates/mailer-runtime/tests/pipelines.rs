//! Shapes of pipelines on the thread driver: what goes in comes out, whatever the graph.

use mailer_runtime::{Collect, Env, Generator, SliceSource};

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort();
    values
}

#[test]
fn a_fused_chain_keeps_the_order() {
    let out = Collect::new();
    let env = Env::new("chain");
    env.source("numbers", SliceSource::new(0..10_000u64))
        .map(|x| x * 3)
        .filter(|x| x % 2 == 0)
        .flat_map(|x| [x, x + 1])
        .inspect(|record| assert!(record.timestamp.0 >= 0))
        .try_map(u32::try_from)
        .sink("out", out.clone());
    env.execute().unwrap();
    let expected: Vec<u32> = (0..10_000u32).map(|x| x * 3).filter(|x| x % 2 == 0).flat_map(|x| [x, x + 1]).collect();
    assert_eq!(out.take(), expected);
}

#[test]
fn keyed_work_meets_every_record_once_on_many_workers() {
    let out = Collect::new();
    let env = Env::new("counts").workers(4);
    env.source("numbers", SliceSource::new(0..100_000u64).splits(7))
        .key_by(|x| x % 97)
        .partitions(4)
        .aggregate("counts", || 0u64, |count, _| *count += 1, |key, count| (*key, *count))
        .sink("out", out.clone());
    env.execute().unwrap();
    let mut last = std::collections::BTreeMap::new();
    for (key, count) in out.take() {
        // Collect is shared by four workers, but a key lives on one: its counts arrive in order.
        assert_eq!(count, last.insert(key, count).unwrap_or(0) + 1, "key {key}");
    }
    assert_eq!(last.values().sum::<u64>(), 100_000);
}

#[test]
fn branches_each_get_everything_and_shared_work_is_done_once() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    let (evens, all, calls) = (Collect::new(), Collect::new(), Arc::new(AtomicU64::new(0)));
    let seen = calls.clone();
    let env = Env::new("branches").workers(2);
    let numbers = env
        .source("numbers", SliceSource::new(0..1_000u32))
        .inspect(move |_| {
            seen.fetch_add(1, SeqCst);
        })
        .branch();
    numbers.clone().filter(|x| x % 2 == 0).sink("evens", evens.clone());
    numbers.sink("all", all.clone());
    env.execute().unwrap();
    assert_eq!(evens.take().len(), 500);
    assert_eq!(sorted(all.take()), (0..1_000).collect::<Vec<_>>());
    assert_eq!(calls.load(SeqCst), 1_000);
}

#[test]
fn union_and_rebalance_lose_nothing() {
    let out = Collect::new();
    let env = Env::new("union").workers(3);
    let low = env.source("low", SliceSource::new(0..500u32));
    let high = env.source("high", SliceSource::new(500..1_000u32)).map(|x| x);
    low.union(high).rebalance().map(|x| x).partitions(2).sink("out", out.clone());
    env.execute().unwrap();
    assert_eq!(sorted(out.take()), (0..1_000).collect::<Vec<_>>());
}

#[test]
fn two_keyed_stages_follow_each_other() {
    let out = Collect::new();
    let env = Env::new("two-stages").workers(2);
    env.source("numbers", SliceSource::new(0..6_000u64))
        .key_by(|x| x % 100)
        .reduce("first", |a, b| *a = (*a).max(b))
        .key_by(|x| x % 3)
        .partitions(3)
        .aggregate("second", || 0u64, |n, _| *n += 1, |key, n| (*key, *n))
        .sink("out", out.clone());
    env.execute().unwrap();
    let most = out.take().into_iter().fold([0; 3], |mut most, (key, n)| {
        most[key as usize] = most[key as usize].max(n);
        most
    });
    assert_eq!(most.iter().sum::<u64>(), 6_000);
}

#[test]
fn the_generators_values_do_not_depend_on_the_number_of_workers() {
    for workers in [1, 2, 5] {
        let out = Collect::new();
        let env = Env::new("generated").workers(workers);
        env.source("numbers", Generator::new(|n| n * n).count(1_234)).sink("out", out.clone());
        env.execute().unwrap();
        assert_eq!(sorted(out.take()), (0..1_234u64).map(|n| n * n).collect::<Vec<_>>());
    }
}

#[test]
fn two_jobs_run_side_by_side() {
    let start = |name: &str| {
        let out = Collect::new();
        let env = Env::new(name).workers(2);
        env.source("numbers", SliceSource::new(0..20_000u64))
            .key_by(|x| x % 10)
            .reduce("sum", |a, b| *a += b)
            .sink("out", out.clone());
        (env.start().unwrap(), out)
    };
    let ((first, a), (second, b)) = (start("first"), start("second"));
    first.wait().unwrap();
    second.wait().unwrap();
    assert_eq!((a.len(), b.len()), (20_000, 20_000));
}

#[test]
fn the_result_depends_neither_on_batch_sizes_nor_on_edges_nor_on_workers() {
    let run = |workers, batches, bytes| {
        let out = Collect::new();
        let env = Env::new("sizes").workers(workers).edge_capacity(batches, bytes);
        env.source("numbers", SliceSource::new(0..5_000u64).splits(3))
            .key_by(|x| x % 41)
            .reduce("sum", |a, b| *a = a.wrapping_mul(31) ^ b)
            .sink("out", out.clone());
        env.execute().unwrap();
        sorted(out.take()).len()
    };
    for (workers, batches, bytes) in [(1, 1, 1), (2, 1, 64), (3, 16, 1 << 20), (8, 2, 4_096)] {
        assert_eq!(run(workers, batches, bytes), 5_000, "{workers} workers, {batches} batches, {bytes} bytes");
    }
}
