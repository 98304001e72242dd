//! What is late, what becomes of it, and when a window is freed.

use crate::{Pair, by_key, entries, last, late_tag, ms, pair};
use mailer_core::TimeWindow;
use mailer_operators::harness::Harness;
use mailer_operators::{Emit, Firing, Operator, Session, Sliding, Tumbling, Windowed, Windows};

fn values<Op: Operator<Pair, Out = Windowed<String, u64>>>(harness: &mut Harness<Pair, Op>) -> Vec<(i64, i64, u64)> {
    let result = |r: mailer_core::Record<Op::Out>| (r.value.window.start.0, r.value.window.end.0, r.value.value);
    harness.take_output().into_iter().map(result).collect()
}

#[test]
fn a_record_at_the_watermark_is_on_time() {
    let mut harness = Harness::new(by_key(Windows::of(Tumbling::of(ms(10))).count("w"))).unwrap();
    harness.watermark(10).unwrap();
    harness.record(10, pair("k", 1)).unwrap();
    harness.end().unwrap();
    assert_eq!(values(&mut harness), [(10, 20, 1)]);
    assert_eq!(harness.counted("w", "late"), 0);
}

#[test]
fn the_end_of_the_window_decides_not_the_time_of_the_record() {
    let windows = Windows::of(Tumbling::of(ms(10))).late_to(&late_tag()).count("w");
    let mut harness = Harness::new(by_key(windows)).unwrap();
    harness.keep_side(&late_tag());
    harness.watermark(19).unwrap();
    harness.record(10, pair("k", 1)).unwrap(); // nine behind the watermark, and its window is open
    harness.record(9, pair("k", 2)).unwrap();
    harness.watermark(20).unwrap();
    harness.record(10, pair("k", 3)).unwrap();
    assert_eq!(values(&mut harness), [(10, 20, 1)]);
    let late: Vec<_> = harness.take_side(&late_tag()).into_iter().map(|r| (r.timestamp.0, r.value.1)).collect();
    assert_eq!(late, [(9, 2), (10, 3)]);
    assert_eq!(harness.counted("w", "late"), 2);
}

#[test]
fn a_record_counts_in_those_of_its_sliding_windows_that_are_open() {
    let mut harness = Harness::new(by_key(Windows::of(Sliding::of(ms(10), ms(5))).count("w"))).unwrap();
    harness.watermark(12).unwrap();
    harness.record(7, pair("k", 1)).unwrap(); // [0,10) is over, [5,15) is not
    harness.record(4, pair("k", 1)).unwrap(); // late
    harness.end().unwrap();
    assert_eq!(values(&mut harness), [(5, 15, 1)]);
    assert_eq!(harness.counted("w", "late"), 1);
}

#[test]
fn a_late_record_does_not_reopen_a_window_that_was_published_before_the_checkpoint() {
    let windows = || by_key(Windows::of(Sliding::of(ms(10), ms(5))).late_to(&late_tag()).count("w"));
    let mut harness = Harness::new(windows()).unwrap();
    harness.keep_side(&late_tag());
    harness.record(7, pair("k", 1)).unwrap();
    harness.watermark(11).unwrap();
    assert_eq!(values(&mut harness), [(0, 10, 1)]);
    let snapshot = harness.snapshot().unwrap();
    harness.restore(&snapshot).unwrap();
    harness.record(3, pair("k", 2)).unwrap();
    harness.end().unwrap();
    assert_eq!(values(&mut harness), [(5, 15, 1)], "not [0,10) again, though its pane is still there");
    assert_eq!(harness.take_side(&late_tag()).len(), 1);
}

#[test]
fn a_final_result_waits_for_the_lateness_and_holds_event_time_back() {
    let windows = Windows::of(Tumbling::of(ms(10))).allowed_lateness(ms(5)).count("w");
    let mut harness = Harness::new(by_key(windows)).unwrap();
    harness.record(1, pair("k", 1)).unwrap();
    harness.watermark(14).unwrap();
    assert_eq!(harness.output_watermark(), 9);
    harness.record(2, pair("k", 1)).unwrap();
    assert_eq!(values(&mut harness), []);
    harness.watermark(15).unwrap();
    assert_eq!(harness.output_watermark(), 10);
    assert_eq!(harness.take_output()[0].timestamp.0, 9, "on time for what follows until now");
    assert_eq!(entries(&mut harness), 0);
    harness.end().unwrap();
    assert_eq!(harness.output_watermark(), i64::MAX);
}

#[test]
fn updates_number_their_results_and_end_with_the_lateness() {
    let emit = Emit::Updates { every: None, records: None };
    let windows = Windows::of(Tumbling::of(ms(10))).allowed_lateness(ms(5)).emit(emit).count("w");
    let mut harness = Harness::new(by_key(windows)).unwrap();
    harness.record(1, pair("k", 1)).unwrap();
    harness.watermark(12).unwrap();
    assert_eq!(harness.output_watermark(), 12);
    let snapshot = harness.snapshot().unwrap();
    harness.restore(&snapshot).unwrap();
    harness.record(2, pair("k", 1)).unwrap();
    harness.record(3, pair("new", 1)).unwrap();
    harness.watermark(15).unwrap();
    harness.record(4, pair("k", 1)).unwrap();
    let window = TimeWindow::new(0, 10);
    let result = |key: &str, value, firing, revision| Windowed { key: key.into(), window, value, firing, revision };
    let out: Vec<_> = harness.take_output().into_iter().map(|record| record.value).collect();
    let (on_time, late) = (result("k", 1, Firing::OnTime, 0), result("k", 2, Firing::Late, 1));
    assert_eq!(out, [on_time, late, result("new", 1, Firing::Late, 0)]);
    assert_eq!(harness.counted("w", "late"), 1);
    assert_eq!(entries(&mut harness), 0);
}

/// A late record makes a closed session longer, so that it ends a second time: at its new end, not when the lateness of
/// its old one is over.
#[test]
fn a_session_that_goes_on_after_its_end_ends_again() {
    let emit = Emit::Updates { every: None, records: None };
    let windows = Windows::of(Session::gap(ms(10))).allowed_lateness(ms(1_000)).emit(emit).count("w");
    let mut harness = Harness::new(by_key(windows)).unwrap();
    harness.record(0, pair("k", 1)).unwrap();
    harness.watermark(11).unwrap();
    harness.record(5, pair("k", 1)).unwrap();
    harness.watermark(15).unwrap();
    let out: Vec<_> = harness.take_output().into_iter().map(|r| (r.value.window.end.0, r.value.firing)).collect();
    assert_eq!(out, [(10, Firing::OnTime), (15, Firing::OnTime)]);
    harness.watermark(1_015).unwrap();
    assert_eq!(entries(&mut harness), 0);
}

#[test]
fn an_inclusive_session_takes_a_record_at_its_end_whatever_the_watermarks() {
    let windows = || by_key(Windows::of(Session::gap(ms(10)).inclusive()).count("w"));
    for watermarks in [vec![], vec![10], vec![5, 9, 10]] {
        let mut harness = Harness::new(windows()).unwrap();
        harness.record(0, pair("k", 1)).unwrap();
        watermarks.iter().for_each(|mark| harness.watermark(*mark).unwrap());
        assert!(harness.output_watermark() < 10, "its result at 9 is still to come");
        harness.record(10, pair("k", 1)).unwrap();
        harness.watermark(21).unwrap();
        let out: Vec<_> = harness.take_output().into_iter().map(|r| (r.timestamp.0, r.value)).collect();
        assert_eq!(out, [last("k", 0, 20, 2)]);
    }
}
