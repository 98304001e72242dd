//! One script under every schedule: batches of every size, snapshots and restores between any two of them.

use super::{Harness, Input};
use crate::Operator;
use mailer_core::{Error, Record, Result, Timestamp};
use std::fmt::Debug;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Schedule {
    Straight,
    Snapshots,
    Restores,
}

/// Runs `operator` over `input` under every schedule and fails with the schedule that gave another output. Record `i` has
/// timestamp `i`, and there is no watermark.
///
/// Schedules: every batch size up to the input's length, times "no snapshot", "a barrier behind every batch", and
/// "a barrier and a restore into a fresh operator behind every batch".
///
/// ```
/// use mailer_operators::{KeyBy, Reduce, Then, harness};
/// let count = || Then(KeyBy::new(|w: &String| w.clone()), Reduce::new("longest", |a: &mut String, b: String| a.push_str(&b)));
/// harness::check(count(), ["a", "b", "a"].map(String::from).to_vec(), &["a".into(), "b".into(), "aa".into()]).unwrap();
/// ```
pub fn check<In: Clone, Op: Operator<In>>(operator: Op, input: Vec<In>, expected: &[Op::Out]) -> Result<()>
where
    Op::Out: PartialEq + Debug,
{
    let script: Vec<_> = input.into_iter().enumerate().map(|(i, value)| Input::Record(i as i64, value)).collect();
    each_schedule(&operator, &script, |out| {
        let values = out.iter().map(|record| &record.value);
        values.eq(expected.iter()).then_some(()).ok_or_else(|| format!("expected the values {expected:?}, got {out:?}"))
    })
}

/// The same for a script with watermarks and processing time; `expected` are timestamps and values. Markers come between
/// batches, as in a job, so a batch is at most the run of records between two markers.
///
/// ```
/// use mailer_operators::{Map, harness::{self, Input}};
/// let script = [Input::Record(5, 1), Input::Watermark(5), Input::Record(7, 2)];
/// harness::check_script(Map::new(|x: u32| x + 1), &script, &[(5, 2), (7, 3)]).unwrap();
/// ```
pub fn check_script<In: Clone, Op: Operator<In>>(
    operator: Op,
    script: &[Input<In>],
    expected: &[(i64, Op::Out)],
) -> Result<()>
where
    Op::Out: PartialEq + Debug,
{
    each_schedule(&operator, script, |out| {
        let same = |(record, (time, value)): (&Record<Op::Out>, &(i64, Op::Out))| {
            record.timestamp == Timestamp(*time) && record.value == *value
        };
        let equal = out.len() == expected.len() && out.iter().zip(expected).all(same);
        equal.then_some(()).ok_or_else(|| format!("expected {expected:?}, got {out:?}"))
    })
}

fn each_schedule<In: Clone, Op: Operator<In>>(
    operator: &Op,
    script: &[Input<In>],
    judge: impl Fn(&[Record<Op::Out>]) -> Result<(), String>,
) -> Result<()> {
    for batch_size in 1..=script.len().max(1) {
        for schedule in [Schedule::Straight, Schedule::Snapshots, Schedule::Restores] {
            let out = run_schedule(operator, script, batch_size, schedule)?;
            judge(&out).map_err(|why| Error::internal(format!("batches of {batch_size}, {schedule:?}: {why}")))?;
        }
    }
    Ok(())
}

fn run_schedule<In: Clone, Op: Operator<In>>(
    operator: &Op,
    script: &[Input<In>],
    batch_size: usize,
    schedule: Schedule,
) -> Result<Vec<Record<Op::Out>>> {
    let mut harness = Harness::new(operator.clone())?;
    let mut rest = script;
    while !rest.is_empty() {
        let records = rest.iter().take_while(|input| matches!(input, Input::Record(..))).count();
        let (now, later) = rest.split_at(records.clamp(1, batch_size));
        rest = later;
        harness.feed(now.iter().cloned())?;
        match schedule {
            Schedule::Straight => {}
            Schedule::Snapshots => drop(harness.snapshot()?),
            Schedule::Restores => {
                let snapshot = harness.snapshot()?;
                harness.restore(&snapshot)?;
            }
        }
    }
    Ok(harness.take_output())
}
