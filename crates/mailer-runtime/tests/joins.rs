//! Joins, dedupe and top-n through a job, on one worker and on several, and with crashes in between.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_runtime::testing::{Outcome, run_seeded};
use mailer_runtime::{Collect, Env, FileStorage, IntervalJoin, KeyedStream, SliceSource, Stream, Watermarks};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const EVENTS: i64 = 12_000;

/// Key, event time.
type Item = (u8, i64);

/// Items about two milliseconds apart, a little out of order.
fn items(shift: i64) -> Vec<Item> {
    (0..EVENTS).map(|n| (((n * 7 + shift) % 13) as u8, n * 2 + shift + (n * 5) % 9)).collect()
}

fn source(env: &Env, name: &str, shift: i64) -> KeyedStream<u8, Item> {
    let items = SliceSource::new(items(shift)).timestamps(|item| item.1).splits(2);
    let timed: Stream<Item> =
        env.source(name, items).watermarks(Watermarks::bounded(40 * MS).emit_every(Duration::ZERO));
    timed.key_by(|item| item.0)
}

/// Without crashes, then with: the set of results is the same, and without crashes nothing comes twice.
fn check<T: Ord + Clone + Send + std::fmt::Debug + 'static>(
    build: impl Fn(&Env, u16, &Collect<T>),
    expected: &BTreeSet<T>,
) {
    for workers in [1, 3] {
        let out = Collect::new();
        let env = Env::new("joins").workers(2);
        build(&env, workers, &out);
        env.execute().unwrap();
        let seen = out.take();
        assert_eq!(seen.len(), expected.len(), "{workers} workers");
        assert_eq!(&seen.into_iter().collect::<BTreeSet<_>>(), expected, "{workers} workers");
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, mut restored) = (Collect::new(), 0);
    for seed in 0.. {
        let env = Env::new("joins").workers(2).checkpointing(MS, FileStorage::new(folder.path()));
        build(&env, 2, &out);
        let run = run_seeded(env, seed, (seed < 40).then_some(200 + 40 * seed)).unwrap();
        restored += usize::from(run.status.recovery.as_ref().is_some_and(|recovery| recovery.from.is_some()));
        match run.outcome {
            Ok(Outcome::Finished) => break,
            Ok(Outcome::Crashed) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(restored >= 2, "{restored} restores");
    assert_eq!(&out.take().into_iter().collect::<BTreeSet<_>>(), expected, "with crashes");
}

type Pair = (u8, i64, Option<i64>);

/// Times of the right side, by key.
fn rights() -> BTreeMap<u8, BTreeSet<i64>> {
    let mut rights: BTreeMap<u8, BTreeSet<i64>> = BTreeMap::new();
    for (key, time) in items(1) {
        rights.entry(key).or_default().insert(time);
    }
    rights
}

fn pairs(lower: i64, upper: i64, outer: bool) -> BTreeSet<Pair> {
    let rights = rights();
    let mut expected = BTreeSet::new();
    for (key, time) in items(0) {
        let partners: Vec<i64> = rights[&key].range(time + lower..=time + upper).copied().collect();
        expected.extend(partners.iter().map(|partner| (key, time, Some(*partner))));
        expected.extend((outer && partners.is_empty()).then_some((key, time, None)));
    }
    expected
}

#[test]
fn an_inner_interval_join_is_all_pairs() {
    let build = |env: &Env, workers, out: &Collect<Pair>| {
        let (left, right) = (source(env, "left", 0).partitions(workers), source(env, "right", 1));
        left.interval_join(right, "join", IntervalJoin::between(-20, 30), |key, l, r| (*key, l.1, Some(r.1)))
            .sink("out", out.clone());
    };
    check(build, &pairs(-20, 30, false));
}

#[test]
fn a_left_interval_join_has_those_without_partner_too() {
    let expected = pairs(-3, 6, true);
    assert!(expected.iter().any(|pair| pair.2.is_none()) && expected.iter().any(|pair| pair.2.is_some()));
    let build = |env: &Env, workers, out: &Collect<Pair>| {
        let (left, right) = (source(env, "left", 0).partitions(workers), source(env, "right", 1));
        left.left_interval_join(right, "join", IntervalJoin::between(-3, 6), |key, l, r| (*key, l.1, r.map(|r| r.1)))
            .sink("out", out.clone());
    };
    check(build, &expected);
}

#[test]
fn an_as_of_join_takes_what_was_known() {
    let rights = rights();
    let latest = |key, time| rights[&key].range(..=time).next_back().copied();
    let expected: BTreeSet<Pair> = items(0).into_iter().map(|(key, time)| (key, time, latest(key, time))).collect();
    let build = |env: &Env, workers, out: &Collect<Pair>| {
        let (left, right) = (source(env, "left", 0).partitions(workers), source(env, "right", 1));
        left.as_of_join(right, "join", |key, l, r| (*key, l.1, r.map(|r| r.1))).sink("out", out.clone());
    };
    check(build, &expected);
}

/// Everything comes twice, the second time up to 30 ms later.
#[test]
fn dedupe_lets_one_of_two_through() {
    let twice = |env: &Env, workers, out: &Collect<i64>| {
        let both = (0..EVENTS).flat_map(|n| [(n, n * 3), (n - 9, n * 3 + 3)]).filter(|(id, _)| *id >= 0);
        let source = SliceSource::new(both).timestamps(|(_, time)| *time);
        env.source("twice", source)
            .watermarks(Watermarks::bounded(40 * MS).emit_every(Duration::ZERO))
            .key_by(|(id, _)| id % 13)
            .partitions(workers)
            .dedupe_by("dedupe", 100 * MS, |(id, _)| *id)
            .map(|(id, _)| id)
            .sink("out", out.clone());
    };
    check(twice, &(0..EVENTS).collect());
}

#[test]
fn top_n_ends_with_the_best() {
    let out = Collect::new();
    let env = Env::new("top").workers(2);
    env.source("items", SliceSource::new(items(0)).splits(3))
        .key_by(|item| item.0)
        .partitions(2)
        .top_n("top", 3, |a, b| b.1.cmp(&a.1))
        .sink("out", out.clone());
    env.execute().unwrap();
    let mut last = BTreeMap::new();
    for (key, ranking) in out.take() {
        last.insert(key, ranking);
    }
    for (key, ranking) in last {
        let mut all: Vec<Item> = items(0).into_iter().filter(|item| item.0 == key).collect();
        all.sort_by_key(|item| std::cmp::Reverse(item.1));
        let times = |items: &[Item]| items.iter().map(|item| item.1).collect::<Vec<_>>();
        assert_eq!(times(&ranking), times(&all[..3]), "key {key}");
    }
}
