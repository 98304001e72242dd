//! Windows in whole pipelines: through exchanges, beside late records, over crashes, and in the plan.

use mailer_runtime::testing::{Outcome, run_seeded};
use mailer_runtime::{
    Collect, Emit, Env, FileStorage, Generator, Global, Session, SideTag, SliceSource, Sliding, Tumbling, Watermarks,
    Windowed,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// User, time and amount of the `n`th event: up to 40 ms out of order.
type Event = (u64, i64, u64);

fn event(n: u64) -> Event {
    let scrambled = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    (scrambled % 7, (n / 4) as i64 + (scrambled / 7 % 40) as i64, scrambled % 100)
}

/// A window's key, bounds and value.
type Result = (u64, i64, i64, u64);

fn result(windowed: Windowed<u64, u64>) -> Result {
    (windowed.key, windowed.window.start.0, windowed.window.end.0, windowed.value)
}

/// Sums over windows of `size` every `slide`, computed from all events at once.
fn sums(events: u64, size: i64, slide: i64) -> BTreeSet<Result> {
    let mut sums = BTreeMap::new();
    for (user, time, amount) in (0..events).map(event) {
        let starts = (time - size + 1..=time).filter(|start| start.rem_euclid(slide) == 0);
        starts.for_each(|start| *sums.entry((user, start)).or_insert(0) += amount);
    }
    sums.into_iter().map(|((user, start), sum)| (user, start, start + size, sum)).collect()
}

/// Sums over sessions, from the sorted events.
fn session_sums(events: u64, gap: i64) -> BTreeSet<Result> {
    let mut sorted: Vec<Event> = (0..events).map(event).filter(in_session).collect();
    sorted.sort_unstable();
    let mut sessions: Vec<Result> = Vec::new();
    for (user, time, amount) in sorted {
        match sessions.last_mut() {
            Some(last) if last.0 == user && time < last.2 => (last.2, last.3) = (time + gap, last.3 + amount),
            _ => sessions.push((user, time, time + gap, amount)),
        }
    }
    sessions.into_iter().collect()
}

/// Leaves silences.
fn in_session((user, time, _): &Event) -> bool {
    (time / 100 + *user as i64) % 3 != 0
}

fn by_time() -> Watermarks<impl mailer_runtime::WatermarkGenerator<Event>, impl mailer_operators::Stamp<Event>> {
    Watermarks::bounded(ms(45)).timestamps(|event: &Event| event.1).emit_every(Duration::ZERO)
}

const EVENTS: u64 = 20_000;

#[test]
fn windows_are_complete_at_every_number_of_workers() {
    for workers in [1, 3] {
        let (tumbling, sliding, sessions) = (Collect::new(), Collect::new(), Collect::new());
        let env = Env::new("windows").workers(workers);
        let events = env.source("events", Generator::new(event).count(EVENTS)).watermarks(by_time());
        let keyed = || events.clone().key_by(|event| event.0).partitions(workers);
        let sum = |total: &mut u64, event: Event| *total += event.2;
        let add = |total: &mut u64, later: u64| *total += later;
        let own = |_: &u64, total| total;
        let by_size = keyed().window(Tumbling::of(ms(50)));
        by_size.aggregate("tumbling", || 0, sum, add, own).map(result).sink("a", tumbling.clone());
        let by_slide = keyed().window(Sliding::of(ms(50), ms(20)));
        by_slide.aggregate("sliding", || 0, sum, add, own).map(result).sink("b", sliding.clone());
        let by_gap = events.clone().filter(in_session).key_by(|event| event.0).window(Session::gap(ms(30)));
        by_gap.aggregate("sessions", || 0, sum, add, own).map(result).sink("c", sessions.clone());
        drop(events);
        env.execute().unwrap();
        let set = |out: Collect<Result>| {
            let all: Vec<Result> = out.take();
            let set: BTreeSet<Result> = all.iter().copied().collect();
            assert_eq!(set.len(), all.len(), "one result per key and window");
            set
        };
        assert_eq!(set(tumbling), sums(EVENTS, 50, 50), "{workers} workers");
        assert_eq!(set(sliding), sums(EVENTS, 50, 20), "{workers} workers");
        assert_eq!(set(sessions), session_sums(EVENTS, 30), "{workers} workers");
    }
}

/// A pipeline of sliding windows, and one of sessions, that crashes again and again.
fn crashing(folder: &std::path::Path, windows: &Collect<Result>, sessions: &Collect<Result>) -> Env {
    let env = Env::new("crashing").workers(2).checkpointing(ms(1), FileStorage::new(folder));
    let events = env.source("events", Generator::new(event).count(EVENTS)).watermarks(by_time());
    let sum = |total: &mut u64, event: Event| *total += event.2;
    let add = |total: &mut u64, later: u64| *total += later;
    let by_slide = events.clone().key_by(|event| event.0).window(Sliding::of(ms(50), ms(20)));
    by_slide.aggregate("sliding", || 0, sum, add, |_, total| total).map(result).sink("windows out", windows.clone());
    let by_gap = events.clone().filter(in_session).key_by(|event| event.0).window(Session::gap(ms(30)));
    by_gap.aggregate("sessions", || 0, sum, add, |_, total| total).map(result).sink("sessions out", sessions.clone());
    env
}

/// A sink that is written to again after a crash shows whether a window was ever put out with another value: reopened
/// after it had been published, or restored in part.
#[test]
fn a_window_has_one_value_whatever_crashes() {
    let (expected, expected_sessions) = (sums(EVENTS, 50, 20), session_sums(EVENTS, 30));
    let mut restored = 0;
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let (mut all, mut all_sessions) = (BTreeSet::new(), BTreeSet::new());
        let mut finished = false;
        for attempt in 0..40 {
            let (windows, sessions) = (Collect::new(), Collect::new());
            let env = crashing(folder.path(), &windows, &sessions);
            let run = run_seeded(env, seed * 100 + attempt, (attempt < 39).then_some(150 + 40 * attempt)).unwrap();
            restored += u32::from(run.status.recovery.as_ref().is_some_and(|recovery| recovery.from.is_some()));
            all.extend(windows.take());
            all_sessions.extend(sessions.take());
            finished = run.outcome == Ok(Outcome::Finished);
            if finished {
                break;
            }
            assert_eq!(run.outcome, Ok(Outcome::Crashed));
        }
        assert!(finished, "seed {seed}");
        assert_eq!(all, expected, "seed {seed}");
        assert_eq!(all_sessions, expected_sessions, "seed {seed}");
    }
    assert!(restored > 20, "runs began at a checkpoint: {restored}");
}

/// User, beginning of the window, and the two greatest amounts.
type Best = (u64, i64, Vec<u64>);

fn best(env: &Env, out: &Collect<Best>) {
    env.source("events", Generator::new(event).count(EVENTS))
        .watermarks(by_time())
        .key_by(|event| event.0)
        .window(Sliding::of(ms(50), ms(20)))
        .top_n("best", 2, |a, b| b.2.cmp(&a.2))
        .map(|best| (best.key, best.window.start.0, best.value.into_iter().map(|event| event.2).collect()))
        .sink("out", out.clone());
}

#[test]
fn the_best_of_a_window_are_those_of_the_sorted_input_whatever_crashes() {
    let mut amounts: BTreeMap<(u64, i64), Vec<u64>> = BTreeMap::new();
    for (user, time, amount) in (0..EVENTS).map(event) {
        let starts = (time - 49..=time).filter(|start| start.rem_euclid(20) == 0);
        starts.for_each(|start| amounts.entry((user, start)).or_default().push(amount));
    }
    let two = |mut amounts: Vec<u64>| {
        amounts.sort_unstable_by(|a, b| b.cmp(a));
        amounts.into_iter().take(2).collect()
    };
    let expected: BTreeSet<Best> =
        amounts.into_iter().map(|((user, start), amounts)| (user, start, two(amounts))).collect();

    let (out, env) = (Collect::new(), Env::new("best").workers(3));
    best(&env, &out);
    env.execute().unwrap();
    let seen: Vec<Best> = out.take();
    assert_eq!(seen.len(), expected.len(), "one result per key and window");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);

    let folder = tempfile::tempdir().unwrap();
    let mut restored = 0;
    for attempt in 0..40 {
        let env = Env::new("best").workers(2).checkpointing(ms(1), FileStorage::new(folder.path()));
        best(&env, &out);
        let run = run_seeded(env, attempt, (attempt < 39).then_some(150 + 40 * attempt)).unwrap();
        restored += u32::from(run.status.recovery.as_ref().is_some_and(|recovery| recovery.from.is_some()));
        if run.outcome == Ok(Outcome::Finished) {
            break;
        }
        assert!(run.outcome == Ok(Outcome::Crashed) && attempt < 39, "{:?}", run.outcome);
    }
    assert!(restored >= 2, "{restored} restores");
    assert_eq!(out.take().into_iter().collect::<BTreeSet<Best>>(), expected, "with crashes");
}

#[test]
fn late_records_are_counted_and_leave_by_the_side() {
    let (out, aside) = (Collect::new(), Collect::new());
    let late = SideTag::new("late");
    let env = Env::new("late").workers(1);
    // The last one comes when its window is over, allowed lateness and all.
    let times = (0..5_000i64).chain([10]);
    let numbers = env.source("numbers", SliceSource::new(times));
    let timed = numbers.watermarks(Watermarks::bounded(ms(0)).timestamps(|n: &i64| *n).emit_every(Duration::ZERO));
    let windows = timed.key_by(|_| 0u64).window(Tumbling::of(ms(100))).allowed_lateness(ms(50)).late_to(&late);
    let (counts, late) = windows.count("counts").map(result).side_output(&late);
    counts.sink("out", out.clone());
    late.sink("late", aside.clone());
    let run = run_seeded(env, 3, None).unwrap();
    assert_eq!(run.outcome, Ok(Outcome::Finished));
    let counts: Vec<Result> = out.take();
    assert_eq!(counts, (0..50).map(|n| (0, n * 100, n * 100 + 100, 100)).collect::<Vec<_>>());
    let late: Vec<i64> = aside.take();
    assert_eq!(late, [10]);
}

#[test]
fn settings_that_cannot_work_are_reported_together() {
    let env = Env::new("refused");
    let numbers = env.source("numbers", SliceSource::new(0..4i64)).watermarks(Watermarks::monotonic());
    let keyed = || numbers.clone().key_by(|n| *n);
    keyed().window(Tumbling::of(ms(0))).count("no size").sink("a", Collect::new());
    keyed().window(Sliding::of(ms(5), ms(6))).count("gaps").sink("b", Collect::new());
    keyed()
        .window(Global::records(1))
        .emit(Emit::Updates { every: None, records: None })
        .count("both")
        .sink("c", Collect::new());
    drop(numbers);
    let error = env.execute().unwrap_err();
    let said = error.to_string();
    for problem in ["the size is zero: give at least 1 ms", "is longer than the size of 5ms", "leave `emit` out"] {
        assert!(said.contains(problem), "{said}");
    }
}
