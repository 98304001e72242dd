//! Tests an operator, or a chain of them, without a job: records, watermarks and processing time by hand, snapshots and
//! restores at any point, side outputs and counters in view.
//!
//! [`check`] and [`check_script`] run one script under every schedule at once; [`Harness`] is for looking closer;
//! [`run`] is for a line in an example.

mod schedule;
mod store;

pub use schedule::{check, check_script};
pub use store::OrderedStore;

use crate::spawn::{ByHand, Spawner};
use crate::{Chain, ChainContext, Counter, OpenOperator, Operator, Polled, SideOutputs, SideTag};
use mailer_core::{
    Barrier, BarrierKind, Batch, CheckpointId, DEFAULT_KEY_GROUPS, Error, KeyGroup, Record, Result, Timestamp,
    Watermark,
};
use mailer_state::{StateStore, layout};
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// Runs `operator` over `input` in one batch and returns the output values. Record `i` has timestamp `i`.
pub fn run<In, Op: Operator<In>>(operator: Op, input: impl IntoIterator<Item = In>) -> Result<Vec<Op::Out>> {
    let mut harness = Harness::new(operator)?;
    harness.batch(input.into_iter().enumerate().map(|(i, value)| Record::new(Timestamp(i as i64), value)))?;
    Ok(harness.take_output().into_iter().map(|record| record.value).collect())
}

/// One line of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Input<T> {
    /// A record with its event time in milliseconds.
    Record(i64, T),
    /// A watermark, in milliseconds.
    Watermark(i64),
    /// Processing time is now so many milliseconds.
    Time(i64),
}

/// What a checkpoint holds of an operator.
#[derive(Clone, Debug)]
pub struct Snapshot {
    store: OrderedStore,
    watermark: Watermark,
}

/// An operator that is fed by hand.
///
/// ```
/// use mailer_operators::{Map, harness::Harness};
/// let mut harness = Harness::new(Map::new(|x: u32| x * 2)).unwrap();
/// harness.record(5, 21).unwrap();
/// harness.watermark(6).unwrap();
/// assert_eq!(harness.take_output()[0].value, 42);
/// assert_eq!(harness.output_watermark(), 6);
/// ```
pub struct Harness<In, Op: Operator<In>> {
    prototype: Op,
    operator: Op,
    bench: Bench,
    input: Batch<In>,
    out: Batch<Op::Out>,
    /// The watermark given, and the watermark passed on.
    watermarks: (Watermark, Watermark),
    checkpoint: CheckpointId,
}

impl<In, Op: Operator<In>> Harness<In, Op> {
    /// Opens a clone of `operator` with no state, at processing time 0.
    pub fn new(operator: Op) -> Result<Self> {
        let mut harness = Self {
            operator: operator.clone(),
            prototype: operator,
            bench: Bench::default(),
            input: Batch::new(),
            out: Batch::new(),
            watermarks: (Watermark::NONE, Watermark::NONE),
            checkpoint: CheckpointId::default(),
        };
        Operator::open(&mut harness.operator, &mut harness.bench)?;
        Ok(harness)
    }

    /// Keeps the records of a side output from now on.
    pub fn keep_side<S: Send + 'static>(&mut self, tag: &SideTag<S>) {
        self.bench.sides.wanted(tag);
    }

    /// Feeds lines of a script; neighbouring records are one batch.
    pub fn feed(&mut self, script: impl IntoIterator<Item = Input<In>>) -> Result<()> {
        let mut batch = Batch::new();
        for input in script {
            match input {
                Input::Record(time, value) => batch.push(Record::new(Timestamp(time), value)),
                Input::Watermark(time) => {
                    self.batch(batch.drain(..))?;
                    self.watermark(time)?;
                }
                Input::Time(time) => {
                    self.batch(batch.drain(..))?;
                    self.time(time)?;
                }
            }
        }
        self.batch(batch)
    }

    /// One record.
    pub fn record(&mut self, time: i64, value: In) -> Result<()> {
        self.batch([Record::new(Timestamp(time), value)])
    }

    /// One batch.
    pub fn batch(&mut self, records: impl IntoIterator<Item = Record<In>>) -> Result<()> {
        self.input.extend(records);
        if self.input.is_empty() {
            return Ok(());
        }
        self.poll_until_ready()?;
        self.operator.process(&mut self.input, &mut self.out, self.bench.context())
    }

    /// Event time is now so many milliseconds.
    pub fn watermark(&mut self, time: i64) -> Result<()> {
        self.poll_until_ready()?;
        let mark = Watermark(Timestamp(time));
        self.watermarks.0 = self.watermarks.0.max(mark);
        let passed = Chain::watermark(&mut self.operator, mark, &mut self.out, self.bench.context())?;
        self.pass(passed);
        Ok(())
    }

    /// True end of input: event time is over.
    pub fn end(&mut self) -> Result<()> {
        self.watermark(i64::MAX)
    }

    /// Processing time is now so many milliseconds.
    pub fn time(&mut self, millis: i64) -> Result<()> {
        let passed = millis.saturating_sub(self.bench.now.0);
        self.bench.futures.clock.advance(Duration::from_millis(u64::try_from(passed).unwrap_or_default()));
        self.bench.now = Timestamp(millis);
        self.poll().map(|_| ())
    }

    /// Lets the operator do what it does without input, and its futures move.
    pub fn poll(&mut self) -> Result<Polled> {
        self.bench.futures.poll_all();
        let polled = Chain::poll(&mut self.operator, &mut self.out, self.bench.context())?;
        polled.watermark.into_iter().for_each(|passed| self.pass(passed));
        Ok(polled)
    }

    fn poll_until_ready(&mut self) -> Result<()> {
        match self.poll()?.takes_more {
            true => Ok(()),
            false => Err(Error::internal("the operator takes no more input: `poll` it until it does")),
        }
    }

    fn pass(&mut self, watermark: Watermark) {
        self.watermarks.1 = self.watermarks.1.max(watermark);
    }

    /// A barrier: what a checkpoint holds now.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        self.checkpoint = self.checkpoint.next();
        let barrier = Barrier { checkpoint: self.checkpoint, kind: BarrierKind::Checkpoint };
        self.operator.barrier(barrier, &mut self.bench.store)?;
        Ok(Snapshot { store: self.bench.store.clone(), watermark: self.watermarks.0 })
    }

    /// A crash and a recovery: a fresh operator with what the snapshot holds. Output taken so far stays with the caller;
    /// output not taken yet stays, too: it had left the operator.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.bench.store = snapshot.store.clone();
        self.operator = self.prototype.clone();
        self.watermarks = (Watermark::NONE, Watermark::NONE);
        Operator::open(&mut self.operator, &mut self.bench)?;
        match snapshot.watermark {
            Watermark::NONE => Ok(()),
            Watermark(Timestamp(time)) => self.watermark(time),
        }
    }

    /// Output since the last call.
    pub fn take_output(&mut self) -> Vec<Record<Op::Out>> {
        std::mem::take(&mut self.out)
    }

    /// A side output since the last call; [`Harness::keep_side`] it first.
    pub fn take_side<S: Send + 'static>(&mut self, tag: &SideTag<S>) -> Vec<Record<S>> {
        self.bench.sides.find(tag).map(std::mem::take).unwrap_or_default()
    }

    /// How far event time has moved behind the operator, in milliseconds.
    pub fn output_watermark(&self) -> i64 {
        self.watermarks.1.0.0
    }

    /// What the operator has counted, over all restores.
    pub fn counted(&self, operator: &str, what: &str) -> u64 {
        let counters = self.bench.counters.iter();
        counters
            .filter(|(name, counts, _)| name == operator && *counts == what)
            .map(|(.., counter)| counter.get())
            .sum()
    }

    /// Entries in the state store, as of the last snapshot.
    pub fn state_entries(&self) -> usize {
        self.bench.store.len()
    }
}

/// What a worker is to an operator. One operator is alone: every name has the same id.
#[derive(Default)]
struct Bench {
    store: OrderedStore,
    sides: SideOutputs,
    now: Timestamp,
    futures: Arc<ByHand>,
    counters: Vec<(String, &'static str, Counter)>,
}

impl Bench {
    fn context(&mut self) -> ChainContext<'_> {
        ChainContext { store: &mut self.store, sides: &mut self.sides, now: self.now }
    }
}

impl OpenOperator for Bench {
    fn operator_id(&self, _name: &str) -> Result<u16> {
        Ok(1)
    }

    fn key_groups(&self) -> u16 {
        DEFAULT_KEY_GROUPS
    }

    fn owned_groups(&self) -> Range<u16> {
        0..DEFAULT_KEY_GROUPS
    }

    fn unkeyed_group(&self) -> KeyGroup {
        KeyGroup(layout::FIRST_UNKEYED_GROUP)
    }

    fn state(&mut self) -> &mut dyn StateStore {
        &mut self.store
    }

    fn counter(&mut self, operator: &str, what: &'static str) -> Counter {
        let counter = Counter::default();
        self.counters.push((operator.to_owned(), what, counter.clone()));
        counter
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }

    fn spawner(&self) -> Result<Arc<dyn Spawner>> {
        Ok(self.futures.clone())
    }
}
