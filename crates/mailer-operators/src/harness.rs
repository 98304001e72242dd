//! Tests an operator under every schedule at once: snapshots everywhere, restores everywhere, batches of every size.
//!
//! The author writes input and expected output; [`check`] runs the operator once per schedule and compares.

use crate::{Chain, OpenOperator, Operator};
use mailer_core::{Barrier, BarrierKind, Batch, CheckpointId, DEFAULT_KEY_GROUPS, Error, Record, Result, Timestamp};
use mailer_state::{SnapshotJob, SnapshotPart, StateStore};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Runs `operator` over `input` in one batch and returns the output values. Record `i` has timestamp `i`.
pub fn run<In, Op: Operator<In>>(operator: Op, input: impl IntoIterator<Item = In>) -> Result<Vec<Op::Out>> {
    let mut store = OrderedStore::default();
    let mut operator = opened::<In, Op>(operator)?;
    let mut batch = stamped(input);
    let mut out = Batch::new();
    operator.process(&mut batch, &mut out, &mut store)?;
    Ok(out.into_iter().map(|record| record.value).collect())
}

/// Runs `operator` over `input` under every schedule and fails with the schedule that gave another output.
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
    for batch_size in 1..=input.len().max(1) {
        for schedule in [Schedule::Straight, Schedule::Snapshots, Schedule::Restores] {
            let out = run_schedule(&operator, &input, batch_size, schedule)?;
            if out != expected {
                return Err(Error::internal(format!(
                    "batches of {batch_size}, {schedule:?}: expected {expected:?}, got {out:?}"
                )));
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Schedule {
    Straight,
    Snapshots,
    Restores,
}

fn run_schedule<In: Clone, Op: Operator<In>>(
    prototype: &Op,
    input: &[In],
    batch_size: usize,
    schedule: Schedule,
) -> Result<Vec<Op::Out>> {
    let mut store = OrderedStore::default();
    let mut operator = opened::<In, Op>(prototype.clone())?;
    let mut out = Batch::new();
    let mut records = stamped(input.iter().cloned());
    let mut id = CheckpointId::default();
    while !records.is_empty() {
        let rest = records.split_off(batch_size.min(records.len()));
        operator.process(&mut records, &mut out, &mut store)?;
        records = rest;
        if schedule != Schedule::Straight {
            id = id.next();
            operator.barrier(Barrier { checkpoint: id, kind: BarrierKind::Checkpoint }, &mut store)?;
        }
        if schedule == Schedule::Restores {
            // Only what the barrier wrote back survives.
            operator = opened::<In, Op>(prototype.clone())?;
        }
    }
    Ok(out.into_iter().map(|record| record.value).collect())
}

fn stamped<In>(input: impl IntoIterator<Item = In>) -> Batch<In> {
    input.into_iter().enumerate().map(|(i, value)| Record::new(Timestamp(i as i64), value)).collect()
}

fn opened<In, Op: Operator<In>>(mut operator: Op) -> Result<Op> {
    Operator::open(&mut operator, &Alone)?;
    Ok(operator)
}

/// One operator alone: every name has the same id.
struct Alone;

impl OpenOperator for Alone {
    fn operator_id(&self, _name: &str) -> Result<u16> {
        Ok(1)
    }

    fn key_groups(&self) -> u16 {
        DEFAULT_KEY_GROUPS
    }
}

/// The simplest store there is.
#[derive(Clone, Debug, Default)]
pub struct OrderedStore(BTreeMap<Vec<u8>, Vec<u8>>);

impl StateStore for OrderedStore {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        Ok(self.0.get(key).map(|found| value.extend_from_slice(found)).is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.remove(key);
        Ok(())
    }

    fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
        for (key, value) in self.0.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix)) {
            if !visit(key, value)? {
                break;
            }
        }
        Ok(())
    }

    fn snapshot(&mut self, _id: CheckpointId) -> Result<SnapshotJob> {
        let copy = self.clone();
        Ok(Box::new(move || Ok(SnapshotPart(Box::new(copy)))))
    }
}
