//! Watermarks of a source task: who holds them, who is idle, who waits.

use super::*;
use mailer_core::Record;
use mailer_operators::Watermarks;

const MS: Duration = Duration::from_millis(1);

fn split(index: u32) -> SplitId {
    SplitId::new(format!("s-{index}"), index)
}

fn with_splits(strategy: Watermarks, splits: u32) -> EventTime<()> {
    let (clocks, pacing) = strategy.emit_every(Duration::ZERO).erase::<()>();
    let mut time = EventTime::new(clocks, pacing);
    for index in 0..splits {
        time.add(&split(index), &[]).unwrap();
    }
    time
}

fn read(time: &mut EventTime<()>, index: u32, timestamp: i64) {
    time.on_batch(&split(index), &mut vec![Record::new(Timestamp(timestamp), ())]);
}

fn mark(timestamp: i64) -> Option<Mark> {
    Some(Mark::Watermark(Watermark(Timestamp(timestamp))))
}

fn caught_up(_: &SplitId) -> SplitState {
    SplitState::CaughtUp
}

#[test]
fn the_slowest_split_holds_the_watermark_and_it_never_goes_back() {
    let mut time = with_splits(Watermarks::bounded(5 * MS), 2);
    read(&mut time, 0, 100);
    assert_eq!(time.look(MS, caught_up), None, "the other split has promised nothing");
    read(&mut time, 1, 50);
    assert_eq!(time.look(MS, caught_up), mark(45));
    read(&mut time, 1, 20);
    assert_eq!(time.look(MS, caught_up), None);
    read(&mut time, 1, 200);
    assert_eq!(time.look(MS, caught_up), mark(95));
}

/// Looks every millisecond; the time of the first mark, and the mark.
fn first_mark(time: &mut EventTime<()>, from: u32, state: impl Fn(&SplitId) -> SplitState) -> Option<(u32, Mark)> {
    (from..from + 200).find_map(|ms| time.look(ms * MS, &state).map(|mark| (ms, mark)))
}

#[test]
fn a_silent_split_stops_holding_the_watermark_back_and_may_come_back() {
    let mut time = with_splits(Watermarks::monotonic().idle_after(20 * MS), 2);
    read(&mut time, 0, 100);
    let (at, first) = first_mark(&mut time, 0, |id| match id.index {
        0 => SplitState::Reading,
        _ => SplitState::CaughtUp,
    })
    .unwrap();
    assert_eq!((at, Some(first)), (20, mark(100)));
    read(&mut time, 1, 30);
    assert_eq!(time.look(30 * MS, caught_up), None, "back, and behind: the watermark stays");
    read(&mut time, 0, 300);
    read(&mut time, 1, 130);
    assert_eq!(time.look(31 * MS, caught_up), mark(130));
}

/// FLINK-35886, FLINK-40234, FLINK-32496: idleness fired under backpressure or while paused, and good records came late.
#[test]
fn silence_counts_only_while_polled_caught_up_and_not_blocked() {
    let idle = || Watermarks::monotonic().idle_after(20 * MS);
    let not_caught_up = |id: &SplitId| if id.index == 1 { SplitState::Reading } else { SplitState::CaughtUp };
    let mut time = with_splits(idle(), 2);
    read(&mut time, 0, 100);
    assert_eq!(first_mark(&mut time, 0, not_caught_up), None, "there is something to read");

    let mut time = with_splits(idle(), 1);
    let blocked = (0..200).find_map(|ms| {
        time.interrupted();
        time.look(ms * MS, caught_up)
    });
    assert_eq!(blocked, None, "blocked downstream between any two looks");

    let mut time = with_splits(idle(), 1);
    assert_eq!(time.look(MS, caught_up), None);
    assert_eq!(time.look(60_000 * MS, caught_up), None, "a thread that was stuck for a minute looked twice");

    let mut time = with_splits(idle().align("g", MS), 2);
    read(&mut time, 0, 100);
    time.align(Watermark(Timestamp(0)));
    assert_eq!(first_mark(&mut time, 0, |_| SplitState::CaughtUp), mark(100).map(|mark| (20, mark)), "only split 1");
    time.splits.values().for_each(|split| assert!(!(split.paused && split.idle), "the paused one is not idle"));
}

#[test]
fn all_idle_is_told_once_and_waking_up_is_told() {
    let mut time = with_splits(Watermarks::monotonic().idle_after(20 * MS), 1);
    read(&mut time, 0, 7);
    assert_eq!(time.look(MS, caught_up), mark(7));
    let (at, idle) = first_mark(&mut time, 2, caught_up).unwrap();
    assert_eq!((at, idle), (21, Mark::Idle));
    assert_eq!(first_mark(&mut time, 22, caught_up), None);
    assert_eq!(
        first_mark(&mut time, 900, caught_up),
        Some((1_021, Mark::Idle)),
        "every second, for gates that doubt it"
    );
    read(&mut time, 0, 5);
    assert_eq!(time.look(1_100 * MS, caught_up), mark(7), "told again: the gates had stopped counting this input");
}

#[test]
fn a_task_without_splits_and_a_split_that_has_ended_hold_nothing_back() {
    assert_eq!(with_splits(Watermarks::monotonic(), 0).look(MS, caught_up), Some(Mark::Idle));
    let mut time = with_splits(Watermarks::monotonic(), 2);
    read(&mut time, 0, 9);
    let ended = |id: &SplitId| if id.index == 1 { SplitState::Ended } else { SplitState::Reading };
    assert_eq!(time.look(MS, ended), mark(9));
    assert_eq!(time.look(2 * MS, |_| SplitState::Ended), None, "not idle: the end of the task follows");
}

#[test]
fn a_restored_task_begins_with_what_it_had_sent() {
    let mut time = with_splits(Watermarks::bounded(5 * MS), 2);
    read(&mut time, 0, 100);
    read(&mut time, 1, 50);
    time.look(MS, caught_up);
    let saved = [time.save(&split(0)).unwrap(), time.save(&split(1)).unwrap()];
    let mut restored = with_splits(Watermarks::bounded(5 * MS), 0);
    for (index, saved) in saved.iter().enumerate() {
        restored.add(&split(index as u32), saved).unwrap();
    }
    assert_eq!(restored.restored(), Some(Watermark(Timestamp(45))));
    read(&mut restored, 1, 60);
    assert_eq!(restored.look(MS, caught_up), mark(55), "the generators go on");
}

#[test]
fn a_split_that_is_too_far_ahead_is_paused_until_the_others_follow() {
    let mut time = with_splits(Watermarks::monotonic().align("g", 10 * MS), 2);
    read(&mut time, 0, 100);
    read(&mut time, 1, 95);
    let slowest = time.slowest();
    assert_eq!(time.align(slowest), []);
    assert_eq!(time.align(Watermark(Timestamp(80))).len(), 2, "a split of another task is behind both");
    assert_eq!(time.align(Watermark(Timestamp(85))), [Pause { split: split(1), paused: false }]);
    assert_eq!(time.align(Watermark(Timestamp(90))), [Pause { split: split(0), paused: false }]);
}

/// One task on another number of workers: the mark of the task that was ahead is no promise of the other's split.
#[test]
fn splits_of_two_tasks_go_on_from_the_lesser_mark() {
    let saved_at = |index: u32, timestamp: i64| {
        let mut time = with_splits(Watermarks::monotonic(), 0);
        time.add(&split(index), &[]).unwrap();
        read(&mut time, index, timestamp);
        assert_eq!(time.look(MS, caught_up), mark(timestamp));
        time.save(&split(index)).unwrap()
    };
    let (ahead, behind) = (saved_at(0, 100), saved_at(1, 50));
    for order in [[0, 1], [1, 0]] {
        let mut together = with_splits(Watermarks::monotonic(), 0);
        for index in order {
            together.add(&split(index), if index == 0 { &ahead } else { &behind }).unwrap();
        }
        assert_eq!(together.restored(), Some(Watermark(Timestamp(50))));
        read(&mut together, 1, 80);
        assert_eq!(together.look(MS, caught_up), mark(80));
    }
}

#[test]
fn a_promise_moves_every_split_and_never_back() {
    let mut time = with_splits(Watermarks::monotonic(), 2);
    read(&mut time, 0, 70);
    assert_eq!(time.promise(MS, Watermark(Timestamp(40))), mark(40));
    assert_eq!(time.promise(MS, Watermark(Timestamp(30))), None);
    read(&mut time, 1, 60);
    assert_eq!(time.look(MS, caught_up), mark(60));
}
