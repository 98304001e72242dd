//! Another number of workers than the checkpoint was taken with: what goes on as if nothing had changed, and what is
//! refused with what to write instead.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_runtime::process::{Context, States};
use mailer_runtime::testing::{TestDriver, TestInput};
use mailer_runtime::{
    Broadcast, BroadcastContext, BroadcastFunction, Collect, Env, ErrorKind, Lookup, Result, Retry, SideTag, Tumbling,
    Watermarks,
};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort();
    values
}

#[test]
fn a_stateless_pipeline_goes_on_with_any_number_of_workers() {
    let (input, out) = (TestInput::with_splits(4), Collect::new());
    let env = |workers| {
        let env = Env::new("stateless").workers(workers);
        let numbers = env.source("numbers", input.clone()).map(|n: u32| n + 1);
        numbers.rebalance().filter(|n| n % 10 != 0).sink("out", out.clone());
        env
    };
    let mut test = TestDriver::new(env(2)).unwrap();
    for (round, workers) in [(0, 3), (1, 1), (2, 4)] {
        let numbers = round * 100..round * 100 + 20;
        numbers.clone().for_each(|n| test.send_to(&input, n % 4, [(0, n)]).unwrap());
        assert_eq!(sorted(out.take()), numbers.map(|n| n + 1).filter(|n| n % 10 != 0).collect::<Vec<_>>());
        test.checkpoint().unwrap();
        test.restore_as(env(workers)).unwrap();
        assert!(out.is_empty(), "nothing is read twice");
    }
}

/// Puts out what is above the limit of all.
#[derive(Clone, Default)]
struct Above {
    limit: Broadcast<u8, u32>,
}

impl BroadcastFunction<u32, u32, u32> for Above {
    type Out = u32;

    fn states(&mut self, states: &mut States<'_>) {
        states.broadcast("limit", &mut self.limit);
    }

    fn on_record(&mut self, n: u32, cx: &mut Context<'_, u32, u32>) -> Result<()> {
        if self.limit.get(&0).is_some_and(|limit| n > *limit) {
            cx.emit(n);
        }
        Ok(())
    }

    fn on_broadcast(&mut self, limit: u32, cx: &mut BroadcastContext<'_, u32>) -> Result<()> {
        self.limit.set(cx, 0, limit);
        Ok(())
    }
}

/// Numbers above a limit: so many workers read the limits, so many share the keys.
fn above(numbers: &TestInput<u32>, limits: &TestInput<u32>, out: &Collect<u32>, reading: u16, keyed: u16) -> Env {
    let env = Env::new("above");
    let limits = env.source("limits", limits.clone()).partitions(reading).map(|limit| limit + 1);
    let keyed = env.source("numbers", numbers.clone()).key_by(|n| *n).partitions(keyed);
    keyed.broadcast(limits).process("above", Above::default()).sink("out", out.clone());
    env
}

#[test]
fn a_broadcast_reaches_every_worker_whatever_number_of_workers_it_comes_from() {
    let (numbers, limits, out) = (TestInput::new(), TestInput::with_splits(3), Collect::new());
    let mut test = TestDriver::new(above(&numbers, &limits, &out, 1, 3)).unwrap();
    test.send_to(&limits, 1, [(0, 9)]).unwrap();
    test.checkpoint().unwrap();
    for reading in [3, 2] {
        test.restore_as(above(&numbers, &limits, &out, reading, 3)).unwrap();
        test.send_all(&numbers, (0..20).map(|n| (0, n))).unwrap();
        assert_eq!(sorted(out.take()), (11..20).collect::<Vec<_>>(), "the limit is on all three workers");
        test.send_to(&limits, 2, [(0, 14)]).unwrap();
        test.send_all(&numbers, (0..20).map(|n| (0, n))).unwrap();
        assert_eq!(sorted(out.take()), (16..20).collect::<Vec<_>>());
        test.send_to(&limits, 2, [(0, 9)]).unwrap();
        test.checkpoint().unwrap();
    }
}

#[test]
fn broadcast_state_on_other_workers_is_refused() {
    let (numbers, limits, out) = (TestInput::new(), TestInput::new(), Collect::new());
    let mut test = TestDriver::new(above(&numbers, &limits, &out, 1, 2)).unwrap();
    test.send(&limits, 0, 9).unwrap();
    test.checkpoint().unwrap();
    let error = test.restore_as(above(&numbers, &limits, &out, 1, 3)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(
        error.message().contains("\"above\" had 2 workers") && error.message().contains("partitions(2)"),
        "{error}"
    );
    test.restore_as(above(&numbers, &limits, &out, 1, 2)).unwrap();
    test.send(&numbers, 0, 11).unwrap();
    assert_eq!(out.take(), [11], "with the old number it goes on");
}

#[test]
fn lookups_under_way_without_a_key_are_refused_on_other_workers() {
    let (input, out) = (TestInput::with_splits(4), Collect::new());
    let env =
        |workers| {
            let env = Env::new("lookups").workers(workers);
            let slow = Lookup::unordered().retry(Retry::exponential(9, Duration::from_secs(60)));
            env.source("numbers", input.clone())
                .async_map("slow", slow, |n: u32| async move {
                    if n < 4 { Err(std::io::Error::other("no")) } else { Ok(n) }
                })
                .sink("out", out.clone());
            env
        };
    let mut test = TestDriver::new(env(2)).unwrap();
    (0..8).for_each(|n| test.send_to(&input, n % 4, [(0, n)]).unwrap());
    assert_eq!(sorted(out.take()), [4, 5, 6, 7]);
    test.checkpoint().unwrap();
    let error = test.restore_as(env(3)).unwrap_err();
    assert!(error.message().contains("\"slow\" had 2 workers") && error.message().contains("partitions(2)"), "{error}");
}

/// Two tasks had sent different watermarks; one task reads both splits now. The record is not late: its own split had not
/// come so far.
#[test]
fn event_time_of_splits_that_come_together_is_that_of_the_slower() {
    let env = |workers, input: &TestInput<u32>, out: &Collect<(i64, u64)>, late: &Collect<u32>| {
        let tag = SideTag::new("late");
        let env = Env::new("together");
        let counts = env
            .source("events", input.clone())
            .partitions(workers)
            .watermarks(Watermarks::monotonic())
            .key_by(|n: &u32| *n)
            .partitions(2)
            .window(Tumbling::of(10 * MS))
            .late_to(&tag)
            .count("counts");
        let (counts, too_late) = counts.side_output(&tag);
        counts.map(|result| (result.window.start.0, result.value)).sink("out", out.clone());
        too_late.sink("late", late.clone());
        env
    };
    for (before, after) in [(2, 1), (1, 2)] {
        let (input, out, late) = (TestInput::with_splits(2), Collect::new(), Collect::new());
        let mut test = TestDriver::new(env(before, &input, &out, &late)).unwrap();
        test.send_to(&input, 0, [(500, 1)]).unwrap();
        test.send_to(&input, 1, [(1, 1)]).unwrap();
        test.checkpoint().unwrap();
        test.restore_as(env(after, &input, &out, &late)).unwrap();
        test.send_to(&input, 1, [(2, 1), (600, 1)]).unwrap();
        assert_eq!((out.take(), late.take()), (vec![(0, 2)], vec![]), "{before} workers, then {after}");
    }
}
