//! As-of joins against a model that keeps everything.

use super::*;
use crate::harness::Input::{self, Record, Watermark as Mark};
use crate::harness::{Harness, check_script};
use crate::{KeyBy, Operator, Then};
use proptest::prelude::*;

type Item = (u8, usize);
type In = Either<Item, Item>;
type Out = (u8, usize, Option<usize>);

fn key(value: &In) -> u8 {
    match value {
        Either::Left((key, _)) | Either::Right((key, _)) => *key,
    }
}

fn join(tolerance: Option<u64>) -> impl Operator<In, Out = Out> {
    let join = AsOfJoin::new(|key: &u8, left: Item, right: Option<&Item>| (*key, left.1, right.map(|right| right.1)));
    let join = match tolerance {
        Some(millis) => join.tolerance(Duration::from_millis(millis)),
        None => join,
    };
    Then(KeyBy::new(key), join.named("join"))
}

/// What comes out, and how many keys have a right record.
fn model(script: &[Input<In>], tolerance: Option<u64>) -> (Vec<(i64, Out)>, usize) {
    let (mut lefts, mut rights, mut watermark, mut out) = (Vec::new(), Vec::new(), i64::MIN, Vec::new());
    for input in script {
        match input {
            Record(time, _) if *time < watermark => {}
            Record(time, Either::Left(item)) => lefts.push((*time, *item)),
            Record(time, Either::Right(item)) => rights.push((*time, *item)),
            Mark(time) => watermark = *time,
            Input::Time(_) => {}
        }
        let mut due: Vec<(i64, Item)> = lefts.extract_if(.., |(time, _)| *time < watermark).collect();
        due.sort_by_key(|(time, item)| (*time, item.0));
        for (time, left) in due {
            let near = |at: i64| at <= time && tolerance.is_none_or(|most| time - at <= most as i64);
            let known = rights.iter().filter(|(at, right): &&(i64, Item)| right.0 == left.0 && near(*at));
            let latest = known.max_by_key(|(at, _)| *at).map(|(_, right)| right.1);
            out.push((time, (left.0, left.1, latest)));
        }
    }
    let mut keys: Vec<u8> = rights.iter().map(|(_, right)| right.0).collect();
    keys.sort_unstable();
    keys.dedup();
    (out, keys.len())
}

fn script() -> impl Strategy<Value = Vec<Input<In>>> {
    let step = prop_oneof![
        5 => (-2..15i64, 0..2u8, any::<bool>()).prop_map(|(ahead, key, left)| {
            Record(ahead, if left { Either::Left((key, 0)) } else { Either::Right((key, 0)) })
        }),
        1 => (0..12i64).prop_map(Mark),
    ];
    proptest::collection::vec(step, 1..24).prop_map(|steps| {
        let mut watermark = -10;
        let absolute = |(number, step)| match step {
            Record(ahead, Either::Left((key, _))) => Record(watermark + ahead, Either::Left((key, number))),
            Record(ahead, Either::Right((key, _))) => Record(watermark + ahead, Either::Right((key, number))),
            Mark(by) => {
                watermark += by;
                Mark(watermark)
            }
            time => time,
        };
        steps.into_iter().enumerate().map(absolute).chain([Mark(i64::MAX)]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn takes_the_latest_of_the_model(script in script(), tolerance in proptest::option::of(0..12u64)) {
        let (expected, keys) = model(&script, tolerance);
        check_script(join(tolerance), &script, &expected).unwrap();
        let mut harness = Harness::new(join(tolerance)).unwrap();
        harness.feed(script).unwrap();
        harness.snapshot().unwrap();
        prop_assert_eq!(harness.state_entries(), if tolerance.is_some() { 0 } else { keys });
    }
}

/// The interleaving of the inputs decides nothing: only what is there when the watermark has passed.
#[test]
fn it_does_not_matter_which_input_is_faster() {
    let lefts = [5, 10, 15].map(|time| Record(time, Either::Left((1, time as usize))));
    let rights = [4, 10, 16].map(|time| Record(time, Either::Right((1, time as usize))));
    let expected = [(5, (1, 5, Some(4))), (10, (1, 10, Some(10))), (15, (1, 15, Some(10)))];
    for (first, second) in [(&lefts, &rights), (&rights, &lefts)] {
        let script: Vec<_> = first.iter().chain(second).cloned().chain([Mark(16)]).collect();
        check_script(join(None), &script, &expected).unwrap();
    }
}

#[test]
fn late_records_are_counted_and_rights_do_not_pile_up() {
    let mut harness = Harness::new(join(None)).unwrap();
    for time in 0..500 {
        harness.record(time, Either::Right((1, 0))).unwrap();
        harness.watermark(time).unwrap();
    }
    harness.feed([Record(1, Either::Left((1, 0))), Record(1, Either::Right((1, 0)))]).unwrap();
    assert_eq!((harness.counted("join", "late left"), harness.counted("join", "late right")), (1, 1));
    harness.snapshot().unwrap();
    assert_eq!(harness.state_entries(), 2, "one value and one timer");
    harness.end().unwrap();
    assert_eq!(harness.take_output().len(), 0);
}
