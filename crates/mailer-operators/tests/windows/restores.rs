//! Open windows over a crash, and what is written for them.

use crate::{by_key, entries, last, ms, pair, record};
use mailer_operators::harness::{Harness, Input, check_script};
use mailer_operators::{Session, Sliding, Tumbling, Windows};

#[test]
fn sessions_merge_across_a_restore() {
    let visits = || by_key(Windows::of(Session::gap(ms(30))).reduce("visits", |a, b: (String, u32)| a.1 += b.1));
    let mut harness = Harness::new(visits()).unwrap();
    harness.record(0, pair("k", 1)).unwrap();
    harness.record(50, pair("k", 2)).unwrap();
    harness.watermark(20).unwrap();
    assert_eq!(entries(&mut harness), 2);
    let snapshot = harness.snapshot().unwrap();
    harness.restore(&snapshot).unwrap();
    harness.record(25, pair("k", 4)).unwrap();
    assert_eq!(entries(&mut harness), 1, "the two are one");
    let snapshot = harness.snapshot().unwrap();
    harness.restore(&snapshot).unwrap();
    harness.watermark(80).unwrap();
    let out: Vec<_> = harness.take_output().into_iter().map(|r| (r.timestamp.0, r.value)).collect();
    assert_eq!(out, [last("k", 0, 80, pair("k", 7))]);
    assert_eq!(entries(&mut harness), 0);
}

#[test]
fn a_session_that_begins_earlier_after_all_lies_under_its_new_start() {
    let visits = by_key(Windows::of(Session::gap(ms(10))).count("visits"));
    let script = [record(20, "k", 1), record(15, "k", 1), record(8, "k", 1), Input::Watermark(30)];
    check_script(visits, &script, &[last("k", 8, 30, 3)]).unwrap();
}

#[test]
fn a_window_that_opens_and_closes_between_two_barriers_is_never_written() {
    let mut harness = Harness::new(by_key(Windows::of(Tumbling::of(ms(10))).count("w"))).unwrap();
    for at in 0..100 {
        harness.record(at, pair("k", 1)).unwrap();
        harness.watermark(at).unwrap();
    }
    assert_eq!(harness.take_output().len(), 9);
    assert_eq!(entries(&mut harness), 1, "the open one");
    harness.watermark(100).unwrap();
    assert_eq!(entries(&mut harness), 0);
}

/// Beside the panes of a key group stands how far its windows are closed; both go when the last pane does.
#[test]
fn sliding_windows_leave_nothing_in_the_store() {
    let mut harness = Harness::new(by_key(Windows::of(Sliding::of(ms(10), ms(2))).count("w"))).unwrap();
    for at in 0..20 {
        harness.record(at, pair(["a", "b", "c"][at as usize % 3], 1)).unwrap();
        harness.watermark(at).unwrap();
        harness.snapshot().unwrap();
    }
    // Panes from 10 on, of [10,20) and later windows: 5, each with two of the three keys; and three groups.
    assert_eq!(harness.state_entries(), 10 + 3);
    harness.watermark(100).unwrap();
    assert_eq!(entries(&mut harness), 0);
}

#[test]
fn open_panes_of_other_settings_are_refused() {
    let of = |size| by_key(Windows::of(Tumbling::of(ms(size))).count("w"));
    let mut harness = Harness::new(of(10)).unwrap();
    harness.record(15, pair("k", 1)).unwrap();
    let snapshot = harness.snapshot().unwrap();
    let mut other = Harness::new(of(20)).unwrap();
    let error = other.restore(&snapshot).unwrap_err();
    assert_eq!(error.kind(), mailer_core::ErrorKind::InvalidPlan);
    assert!(error.to_string().contains("tumbling_window \"w\": the checkpoint has the open pane 10..20 ms"), "{error}");
}
