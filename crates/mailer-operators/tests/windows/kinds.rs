//! What is computed over windows, and settings that cannot work.

use crate::{Pair, by_key, last, late_tag, ms, record};
use mailer_core::{Either, Keyed};
use mailer_operators::harness::{Harness, Input, check_script};
use mailer_operators::{
    Assigner, Description, Emit, Global, KeyBy, Operator, Session, Sliding, Then, Tumbling, Windows,
};

#[test]
fn values_are_handed_over_pane_by_pane_and_then_as_they_came() {
    let script = [7, 3, 4, 8, 1].map(|time| record(time, "k", time as u32));
    let script = [script.as_slice(), &[Input::Watermark(10)]].concat();
    let values = |windows: Windows<Pair, Sliding>| {
        by_key(
            windows.process("w", |_: &String, _, values: Vec<Pair>| Some(values.iter().map(|pair| pair.1).collect())),
        )
    };
    let expected: [(i64, _); 2] = [last("k", -5, 5, vec![3u32, 4, 1]), last("k", 0, 10, vec![3, 4, 1, 7, 8])];
    check_script(values(Windows::of(Sliding::of(ms(10), ms(5)))), &script, &expected).unwrap();
}

/// Not commutative, and not equal when merged in another order.
#[test]
fn parts_are_merged_in_the_order_of_time() {
    let first_and_last = |windows: Windows<Pair, Sliding>| {
        by_key(windows.aggregate(
            "w",
            String::new,
            |text: &mut String, (_, value): Pair| text.push_str(&value.to_string()),
            |text: &mut String, later: String| text.push_str(&later),
            |_: &String, text| text,
        ))
    };
    let mut script: Vec<_> = (0..9).map(|time| record(time, "k", time as u32)).collect();
    script.push(Input::Watermark(9));
    let text = |start: i64, end, text: &str| last("k", start, end, text.to_owned());
    let expected = [
        text(-3, 1, "0"),
        text(-2, 2, "01"),
        text(-1, 3, "012"),
        text(0, 4, "0123"),
        text(1, 5, "1234"),
        text(2, 6, "2345"),
        text(3, 7, "3456"),
        text(4, 8, "4567"),
        text(5, 9, "5678"),
    ];
    check_script(first_and_last(Windows::of(Sliding::of(ms(4), ms(1)))), &script, &expected).unwrap();
}

type Side = Either<u32, String>;

fn joined<W: Assigner>(assigner: W, script: &[(i64, Side)]) -> Vec<(i64, i64, String)> {
    let join = Windows::of(assigner).join("w", |number: &u32, word: &String| format!("{number}{word}"));
    let mut harness = Harness::new(Then(KeyBy::new(|_: &Side| 0u8), join)).unwrap();
    for (time, side) in script {
        harness.record(*time, side.clone()).unwrap();
        let snapshot = harness.snapshot().unwrap();
        harness.restore(&snapshot).unwrap();
    }
    harness.end().unwrap();
    let out = harness.take_output().into_iter().map(|record| record.value);
    out.map(|pair| (pair.window.start.0, pair.window.end.0, pair.value)).collect()
}

#[test]
fn a_window_join_pairs_what_is_in_one_window() {
    let (left, right) = (Side::Left, |word: &str| Side::Right(word.to_owned()));
    let script = [(1, left(1)), (12, right("lonely")), (2, right("a")), (9, left(2)), (3, right("b")), (20, left(3))];
    let pairs = joined(Tumbling::of(ms(10)), &script);
    assert_eq!(pairs, ["1a", "1b", "2a", "2b"].map(|pair| (0, 10, pair.to_owned())));
    let pairs = joined(Session::gap(ms(10)), &script);
    let expected = ["1a", "1b", "1lonely", "2a", "2b", "2lonely", "3a", "3b", "3lonely"];
    let texts: Vec<_> = pairs.iter().map(|pair| pair.2.as_str()).collect();
    assert_eq!((pairs[0].0, pairs[0].1, texts.len()), (1, 30, 9));
    assert!(expected.iter().all(|pair| texts.contains(pair)), "{texts:?}");
}

#[test]
fn a_cogroup_gets_both_sides_and_may_find_one_empty() {
    let cogroup = Windows::of(Tumbling::of(ms(10)))
        .cogroup("w", |_: &u8, _, left: Vec<u32>, right: Vec<String>| [format!("{}/{}", left.len(), right.len())]);
    let mut harness = Harness::new(Then(KeyBy::new(|_: &Side| 0u8), cogroup)).unwrap();
    harness.record(1, Side::Left(1)).unwrap();
    harness.record(2, Side::Left(1)).unwrap();
    harness.record(12, Side::Right(String::new())).unwrap();
    harness.end().unwrap();
    let out: Vec<_> = harness.take_output().into_iter().map(|record| record.value.value).collect();
    assert_eq!(out, ["2/0", "0/1"]);
}

fn problems<W: Assigner>(windows: Windows<Pair, W>) -> Vec<String> {
    let operator = windows.count::<String>("w");
    let mut described: Vec<Description> = Vec::new();
    Operator::<Keyed<String, Pair>>::describe(&operator, &mut described);
    let opened = Harness::<Keyed<String, Pair>, _>::new(operator);
    assert_eq!(opened.is_err(), !described[0].problems.is_empty(), "what cannot work is not opened either");
    assert!(described[0].keyed);
    described.remove(0).problems
}

#[test]
fn settings_that_cannot_work_are_problems_and_all_of_them_are_named() {
    assert_eq!(problems(Windows::of(Tumbling::of(ms(1)))), [""; 0]);
    assert_eq!(problems(Windows::of(Tumbling::of(ms(0)))), ["the size is zero: give at least 1 ms"]);
    assert_eq!(problems(Windows::of(Session::gap(ms(0)))), ["the gap is zero: give at least 1 ms"]);
    let sliding = Sliding::of(ms(0), std::time::Duration::from_micros(1));
    let expected = ["the size is zero: give at least 1 ms", "the slide is 1µs: time is in whole milliseconds"];
    assert_eq!(problems(Windows::of(sliding)), expected);
    assert_eq!(problems(Windows::of(Sliding::of(ms(5), ms(0)))), ["the slide is zero: give at least 1 ms"]);
    let [only] = &problems(Windows::of(Sliding::of(ms(5), ms(6))))[..] else { panic!("one problem") };
    assert!(only.starts_with("the slide of 6ms is longer than the size of 5ms"), "{only}");
    let emit = Emit::Updates { every: Some(ms(0)), records: Some(0) };
    let expected =
        ["results after every 0 records: give at least 1", "the interval between results is zero: give at least 1 ms"];
    assert_eq!(problems(Windows::of(Tumbling::of(ms(1))).emit(emit)), expected);
    let processing = Windows::of(Tumbling::of(ms(1))).over_processing_time().allowed_lateness(ms(1));
    assert!(problems(processing)[0].starts_with("no record is late for processing time"));
    let global = Windows::of(Global::records(0)).late_to(&late_tag()).emit(emit).over_processing_time();
    assert!(problems(global).len() >= 4);
}
