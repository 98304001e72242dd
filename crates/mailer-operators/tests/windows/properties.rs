//! Every kind of windows against the model, under random records, watermarks, clocks and restores.

use crate::model::{Kind, Model, Output, Rules, Step};
use crate::{Pair, by_key, late_tag, ms};
use mailer_core::{Keyed, TimeWindow};
use mailer_operators::harness::{Harness, Input, check_script};
use mailer_operators::{Assigner, Emit, Map, Operator, Session, Sliding, Then, Tumbling, Windowed, Windows};
use proptest::collection::vec;
use proptest::prelude::*;

const KEYS: [&str; 5] = ["a", "b", "", "a longer key 1", "a longer key 2"];

fn kind() -> impl Strategy<Value = Kind> {
    let sliding = (1..12i64, 0..30i64, 0..20i64).prop_map(|(slide, more, offset)| (slide + more, slide, offset));
    prop_oneof![
        (1..30i64, 0..40i64).prop_map(|(size, offset)| Kind::Sliding(size, size, offset)),
        sliding.prop_map(|(size, slide, offset)| Kind::Sliding(size, slide, offset)),
        (1..15i64, any::<bool>()).prop_map(|(gap, inclusive)| Kind::Session(gap, inclusive)),
    ]
}

fn emit() -> impl Strategy<Value = Emit> {
    let every = prop::option::of((1..20u64).prop_map(ms));
    let updates = (every, prop::option::of(1..4u64)).prop_map(|(every, records)| Emit::Updates { every, records });
    prop_oneof![Just(Emit::Final), updates]
}

fn rules() -> impl Strategy<Value = Rules> {
    let lateness = prop_oneof![Just(0), 1..40i64];
    (kind(), lateness, emit()).prop_map(|(kind, lateness, emit)| Rules { kind, lateness, emit })
}

/// What happens next, relative to the watermark and the clock: (which, jitter, key, value).
type Raw = (u8, i64, usize, u32);

fn steps(raw: Vec<Raw>) -> Vec<Step> {
    let (mut watermark, mut now) = (-20, 0);
    let step = |(which, jitter, key, value): Raw| match which {
        0..=1 => {
            watermark += jitter.abs() / 2;
            Step::Watermark(watermark)
        }
        2 => {
            now += jitter.abs();
            Step::Time(now)
        }
        3 => Step::Restore,
        _ => Step::Record(watermark + jitter, (KEYS[key].to_owned(), value)),
    };
    raw.into_iter().map(step).chain([Step::Watermark(i64::MAX), Step::Restore]).collect()
}

fn script(length: usize) -> impl Strategy<Value = Vec<Step>> {
    vec((0..16u8, -30..50i64, 0..KEYS.len(), 0..1_000u32), 1..length).prop_map(steps)
}

fn outputs<T: Clone>(out: Vec<mailer_core::Record<Windowed<String, T>>>) -> Vec<(i64, Windowed<String, T>)> {
    out.into_iter().map(|record| (record.timestamp.0, record.value)).collect()
}

/// What the operator puts out, its late records, and the entries it leaves in the store.
fn run<Op: Operator<Pair>>(operator: Op, script: &[Step]) -> (Vec<mailer_core::Record<Op::Out>>, Vec<u32>, usize) {
    let mut harness = Harness::new(operator).unwrap();
    harness.keep_side(&late_tag());
    for step in script {
        match step {
            Step::Record(time, pair) => harness.record(*time, pair.clone()).unwrap(),
            Step::Watermark(time) => harness.watermark(*time).unwrap(),
            Step::Time(now) => harness.time(*now).unwrap(),
            Step::Restore => {
                let snapshot = harness.snapshot().unwrap();
                harness.restore(&snapshot).unwrap();
            }
        }
    }
    let late = harness.take_side(&late_tag());
    assert_eq!(harness.counted("w", "late"), late.len() as u64);
    harness.snapshot().unwrap();
    let entries = harness.state_entries();
    (harness.take_output(), late.into_iter().map(|record| record.value.1).collect(), entries)
}

fn settings<W: Assigner>(assigner: W, rules: Rules) -> Windows<Pair, W> {
    let windows = Windows::of(assigner).late_to(&late_tag()).emit(rules.emit);
    if rules.lateness > 0 { windows.allowed_lateness(ms(rules.lateness as u64)) } else { windows }
}

/// All values of each window.
fn lists<W: Assigner>(assigner: W, rules: Rules) -> impl Operator<Pair, Out = Windowed<String, Vec<u32>>> {
    by_key(settings(assigner, rules).process("w", |_: &String, _: TimeWindow, values: Vec<Pair>| {
        let mut values: Vec<u32> = values.into_iter().map(|pair| pair.1).collect();
        values.sort_unstable();
        Some(values)
    }))
}

/// Number and sum of the values, which are merged.
fn sums<W: Assigner>(assigner: W, rules: Rules) -> impl Operator<Pair, Out = Windowed<String, (u32, u32)>> {
    let windows = settings(assigner, rules);
    let add = |sum: &mut (u32, u32), (_, value): Pair| *sum = (sum.0 + 1, sum.1 + value);
    let merge = |sum: &mut (u32, u32), later: (u32, u32)| *sum = (sum.0 + later.0, sum.1 + later.1);
    by_key(windows.aggregate("w", || (0, 0), add, merge, |_: &String, sum| sum))
}

fn summed((timestamp, result): &Output) -> (i64, Windowed<String, (u32, u32)>) {
    let Windowed { key, window, value, firing, revision } = result.clone();
    let value = (value.len() as u32, value.iter().sum());
    (*timestamp, Windowed { key, window, value, firing, revision })
}

/// The two greatest values.
fn greatest<W: Assigner>(assigner: W, rules: Rules) -> impl Operator<Pair, Out = Windowed<String, Vec<u32>>> {
    let windows = settings(assigner, rules).top_n("w", 2, |a: &Pair, b: &Pair| b.1.cmp(&a.1));
    let values = |Windowed { key, window, value, firing, revision }: Windowed<String, Vec<Pair>>| {
        let value = value.into_iter().map(|pair| pair.1).collect();
        Windowed { key, window, value, firing, revision }
    };
    by_key(Then(windows, Map::new(values)))
}

fn ranked((timestamp, result): &Output) -> Output {
    let value = result.value.iter().rev().take(2).copied().collect();
    (*timestamp, Windowed { value, ..result.clone() })
}

fn judge<W: Assigner>(assigner: W, rules: Rules, script: &[Step]) -> Result<(), TestCaseError> {
    let mut model = Model::new(rules);
    script.iter().for_each(|step| model.step(step));
    let (out, late, entries) = run(lists(assigner.clone(), rules), script);
    prop_assert_eq!(&outputs(out), &model.out);
    prop_assert_eq!(late, model.late);
    prop_assert_eq!(entries, 0, "everything is freed");
    let (out, ..) = run(greatest(assigner.clone(), rules), script);
    prop_assert_eq!(outputs(out), model.out.iter().map(ranked).collect::<Vec<_>>());
    let (out, ..) = run(sums(assigner, rules), script);
    prop_assert_eq!(outputs(out), model.out.iter().map(summed).collect::<Vec<_>>());
    Ok(())
}

/// Batches of every size, and a restore behind each of them.
fn judge_schedules<W: Assigner>(assigner: W, rules: Rules, script: &[Step]) -> Result<(), TestCaseError> {
    let mut model = Model::new(rules);
    script.iter().for_each(|step| model.step(step));
    let input = |step: &Step| match step {
        Step::Record(time, pair) => Some(Input::Record(*time, pair.clone())),
        Step::Watermark(time) => Some(Input::Watermark(*time)),
        Step::Time(now) => Some(Input::Time(*now)),
        Step::Restore => None,
    };
    let inputs: Vec<_> = script.iter().filter_map(input).collect();
    let sums: Vec<_> = model.out.iter().map(summed).collect();
    let ranked: Vec<_> = model.out.iter().map(ranked).collect();
    check_script(greatest(assigner.clone(), rules), &inputs, &ranked)
        .and_then(|()| check_script(self::sums(assigner, rules), &inputs, &sums))
        .map_err(|error| TestCaseError::fail(error.to_string()))
}

fn each<R>(rules: Rules, script: &[Step], judge: R) -> Result<(), TestCaseError>
where
    R: Judge,
{
    match rules.kind {
        Kind::Sliding(size, slide, offset) if size == slide => {
            judge.judge(Tumbling::of(ms(size as u64)).offset(ms(offset as u64)), rules, script)
        }
        Kind::Sliding(size, slide, offset) => {
            judge.judge(Sliding::of(ms(size as u64), ms(slide as u64)).offset(ms(offset as u64)), rules, script)
        }
        Kind::Session(gap, true) => judge.judge(Session::gap(ms(gap as u64)).inclusive(), rules, script),
        Kind::Session(gap, false) => judge.judge(Session::gap(ms(gap as u64)), rules, script),
    }
}

trait Judge {
    fn judge<W: Assigner>(&self, assigner: W, rules: Rules, script: &[Step]) -> Result<(), TestCaseError>;
}

struct AgainstModel;
struct EverySchedule;

impl Judge for AgainstModel {
    fn judge<W: Assigner>(&self, assigner: W, rules: Rules, script: &[Step]) -> Result<(), TestCaseError> {
        judge(assigner, rules, script)
    }
}

impl Judge for EverySchedule {
    fn judge<W: Assigner>(&self, assigner: W, rules: Rules, script: &[Step]) -> Result<(), TestCaseError> {
        judge_schedules(assigner, rules, script)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn results_late_records_and_leftovers_are_those_of_the_model(rules in rules(), script in script(80)) {
        each(rules, &script, AgainstModel)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn results_depend_on_no_batch_size_and_no_restore(rules in rules(), script in script(24)) {
        each(rules, &script, EverySchedule)?;
    }
}

/// What a key is must not matter: numbers, whose encoding is shorter.
#[test]
fn keys_of_any_type_are_ordered_by_their_bytes() {
    let windows = Windows::of(Tumbling::of(ms(10))).count("w");
    let mut harness: Harness<Keyed<u32, u8>, _> = Harness::new(windows).unwrap();
    for key in [300u32, 1, 127, 128, 70_000] {
        let hash = mailer_core::KeyHash::of(&key, &mut Vec::new()).unwrap();
        harness.record(0, Keyed { hash, key, value: 0 }).unwrap();
    }
    harness.end().unwrap();
    let mut expected = [300u32, 1, 127, 128, 70_000];
    expected.sort_by_key(|key| {
        let mut bytes = Vec::new();
        mailer_core::codec::encode(key, &mut bytes).unwrap();
        bytes
    });
    assert_eq!(harness.take_output().iter().map(|record| record.value.key).collect::<Vec<_>>(), expected);
}
