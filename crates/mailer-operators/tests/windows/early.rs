//! Results before the end, triggers, and windows over processing time.

use crate::{by_key, entries, ms, pair, record};
use mailer_core::TimeWindow;
use mailer_operators::harness::{Harness, Input, check_script};
use mailer_operators::{Emit, Firing, Global, Session, Sliding, Tumbling, Windowed, Windows};

fn result<T>(
    key: &str,
    (start, end): (i64, i64),
    value: T,
    firing: Firing,
    revision: u32,
) -> (i64, Windowed<String, T>) {
    (end - 1, Windowed { key: key.into(), window: TimeWindow::new(start, end), value, firing, revision })
}

#[test]
fn early_results_by_number_of_records() {
    let emit = Emit::Updates { every: None, records: Some(2) };
    let script = [
        record(1, "k", 1),
        record(2, "k", 1),
        record(3, "other", 1),
        record(4, "k", 1),
        record(5, "k", 1),
        record(6, "k", 1),
        Input::Watermark(10),
    ];
    let expected = [
        result("k", (0, 10), 2, Firing::Early, 0),
        result("k", (0, 10), 4, Firing::Early, 1),
        result("k", (0, 10), 5, Firing::OnTime, 2),
        result("other", (0, 10), 1, Firing::OnTime, 0),
    ];
    check_script(by_key(Windows::of(Tumbling::of(ms(10))).emit(emit).count("w")), &script, &expected).unwrap();
    let expected: Vec<_> = expected.into_iter().map(|(_, all)| all.revision).collect();
    assert_eq!(expected, [0, 1, 2, 0]);
}

#[test]
fn early_results_by_processing_time_are_of_what_has_changed() {
    let emit = Emit::Updates { every: Some(ms(100)), records: None };
    let script = [
        Input::Time(50),
        record(7, "k", 1),
        Input::Time(99),
        Input::Time(100),
        Input::Time(250),
        record(3, "k", 1),
        Input::Time(310),
    ];
    let expected = [
        result("k", (0, 10), 1, Firing::Early, 0),
        result("k", (5, 15), 1, Firing::Early, 0),
        result("k", (-5, 5), 1, Firing::Early, 0),
        result("k", (0, 10), 2, Firing::Early, 1),
    ];
    check_script(by_key(Windows::of(Sliding::of(ms(10), ms(5))).emit(emit).count("w")), &script, &expected).unwrap();
    let script = [record(0, "k", 1), Input::Time(100), record(5, "k", 1), Input::Time(200), Input::Watermark(15)];
    let expected = [
        result("k", (0, 10), 1, Firing::Early, 0),
        result("k", (0, 15), 2, Firing::Early, 1),
        result("k", (0, 15), 2, Firing::OnTime, 2),
    ];
    check_script(by_key(Windows::of(Session::gap(ms(10))).emit(emit).count("w")), &script, &expected).unwrap();
}

#[test]
fn processing_time_decides_where_a_record_belongs() {
    let windows = || by_key(Windows::of(Tumbling::of(ms(10))).over_processing_time().count("w"));
    let script = [
        Input::Time(3),
        record(1_000, "k", 1),
        Input::Watermark(2_000),
        record(5, "k", 1),
        Input::Time(10),
        record(7, "k", 1),
        Input::Time(12),
        Input::Watermark(i64::MAX),
    ];
    let expected = [result("k", (0, 10), 2, Firing::OnTime, 0), result("k", (10, 20), 1, Firing::OnTime, 0)];
    check_script(windows(), &script, &expected).unwrap();

    let mut harness = Harness::new(windows()).unwrap();
    harness.time(25).unwrap();
    harness.record(0, pair("k", 1)).unwrap();
    harness.time(12).unwrap(); // a clock that is put back
    harness.record(0, pair("k", 1)).unwrap();
    harness.time(30).unwrap();
    let out: Vec<_> = harness.take_output().into_iter().map(|r| (r.value.window.start.0, r.value.value)).collect();
    assert_eq!(out, [(20, 2)]);
    assert_eq!(entries(&mut harness), 0);
}

#[test]
fn sessions_and_sliding_windows_over_processing_time() {
    let script =
        [Input::Time(0), record(0, "k", 1), Input::Time(8), record(0, "k", 1), Input::Time(17), Input::Time(18)];
    let session = Windows::of(Session::gap(ms(10))).over_processing_time().count("w");
    check_script(by_key(session), &script, &[result("k", (0, 18), 2, Firing::OnTime, 0)]).unwrap();
    let expected = [
        result("k", (-5, 5), 1, Firing::OnTime, 0),
        result("k", (0, 10), 2, Firing::OnTime, 0),
        result("k", (5, 15), 1, Firing::OnTime, 0),
    ];
    let sliding = Windows::of(Sliding::of(ms(10), ms(5))).over_processing_time().count("w");
    check_script(by_key(sliding), &script, &expected).unwrap();
}

fn global(time: i64, key: &str, value: u64, firing: Firing, revision: u32) -> (i64, Windowed<String, u64>) {
    (time, Windowed { key: key.into(), window: TimeWindow::ALL, value, firing, revision })
}

#[test]
fn global_windows_by_number_of_records() {
    let script = [
        record(5, "k", 1),
        record(3, "k", 1),
        record(4, "other", 1),
        record(6, "k", 1),
        Input::Watermark(100),
        record(7, "k", 1),
        record(8, "k", 1),
        Input::Watermark(i64::MAX),
    ];
    let expected = [
        global(5, "k", 2, Firing::Early, 0),
        global(7, "k", 4, Firing::Early, 1),
        global(8, "k", 5, Firing::OnTime, 2),
        global(4, "other", 1, Firing::OnTime, 0),
    ];
    check_script(by_key(Windows::of(Global::records(2)).count("w")), &script, &expected).unwrap();
    let expected = [
        global(5, "k", 2, Firing::OnTime, 0),
        global(7, "k", 2, Firing::OnTime, 0),
        global(8, "k", 1, Firing::OnTime, 0),
        global(4, "other", 1, Firing::OnTime, 0),
    ];
    check_script(by_key(Windows::of(Global::records(2).purging()).count("w")), &script, &expected).unwrap();
}

#[test]
fn global_windows_by_processing_time() {
    let script = [
        Input::Time(1_005),
        record(1, "b", 1),
        record(2, "a", 1),
        Input::Time(1_009),
        Input::Time(1_010),
        Input::Time(1_020),
        record(3, "a", 1),
        Input::Time(1_030),
    ];
    let expected =
        [global(2, "a", 1, Firing::Early, 0), global(1, "b", 1, Firing::Early, 0), global(3, "a", 2, Firing::Early, 1)];
    check_script(by_key(Windows::of(Global::every(ms(10))).count("w")), &script, &expected).unwrap();
}

#[test]
fn the_end_of_input_leaves_no_global_window() {
    let mut harness = Harness::new(by_key(Windows::of(Global::records(2)).count("w"))).unwrap();
    harness.record(1, pair("k", 1)).unwrap();
    harness.record(1, pair("k", 1)).unwrap(); // put out, and nothing new since
    assert_eq!(entries(&mut harness), 1);
    harness.end().unwrap();
    assert_eq!(harness.take_output().len(), 1);
    assert_eq!(entries(&mut harness), 0);
}
