//! The test driver: whole pipelines fed by hand, as users test theirs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_runtime::process::{Context, ProcessFunction, States, Timer, Value};
use mailer_runtime::testing::{TestDriver, TestInput};
use mailer_runtime::{
    Collect, Env, ErrorKind, Generator, IntervalJoin, JobState, Lookup, Result, Retry, SideTag, Timestamp, Tumbling,
    Watermarks,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn sums(input: &TestInput<(u8, u32)>, out: &Collect<(u8, u32)>) -> Env {
    let env = Env::new("sums");
    let pairs = env.source("pairs", input.clone()).key_by(|pair| pair.0);
    pairs.reduce("sums", |sum, pair| sum.1 += pair.1).sink("out", out.clone());
    env
}

#[test]
fn what_is_sent_comes_out_at_once_and_state_survives_a_crash() {
    let (input, out) = (TestInput::new(), Collect::new());
    let mut test = TestDriver::new(sums(&input, &out)).unwrap();
    test.send_all(&input, [(0, (1, 3)), (1, (2, 5))]).unwrap();
    assert_eq!(out.take(), [(1, 3), (2, 5)]);
    test.checkpoint().unwrap();
    test.send(&input, 2, (1, 4)).unwrap();
    assert_eq!(out.take(), [(1, 7)]);
    test.restore().unwrap();
    assert_eq!(out.take(), [(1, 7)], "read again, and once: the state is that of the checkpoint");
    test.send(&input, 3, (1, 1)).unwrap();
    assert_eq!(out.take(), [(1, 8)]);
    test.finish().unwrap();
    assert!(test.is_finished());
    assert_eq!(test.send(&input, 4, (1, 1)).unwrap_err().kind(), ErrorKind::Refused);
}

#[test]
fn the_pipelines_own_watermarks_move_event_time_and_so_does_the_test() {
    let (input, out) = (TestInput::with_splits(2), Collect::new());
    let env = Env::new("windows");
    env.source("events", input.clone())
        .watermarks(Watermarks::bounded(5 * MS))
        .key_by(|_: &u32| 0u8)
        .window(Tumbling::of(10 * MS))
        .count("counts")
        .map(|result| (result.window.start.0, result.value))
        .sink("out", out.clone());
    let mut test = TestDriver::new(env).unwrap();
    test.send_to(&input, 0, [(1, 1), (15, 2)]).unwrap();
    assert!(out.is_empty(), "the second split has promised nothing");
    test.send_to(&input, 1, [(16, 3)]).unwrap();
    assert_eq!(out.take(), [(0, 1)]);
    test.watermark(&input, 19).unwrap();
    assert!(out.is_empty());
    test.watermark(&input, 20).unwrap();
    assert_eq!(out.take(), [(10, 2)]);
    test.watermark(&input, 3).unwrap(); // never back
    test.send_to(&input, 0, [(19, 4)]).unwrap();
    test.finish().unwrap();
    assert!(out.is_empty(), "late");
    let counted = |what| test.status().operators.iter().find(|o| o.counts == what).map(|o| o.count);
    assert_eq!(counted("late"), Some(1));
}

#[test]
fn event_time_is_as_the_checkpoint_knows_it() {
    let (input, out, late) = (TestInput::new(), Collect::new(), Collect::new());
    let tag = SideTag::new("late");
    let env = Env::new("late");
    let counts = env.source("events", input.clone()).key_by(|n: &u32| *n).window(Tumbling::of(10 * MS)).late_to(&tag);
    let (counts, too_late) = counts.count("counts").side_output(&tag);
    counts.map(|result| result.value).sink("out", out.clone());
    too_late.sink("late", late.clone());
    let mut test = TestDriver::seeded(env.workers(3), 7).unwrap();
    test.send(&input, 3, 1).unwrap();
    test.watermark(&input, 10).unwrap();
    assert_eq!(out.take(), [1]);
    test.checkpoint().unwrap();
    test.restore().unwrap();
    test.send(&input, 4, 1).unwrap();
    test.finish().unwrap();
    assert_eq!((out.take(), late.take()), (vec![], vec![1]), "the window was published: it does not open again");
}

/// Puts a key out when nothing has come of it for a second.
#[derive(Clone, Default)]
struct Silent {
    deadline: Value<i64>,
}

impl ProcessFunction<u32, u32> for Silent {
    type Out = (u32, i64);

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("deadline", &mut self.deadline);
    }

    fn on_record(&mut self, _: u32, cx: &mut Context<'_, u32, Self::Out>) -> Result<()> {
        let deadline = cx.now().0 + 1_000;
        cx.timers().processing(Timestamp(deadline));
        self.deadline.set(cx, deadline)
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u32, Self::Out>) -> Result<()> {
        if self.deadline.get(cx)? == Some(&timer.time.0) {
            cx.emit((*cx.key(), timer.time.0));
        }
        Ok(())
    }
}

#[test]
fn the_clock_moves_by_hand_only() {
    let (input, out) = (TestInput::new(), Collect::new());
    let env = Env::new("silent");
    env.source("keys", input.clone()).key_by(|n| *n).process("silent", Silent::default()).sink("out", out.clone());
    let mut test = TestDriver::new(env).unwrap();
    test.send(&input, 0, 1).unwrap();
    test.advance(999 * MS).unwrap();
    test.send(&input, 0, 2).unwrap();
    assert!(out.is_empty());
    test.checkpoint().unwrap();
    test.restore().unwrap();
    assert_eq!(test.now(), Timestamp(999), "a crash does not turn the clock back");
    test.advance(MS).unwrap();
    assert_eq!(out.take(), [(1, 1_000)]);
    test.advance(SECOND).unwrap();
    assert_eq!(out.take(), [(2, 1_999)]);
}

#[test]
fn an_idle_input_stops_holding_event_time_back_when_the_clock_says_so() {
    let (shown, clicked, out) = (TestInput::new(), TestInput::new(), Collect::new());
    let env = Env::new("idle");
    let time = || Watermarks::monotonic().idle_after(30 * SECOND);
    let left = env.source("shown", shown.clone()).watermarks(time()).key_by(|n: &u32| *n);
    let right = env.source("clicked", clicked.clone()).watermarks(time()).key_by(|n: &u32| *n);
    left.left_interval_join(right, "join", IntervalJoin::between(0, 10), |_, shown, clicked| {
        (*shown, clicked.copied())
    })
    .sink("out", out.clone());
    let mut test = TestDriver::new(env).unwrap();
    test.send_all(&shown, [(0, 7), (100, 8)]).unwrap();
    test.advance(29 * SECOND).unwrap();
    test.send(&shown, 101, 9).unwrap();
    assert!(out.is_empty());
    test.advance(SECOND).unwrap();
    assert_eq!(out.take(), [(7, None)]);
}

#[test]
fn lookups_that_wait_for_the_clock_are_part_of_the_checkpoint() {
    let (input, out) = (TestInput::new(), Collect::new());
    let asked = Arc::new(AtomicU32::new(0));
    let calls = asked.clone();
    let env = Env::new("lookups");
    env.source("numbers", input.clone())
        .async_map("double", Lookup::ordered().retry(Retry::exponential(3, SECOND)), move |n: u32| {
            let first = calls.fetch_add(1, Relaxed) == 0;
            async move { if first { Err(std::io::Error::other("down")) } else { Ok(n * 2) } }
        })
        .sink("out", out.clone());
    let mut test = TestDriver::new(env).unwrap();
    test.send(&input, 0, 21).unwrap();
    assert!(out.is_empty());
    assert_eq!(test.finish().unwrap_err().kind(), ErrorKind::Unavailable, "it waits for the clock");
    test.restore().unwrap();
    assert_eq!((out.take(), asked.load(Relaxed)), (vec![42], 2), "asked again at once");
    test.finish().unwrap();
}

#[test]
fn a_failed_pipeline_says_why_and_can_be_restored() {
    let (input, out) = (TestInput::new(), Collect::new());
    let broken = Arc::new(AtomicU32::new(1));
    let env = Env::new("fails");
    let switch = broken.clone();
    let checked = env.source("numbers", input.clone()).try_map(move |n: u32| match switch.load(Relaxed) {
        1 if n == 13 => Err("thirteen"),
        _ => Ok(n),
    });
    checked.sink("out", out.clone());
    let mut test = TestDriver::new(env).unwrap();
    let error = test.send(&input, 0, 13).unwrap_err();
    assert!(error.to_string().contains("thirteen"), "{error}");
    let over = test.advance(MS).unwrap_err();
    assert!(over.message().contains("restore"), "{over}");
    broken.store(0, Relaxed);
    test.restore().unwrap();
    assert_eq!(out.take(), [13]);
    assert_eq!(test.status().state, JobState::Running);
}

#[test]
fn another_version_of_the_program_takes_the_state_over_or_is_refused() {
    let (input, out) = (TestInput::new(), Collect::new());
    let mut test = TestDriver::new(sums(&input, &out)).unwrap();
    test.send(&input, 0, (1, 3)).unwrap();
    test.checkpoint().unwrap();
    let renamed = || {
        let env = Env::new("sums");
        let pairs = env.source("pairs", input.clone()).key_by(|pair| pair.0);
        pairs.reduce("totals", |sum, pair| sum.1 += pair.1).sink("out", out.clone());
        env
    };
    let error = test.restore_as(renamed()).unwrap_err();
    assert!(error.message().contains("\"sums\"") && error.message().contains("allow_dropped"), "{error}");
    let with_map = Env::new("sums");
    let pairs = with_map.source("pairs", input.clone()).map(|(key, n)| (key, n * 10)).key_by(|pair| pair.0);
    pairs.reduce("sums", |sum, pair| sum.1 += pair.1).sink("out", out.clone());
    test.restore_as(with_map).unwrap();
    out.take();
    test.send(&input, 1, (1, 4)).unwrap();
    assert_eq!(out.take(), [(1, 43)]);
}

#[test]
fn equal_seeds_give_equal_output_whatever_the_workers() {
    let run = |seed| {
        let (input, out) = (TestInput::with_splits(3), Collect::new());
        let mut test = TestDriver::seeded(sums(&input, &out).workers(3), seed).unwrap();
        (0..30u32).for_each(|n| test.send_to(&input, n % 3, [(i64::from(n), ((n % 7) as u8, n))]).unwrap());
        test.finish().unwrap();
        out.take()
    };
    assert_eq!(run(1), run(1));
    assert_eq!(run(1).len(), 30);
}

#[test]
fn what_cannot_be_driven_by_hand_is_refused() {
    let (used, unused, out) = (TestInput::new(), TestInput::<(u8, u32)>::new(), Collect::new());
    let mut test = TestDriver::new(sums(&used, &out)).unwrap();
    let error = test.watermark(&unused, 5).unwrap_err();
    assert!(error.message().contains("no source"), "{error}");
    let error = test.send_to(&used, 1, [(0, (1, 1))]).unwrap_err();
    assert!(error.message().contains("with_splits"), "{error}");
    let endless = Env::new("endless");
    endless.source("numbers", Generator::new(|n| n)).sink("out", mailer_runtime::Blackhole);
    let error = TestDriver::new(endless).err().unwrap();
    assert!(error.message().contains("TestInput"), "{error}");
}
