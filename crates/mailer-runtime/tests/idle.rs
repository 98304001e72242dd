//! FLINK-35886, FLINK-40234, FLINK-32496: a split whose reading is held up is not idle, however long that lasts. If it were,
//! event time would go on without it, and its good records would be late.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_core::{Batch, Flush, Sink, SinkFactory, WorkerContext};
use mailer_runtime::testing::{TestDriver, TestInput};
use mailer_runtime::{Collect, Env, IntervalJoin, Result, SideTag, Tumbling, Watermarks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(30);

/// A sink that takes nothing while it is shut.
#[derive(Clone, Default)]
struct Gate(Arc<AtomicBool>);

impl<T: Send + 'static> SinkFactory<T> for Gate {
    type Sink = Gate;

    fn build(&self, _: &WorkerContext) -> Result<Gate> {
        Ok(self.clone())
    }

    fn describe(&self) -> String {
        "gate".into()
    }
}

impl<T: Send + 'static> Sink<T> for Gate {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        if !self.0.load(Relaxed) {
            batch.clear();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        Ok(Flush::Done)
    }
}

fn idle_splits(test: &TestDriver) -> Vec<String> {
    let splits = test.status().sources.into_iter().flat_map(|source| source.splits);
    splits.filter(|split| split.idle).map(|split| split.split).collect()
}

#[test]
fn a_split_is_idle_when_it_is_silent_and_nothing_is_in_the_way() {
    let input = TestInput::with_splits(2);
    let env = Env::new("silent");
    let time = Watermarks::monotonic().idle_after(TIMEOUT);
    env.source("events", input.clone()).watermarks(time).sink("out", Gate::default());
    let mut test = TestDriver::new(env).unwrap();
    test.send_to(&input, 0, [(100, 1)]).unwrap();
    test.advance(TIMEOUT + TIMEOUT).unwrap();
    assert_eq!(idle_splits(&test), ["test-0", "test-1"], "or the tests below prove nothing");
}

#[test]
fn a_sink_that_takes_nothing_makes_no_split_idle() {
    let (input, gate) = (TestInput::with_splits(2), Gate::default());
    let env = Env::new("blocked");
    let time = Watermarks::monotonic().idle_after(TIMEOUT);
    env.source("events", input.clone()).watermarks(time).sink("out", gate.clone());
    let mut test = TestDriver::new(env).unwrap();
    gate.0.store(true, Relaxed);
    test.send_to(&input, 0, [(100, 1)]).unwrap();
    test.advance(TIMEOUT * 4).unwrap();
    gate.0.store(false, Relaxed);
    test.send_to(&input, 0, [(101, 1)]).unwrap();
    test.advance(MS * 300).unwrap(); // the status is renewed every 200 ms
    assert_eq!(idle_splits(&test), [""; 0]);
}

/// The block is behind an exchange: the rings fill up, and the source stands still.
#[test]
fn backpressure_through_an_exchange_makes_no_split_idle_and_no_good_record_late() {
    let (input, gate, late) = (TestInput::with_splits(2), Gate::default(), Collect::new());
    let tag = SideTag::new("late");
    let env = Env::new("backpressure").edge_capacity(1, 1);
    let time = Watermarks::monotonic().idle_after(TIMEOUT);
    let events = env.source("events", input.clone()).watermarks(time);
    let (passed, behind) = {
        let passed = events.clone().rebalance().partitions(2);
        let windows = events.key_by(|n: &u32| *n).window(Tumbling::of(10 * MS)).late_to(&tag);
        (passed, windows.count("counts").side_output(&tag))
    };
    passed.sink("gate", gate.clone());
    behind.0.map(|result| result.value).sink("counts-out", Collect::new());
    behind.1.sink("late", late.clone());
    let mut test = TestDriver::new(env).unwrap();
    gate.0.store(true, Relaxed);
    for n in 0..20 {
        test.send_to(&input, 0, [(100 + i64::from(n), n)]).unwrap();
    }
    test.send_to(&input, 1, [(1, 7)]).unwrap();
    test.advance(TIMEOUT * 4).unwrap();
    gate.0.store(false, Relaxed);
    test.send_to(&input, 0, [(200, 1)]).unwrap();
    test.finish().unwrap();
    assert!(late.is_empty(), "the second split was not read for two minutes: it was not silent");
}

#[test]
fn a_split_that_alignment_has_stopped_is_not_idle() {
    let (fast, slow, out) = (TestInput::new(), TestInput::new(), Collect::new());
    let env = Env::new("aligned");
    let time = || Watermarks::monotonic().idle_after(TIMEOUT).align("both", 10 * MS);
    let left = env.source("fast", fast.clone()).watermarks(time()).key_by(|n: &u32| *n);
    let right = env.source("slow", slow.clone()).watermarks(time()).key_by(|n: &u32| *n);
    left.interval_join(right, "join", IntervalJoin::between(-5, 5), |key, _, _| *key).sink("out", out.clone());
    let mut test = TestDriver::new(env).unwrap();
    test.send(&slow, 0, 1).unwrap();
    test.send(&fast, 50, 2).unwrap();
    test.send(&fast, 51, 3).unwrap(); // waits: the split is stopped
    // The slow one speaks once in a while, so it is not idle either.
    for _ in 0..8 {
        test.advance(TIMEOUT / 2).unwrap();
        test.send(&slow, 1, 1).unwrap();
    }
    test.advance(MS * 300).unwrap();
    let status = test.status();
    let split = &status.sources.iter().find(|source| source.name == "fast").unwrap().splits[0];
    assert!(split.paused && !split.idle && split.lag == Some(1), "{split:?}");
    test.send(&slow, 51, 3).unwrap();
    test.advance(MS * 300).unwrap();
    assert_eq!(out.take(), [3], "both went on");
}

/// All were idle overnight, with windows open on several workers; one record wakes them. Each worker closes its windows when
/// it hears of it, and the results of the last one must not be late for the next stage.
#[test]
fn windows_that_were_open_while_all_were_idle_are_not_late_for_the_next_stage() {
    for seed in 0..60 {
        let (input, counts, late) = (TestInput::new(), Collect::new(), Collect::new());
        let tag = SideTag::new("late");
        let env = Env::new("overnight").workers(3);
        let time = Watermarks::monotonic().idle_after(TIMEOUT);
        let per_key = env
            .source("events", input.clone())
            .partitions(1)
            .watermarks(time)
            .key_by(|n: &u32| *n)
            .window(Tumbling::of(10 * MS))
            .count("per key");
        let all = per_key.map(|result| result.key).key_by(|key| key % 2).window(Tumbling::of(10 * MS)).late_to(&tag);
        let (all, too_late) = all.count("all").side_output(&tag);
        all.map(|result| (result.window.start.0, result.value)).sink("counts", counts.clone());
        too_late.sink("late", late.clone());
        let mut test = TestDriver::seeded(env, seed).unwrap();
        test.send_all(&input, (0..20).map(|n| (1, n))).unwrap();
        test.advance(TIMEOUT * 3).unwrap();
        test.send(&input, 500, 0).unwrap();
        test.advance(TIMEOUT / 6).unwrap();
        test.finish().unwrap();
        assert_eq!(late.take(), [0u32; 0], "seed {seed}");
        assert_eq!(counts.take().iter().filter(|(start, _)| *start == 0).map(|(_, n)| n).sum::<u64>(), 20);
    }
}
