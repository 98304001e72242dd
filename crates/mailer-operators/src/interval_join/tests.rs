//! Interval joins against a model that compares everything with everything and frees nothing.

use super::*;
use crate::harness::Input::{self, Record, Watermark as Mark};
use crate::harness::{Harness, check_script};
use crate::{KeyBy, Operator, Then};
use mailer_core::Keyed;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Key and number.
type Item = (u8, usize);
type In = Either<Item, Item>;
type Out = (u8, usize, Option<usize>);

fn key(value: &In) -> u8 {
    match value {
        Either::Left((key, _)) | Either::Right((key, _)) => *key,
    }
}

fn left(lower: i64, upper: i64) -> impl Operator<In, Out = Out> {
    let join = IntervalJoin::between(lower, upper);
    Then(
        KeyBy::new(key),
        join.left("join", |key: &u8, left: &Item, right: Option<&Item>| (*key, left.1, right.map(|r| r.1))),
    )
}

fn inner(lower: i64, upper: i64) -> impl Operator<In, Out = Out> {
    let join = IntervalJoin::between(lower, upper);
    Then(KeyBy::new(key), join.inner("join", |key: &u8, left: &Item, right: &Item| (*key, left.1, Some(right.1))))
}

struct Seen {
    time: i64,
    item: Item,
    matched: bool,
}

struct Model {
    bounds: (i64, i64),
    outer: bool,
    lefts: Vec<Seen>,
    rights: Vec<Seen>,
    /// Time and key.
    timers: BTreeSet<(i64, u8)>,
    watermark: i64,
    late: u64,
    out: Vec<(i64, Out)>,
}

impl Model {
    fn run(bounds: (i64, i64), outer: bool, script: &[Input<In>]) -> Self {
        let (timers, watermark) = (BTreeSet::new(), i64::MIN);
        let mut model =
            Self { bounds, outer, lefts: Vec::new(), rights: Vec::new(), timers, watermark, late: 0, out: Vec::new() };
        script.iter().for_each(|input| model.feed(input));
        model
    }

    fn feed(&mut self, input: &Input<In>) {
        match input {
            Record(time, _) if *time < self.watermark => self.late += 1,
            Record(time, value) => self.record(*time, value),
            Mark(time) => self.watermark = *time,
            Input::Time(_) => {}
        }
        while let Some(first @ (time, key)) = self.timers.first().copied().filter(|first| first.0 <= self.watermark) {
            self.timers.remove(&first);
            let of = time - self.bounds.1 - 1;
            for left in self.lefts.iter_mut().filter(|left| left.time == of && left.item.0 == key && !left.matched) {
                left.matched = true;
                self.out.push((of.max(of + self.bounds.1), (key, left.item.1, None)));
            }
        }
    }

    fn record(&mut self, time: i64, value: &In) {
        let (lower, upper) = self.bounds;
        let belongs = |left: i64, right: i64| left + lower <= right && right <= left + upper;
        match *value {
            Either::Left(item) => {
                let partners = self.rights.iter().filter(|right| right.item.0 == item.0 && belongs(time, right.time));
                let mut partners: Vec<_> = partners.map(|right| (right.time, right.item.1)).collect();
                partners.sort_by_key(|(time, _)| *time);
                let matched = !partners.is_empty();
                let pairs = partners.into_iter().map(|(at, right)| (at.max(time), (item.0, item.1, Some(right))));
                self.out.extend(pairs);
                if self.outer && !matched {
                    self.timers.insert((time + upper + 1, item.0));
                }
                self.lefts.push(Seen { time, item, matched });
            }
            Either::Right(item) => {
                let same = |left: &&mut Seen| left.item.0 == item.0 && belongs(left.time, time);
                let mut partners: Vec<_> = self.lefts.iter_mut().filter(same).collect();
                partners.sort_by_key(|left| left.time);
                for left in partners {
                    left.matched = true;
                    self.out.push((left.time.max(time), (item.0, left.item.1, Some(item.1))));
                }
                self.rights.push(Seen { time, item, matched: true });
            }
        }
    }
}

fn script() -> impl Strategy<Value = Vec<Input<In>>> {
    let step = prop_oneof![
        5 => (-3..25i64, 0..2u8, any::<bool>()).prop_map(|(ahead, key, left)| {
            let item = (key, 0);
            Record(ahead, if left { Either::Left(item) } else { Either::Right(item) })
        }),
        1 => (0..12i64).prop_map(Mark),
    ];
    proptest::collection::vec(step, 1..24).prop_map(|steps| {
        let mut watermark = -20;
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

fn check(operator: impl Operator<In, Out = Out>, model: &Model, script: &[Input<In>]) {
    check_script(operator.clone(), script, &model.out).unwrap();
    let mut harness = Harness::new(operator).unwrap();
    harness.feed(script.iter().cloned()).unwrap();
    harness.snapshot().unwrap();
    assert_eq!(harness.state_entries(), 0);
    assert_eq!(harness.counted("join", "late left") + harness.counted("join", "late right"), model.late);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn is_the_pairs_of_the_model(script in script(), lower in -15..10i64, length in 0..20i64) {
        let bounds = (lower, lower + length);
        check(left(bounds.0, bounds.1), &Model::run(bounds, true, &script), &script);
        check(inner(bounds.0, bounds.1), &Model::run(bounds, false, &script), &script);
    }
}

#[test]
fn both_bounds_are_included_and_a_record_alone_comes_when_nobody_can_follow() {
    let (l, r) = (|n| Either::Left((1, n)), |n| Either::Right((1, n)));
    let script = [
        Record(100, l(1)),
        Record(89, r(2)),
        Record(90, r(3)),
        Record(120, r(4)),
        Record(121, r(5)),
        Record(200, l(6)),
        Mark(220),
        Mark(221),
    ];
    let expected = [(100, (1, 1, Some(3))), (120, (1, 1, Some(4))), (220, (1, 6, None))];
    check_script(left(-10, 20), &script, &expected).unwrap();
}

#[test]
fn buffers_are_freed_by_the_watermark_before_the_end() {
    let mut harness = Harness::new(inner(0, 10)).unwrap();
    for time in 0..1_000 {
        harness.record(time, Either::Left((1, 0))).unwrap();
        harness.record(time, Either::Right((1, 0))).unwrap();
        harness.watermark(time).unwrap();
        harness.snapshot().unwrap();
        assert!(harness.state_entries() <= 12, "at {time}: {}", harness.state_entries());
    }
}

#[test]
fn late_records_go_aside() {
    let (lefts, rights) = (SideTag::new("lefts"), SideTag::new("rights"));
    let join = IntervalJoin::<Item, Item>::between(0, 10).late_left_to(&lefts).late_right_to(&rights);
    let join = join.inner("join", |_: &u8, left: &Item, right: &Item| (left.1, right.1));
    let mut harness = Harness::new(Then(KeyBy::new(key), join)).unwrap();
    harness.keep_side(&lefts);
    harness.keep_side(&rights);
    harness.watermark(50).unwrap();
    harness.feed([Record(49, Either::Left((1, 1))), Record(49, Either::Right((1, 2)))]).unwrap();
    assert_eq!((harness.take_side(&lefts)[0].value, harness.take_side(&rights)[0].value), ((1, 1), (1, 2)));
    assert_eq!((harness.counted("join", "late left"), harness.counted("join", "late right")), (1, 1));
}

#[test]
fn bounds_that_cannot_work_are_problems() {
    let problems = |lower, upper| {
        let join = IntervalJoin::<u8, u8>::between(lower, upper).inner("join", |_: &u8, _: &u8, _: &u8| ());
        let mut described = Vec::new();
        Operator::<Keyed<u8, Either<u8, u8>>>::describe(&join, &mut described);
        described.remove(0).problems
    };
    assert!(problems(5, 4)[0].contains("from 5 to 4 ms is empty"));
    assert!(problems(0, i64::MAX)[0].contains("out of range"));
    assert_eq!(problems(-5, -5), [""; 0]);
}
