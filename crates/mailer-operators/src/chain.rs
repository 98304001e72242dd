//! Fusion: operators behind one another by type, and the one virtual call a whole batch pays.

use crate::{Collector, Description, OpenOperator, Operator, Polled, Rename, SideOutputs, SideTag};
use mailer_core::{Barrier, Batch, Record, Result, Timestamp, Watermark};
use mailer_state::StateStore;
use std::marker::PhantomData;

/// So many records at a time are looked at before they are handled.
const NEAR: usize = 64;

/// `B` behind `A`.
#[derive(Clone, Debug)]
pub struct Then<A, B>(pub A, pub B);

/// Hands every output record of `A` straight to `B`.
struct Feed<'a, B, C> {
    next: &'a mut B,
    out: &'a mut C,
}

impl<T, B: Operator<T>, C: Collector<B::Out>> Collector<T> for Feed<'_, B, C> {
    #[inline]
    fn collect(&mut self, record: Record<T>) -> Result<()> {
        self.next.on_record(record, self.out)
    }

    #[inline]
    fn side<S: Send + 'static>(&mut self, tag: &SideTag<S>, record: Record<S>) {
        self.out.side(tag, record);
    }

    #[inline]
    fn state(&mut self) -> &mut dyn StateStore {
        self.out.state()
    }

    #[inline]
    fn lend(&mut self) -> (&mut dyn StateStore, &mut SideOutputs) {
        self.out.lend()
    }

    #[inline]
    fn now(&self) -> Timestamp {
        self.out.now()
    }
}

impl<In, A: Operator<In>, B: Operator<A::Out>> Operator<In> for Then<A, B> {
    type Out = B::Out;

    fn describe(&self, out: &mut Vec<Description>) {
        self.0.describe(out);
        self.1.describe(out);
    }

    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        self.0.open(context)?;
        self.1.open(context)
    }

    const DRAWS_NEAR: bool = A::DRAWS_NEAR;

    #[inline]
    fn draw_near(&self, next: &[Record<In>]) {
        self.0.draw_near(next);
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<B::Out>) -> Result<()> {
        let Then(first, next) = self;
        first.on_record(record, &mut Feed { next, out })
    }

    fn on_watermark(&mut self, watermark: Watermark, out: &mut impl Collector<B::Out>) -> Result<Watermark> {
        let Then(first, next) = self;
        let passed = first.on_watermark(watermark, &mut Feed { next, out })?;
        next.on_watermark(passed, out)
    }

    /// From the end: what cannot take more must not be fed by what stands before it.
    #[inline]
    fn poll(&mut self, out: &mut impl Collector<B::Out>) -> Result<Polled> {
        let Then(first, next) = self;
        let mut last = next.poll(out)?;
        if !last.takes_more {
            return Ok(last);
        }
        let polled = first.poll(&mut Feed { next, out })?;
        if let Some(watermark) = polled.watermark {
            last.watermark = Some(next.on_watermark(watermark, out)?);
        }
        Ok(Polled { takes_more: polled.takes_more, watermark: last.watermark, waits: polled.waits || last.waits })
    }

    fn on_barrier(&mut self, barrier: Barrier, store: &mut dyn StateStore) -> Result<()> {
        self.0.on_barrier(barrier, store)?;
        self.1.on_barrier(barrier, store)
    }
}

impl<A, B: Rename> Rename for Then<A, B> {
    fn rename(&mut self, name: &str) {
        self.1.rename(name);
    }
}

/// The chain of no operator: where every chain begins.
#[derive(Debug)]
pub struct Identity<T>(PhantomData<fn(T) -> T>);

impl<T> Default for Identity<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T> Clone for Identity<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T: Send + 'static> Operator<T> for Identity<T> {
    type Out = T;

    fn describe(&self, _out: &mut Vec<Description>) {}

    #[inline]
    fn on_record(&mut self, record: Record<T>, out: &mut impl Collector<T>) -> Result<()> {
        out.collect(record)
    }
}

/// What a chain is lent while it is called, besides the batch it fills.
pub struct ChainContext<'a> {
    /// The worker's keyed state.
    pub store: &'a mut dyn StateStore,
    /// Where side outputs go.
    pub sides: &'a mut SideOutputs,
    /// See [`Collector::now`].
    pub now: Timestamp,
}

/// A chain as the runtime calls it: once per batch. Every [`Operator`] is one.
pub trait Chain<In, Out>: Send {
    /// See [`Operator::open`].
    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()>;
    /// Drains `batch` and appends to `out`.
    fn process(&mut self, batch: &mut Batch<In>, out: &mut Batch<Out>, context: ChainContext<'_>) -> Result<()>;
    /// See [`Operator::on_watermark`].
    fn watermark(&mut self, mark: Watermark, out: &mut Batch<Out>, context: ChainContext<'_>) -> Result<Watermark>;
    /// See [`Operator::poll`].
    fn poll(&mut self, out: &mut Batch<Out>, context: ChainContext<'_>) -> Result<Polled>;
    /// See [`Operator::on_barrier`].
    fn barrier(&mut self, barrier: Barrier, store: &mut dyn StateStore) -> Result<()>;
}

/// The end of a chain: appends to a batch.
struct ToBatch<'a, T> {
    batch: &'a mut Batch<T>,
    context: ChainContext<'a>,
}

impl<T> Collector<T> for ToBatch<'_, T> {
    #[inline]
    fn collect(&mut self, record: Record<T>) -> Result<()> {
        self.batch.push(record);
        Ok(())
    }

    #[inline]
    fn side<S: Send + 'static>(&mut self, tag: &SideTag<S>, record: Record<S>) {
        self.context.sides.push(tag, record);
    }

    #[inline]
    fn state(&mut self) -> &mut dyn StateStore {
        self.context.store
    }

    #[inline]
    fn lend(&mut self) -> (&mut dyn StateStore, &mut SideOutputs) {
        (self.context.store, self.context.sides)
    }

    #[inline]
    fn now(&self) -> Timestamp {
        self.context.now
    }
}

impl<In, Op: Operator<In>> Chain<In, Op::Out> for Op {
    fn open(&mut self, context: &mut dyn OpenOperator) -> Result<()> {
        Operator::open(self, context)
    }

    fn process(&mut self, batch: &mut Batch<In>, out: &mut Batch<Op::Out>, context: ChainContext<'_>) -> Result<()> {
        out.reserve(batch.len());
        let (mut collector, mut records) = (ToBatch { batch: out, context }, batch.drain(..));
        while Self::DRAWS_NEAR && records.len() > 0 {
            let next = records.len().min(NEAR);
            self.draw_near(&records.as_slice()[..next]);
            records.by_ref().take(next).try_for_each(|record| self.on_record(record, &mut collector))?;
        }
        records.try_for_each(|record| self.on_record(record, &mut collector))
    }

    fn watermark(&mut self, mark: Watermark, out: &mut Batch<Op::Out>, context: ChainContext<'_>) -> Result<Watermark> {
        self.on_watermark(mark, &mut ToBatch { batch: out, context })
    }

    fn poll(&mut self, out: &mut Batch<Op::Out>, context: ChainContext<'_>) -> Result<Polled> {
        Operator::poll(self, &mut ToBatch { batch: out, context })
    }

    fn barrier(&mut self, barrier: Barrier, store: &mut dyn StateStore) -> Result<()> {
        self.on_barrier(barrier, store)
    }
}
