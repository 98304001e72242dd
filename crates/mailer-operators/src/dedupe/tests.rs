//! Dedupe against a model that forgets nothing.

use super::*;
use crate::harness::Input::{self, Record, Watermark as Mark};
use crate::harness::{Harness, check_script};
use crate::{KeyBy, Operator, Then};
use mailer_core::Keyed;
use proptest::prelude::*;

/// Key, id, number.
type Item = (u8, u8, usize);

fn dedupe(horizon: u64, lateness: u64) -> impl Operator<Item, Out = Item> {
    let dedupe = Dedupe::by(Duration::from_millis(horizon), |item: &Item| item.1);
    let dedupe = dedupe.allowed_lateness(Duration::from_millis(lateness));
    Then(KeyBy::new(|item: &Item| item.0), dedupe.named("dedupe"))
}

fn model(script: &[Input<Item>], horizon: i64, lateness: i64) -> (Vec<(i64, Item)>, u64, u64) {
    let (mut out, mut late, mut duplicates, mut watermark) = (Vec::<(i64, Item)>::new(), 0, 0, i64::MIN);
    for input in script {
        match input {
            Mark(time) => watermark = *time,
            Record(time, _) if time + lateness < watermark => late += 1,
            Record(time, item) => {
                let equal = |(passed, other): &(i64, Item)| {
                    (other.0, other.1) == (item.0, item.1) && (passed - time).abs() < horizon
                };
                if out.iter().any(equal) { duplicates += 1 } else { out.push((*time, *item)) }
            }
            Input::Time(_) => {}
        }
    }
    (out, late, duplicates)
}

fn script() -> impl Strategy<Value = Vec<Input<Item>>> {
    let step = prop_oneof![
        5 => (-8..15i64, 0..2u8, 0..3u8).prop_map(|(ahead, key, id)| Record(ahead, (key, id, 0))),
        1 => (0..12i64).prop_map(Mark),
    ];
    proptest::collection::vec(step, 1..28).prop_map(|steps| {
        let mut watermark = -10;
        let absolute = |(number, step)| match step {
            Record(ahead, (key, id, _)) => Record(watermark + ahead, (key, id, number)),
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
    fn lets_through_what_the_model_does(script in script(), horizon in 1..20u64, lateness in 0..6u64) {
        let (expected, late, duplicates) = model(&script, horizon as i64, lateness as i64);
        check_script(dedupe(horizon, lateness), &script, &expected).unwrap();
        let mut harness = Harness::new(dedupe(horizon, lateness)).unwrap();
        harness.feed(script).unwrap();
        harness.snapshot().unwrap();
        prop_assert_eq!(harness.state_entries(), 0);
        let counted = (harness.counted("dedupe", "late"), harness.counted("dedupe", "duplicates"));
        prop_assert_eq!(counted, (late, duplicates));
    }
}

#[test]
fn ids_are_forgotten_when_the_horizon_has_passed() {
    let mut harness = Harness::new(dedupe(100, 0)).unwrap();
    for time in 0..2_000usize {
        harness.record(time as i64, (1, (time % 250) as u8, time)).unwrap();
        harness.watermark(time as i64).unwrap();
        if time % 100 == 0 {
            harness.snapshot().unwrap();
            assert!(harness.state_entries() <= 202, "at {time}: {}", harness.state_entries());
        }
    }
    assert_eq!(harness.take_output().len(), 2_000);
}

#[test]
fn late_records_go_aside_and_no_horizon_is_a_problem() {
    let tag = SideTag::new("late");
    let by_key = || Dedupe::<u8, (), _>::by_key(Duration::from_millis(10));
    let mut harness = Harness::new(Then(KeyBy::new(|x: &u8| *x), by_key().late_to(&tag).named("d"))).unwrap();
    harness.keep_side(&tag);
    harness.watermark(5).unwrap();
    harness.feed([Record(4, 1), Record(5, 1), Record(14, 1)]).unwrap();
    assert_eq!((harness.take_side(&tag).len(), harness.take_output().len()), (1, 1));
    let mut described = Vec::new();
    let nothing = Dedupe::<u8, (), _>::by_key(Duration::ZERO).named::<u8>("nothing");
    Operator::<Keyed<u8, u8>>::describe(&nothing, &mut described);
    assert!(described[0].problems[0].contains("make it longer"));
}
