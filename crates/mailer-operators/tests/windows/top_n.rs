//! The best values of a window: ties, merged parts, late records, updates, and a checkpoint at every point.

use crate::{Pair, by_key, entries, last, late_tag, ms, pair, record};
use mailer_core::{Keyed, TimeWindow};
use mailer_operators::harness::{Harness, Input, check_script};
use mailer_operators::{Assigner, Emit, Firing, Operator, Session, Sliding, Tumbling, Windowed, Windows};
use std::cmp::Ordering;

/// By the number alone in tens, so that there are ties: the greater is better.
fn greater(a: &Pair, b: &Pair) -> Ordering {
    (b.1 / 10).cmp(&(a.1 / 10))
}

fn best<W: Assigner>(windows: Windows<Pair, W>, n: usize) -> impl Operator<Pair, Out = Windowed<String, Vec<Pair>>> {
    by_key(windows.top_n("best", n, greater))
}

fn pairs(values: &[u32]) -> Vec<Pair> {
    values.iter().map(|value| pair("k", *value)).collect()
}

fn values(result: &Windowed<String, Vec<Pair>>) -> Vec<u32> {
    result.value.iter().map(|pair| pair.1).collect()
}

#[test]
fn of_equals_the_one_that_came_first_is_better() {
    let script = [
        record(1, "k", 51),
        record(2, "k", 90),
        record(3, "k", 52),
        record(4, "other", 1),
        record(5, "k", 10),
        record(6, "k", 93),
        Input::Watermark(10),
        record(10, "k", 1),
    ];
    let others = vec![pair("other", 1)];
    let expected = [last("k", 0, 10, pairs(&[90, 93, 51])), last("other", 0, 10, others)];
    check_script(best(Windows::of(Tumbling::of(ms(10))), 3), &script, &expected).unwrap();
}

/// Panes are merged in the order of time, whatever came first; every window that has a pane ranks it.
#[test]
fn sliding_windows_merge_the_rankings_of_their_panes() {
    let script = [record(7, "k", 12), record(2, "k", 11), record(8, "k", 95), Input::Watermark(15)];
    let expected =
        [last("k", -5, 5, pairs(&[11])), last("k", 0, 10, pairs(&[95, 11])), last("k", 5, 15, pairs(&[95, 12]))];
    check_script(best(Windows::of(Sliding::of(ms(10), ms(5))), 2), &script, &expected).unwrap();
}

#[test]
fn sessions_that_become_one_have_one_ranking() {
    let script =
        [record(50, "k", 21), record(0, "k", 22), record(25, "k", 90), record(51, "k", 23), Input::Watermark(81)];
    let expected = [last("k", 0, 81, pairs(&[90, 22]))];
    check_script(best(Windows::of(Session::gap(ms(30))), 2), &script, &expected).unwrap();
}

/// Early, at the end, and for a record within the lateness; what comes after that goes aside.
#[test]
fn a_ranking_is_put_out_again_when_a_late_record_comes() {
    let windows = || {
        let emit = Emit::Updates { every: None, records: Some(2) };
        Windows::of(Tumbling::of(ms(10))).emit(emit).allowed_lateness(ms(5)).late_to(&late_tag())
    };
    let script = [
        record(1, "k", 50),
        record(2, "k", 70),
        record(3, "k", 60),
        Input::Watermark(12),
        record(4, "k", 90),
        Input::Watermark(15),
        record(5, "k", 99),
    ];
    let result = |value: &[u32], firing, revision| {
        let (key, window, value) = ("k".to_owned(), TimeWindow::new(0, 10), pairs(value));
        (9, Windowed { key, window, value, firing, revision })
    };
    let expected =
        [result(&[70, 50], Firing::Early, 0), result(&[70, 60], Firing::OnTime, 1), result(&[90, 70], Firing::Late, 2)];
    check_script(best(windows(), 2), &script, &expected).unwrap();

    let mut harness = Harness::new(best(windows(), 2)).unwrap();
    harness.keep_side(&late_tag());
    harness.feed(script).unwrap();
    let late: Vec<u32> = harness.take_side(&late_tag()).into_iter().map(|record| record.value.1).collect();
    assert_eq!((late, harness.counted("best", "late")), (vec![99], 1));
    assert_eq!(entries(&mut harness), 0, "what can no longer change is freed");
}

#[test]
fn an_open_ranking_is_one_entry_whatever_came_and_goes_on_after_a_crash() {
    let mut harness = Harness::new(best(Windows::of(Tumbling::of(ms(10))), 3)).unwrap();
    for value in [10, 30, 20, 90, 40] {
        harness.record(1, pair("k", value)).unwrap();
    }
    assert_eq!(entries(&mut harness), 1);
    let snapshot = harness.snapshot().unwrap();
    harness.record(2, pair("k", 95)).unwrap(); // lost, and not read again
    harness.restore(&snapshot).unwrap();
    harness.record(2, pair("k", 50)).unwrap();
    harness.end().unwrap();
    let out: Vec<_> = harness.take_output().iter().map(|record| values(&record.value)).collect();
    assert_eq!(out, [[90, 50, 40]]);
}

#[test]
fn a_ranking_of_nothing_is_a_problem_of_the_plan() {
    let windows = Windows::of(Tumbling::of(ms(0))).top_n::<String, _>("none", 0, greater);
    let mut described = Vec::new();
    Operator::<Keyed<String, Pair>>::describe(&windows, &mut described);
    let problems = described[0].problems.join("; ");
    assert!(problems.contains("size is zero") && problems.contains("a ranking of 0 values is empty"), "{problems}");
}
