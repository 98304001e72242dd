//! Fusion: operators behind one another by type, and the one virtual call a whole batch pays.

use crate::{Collector, Description, OpenOperator, Operator, Rename};
use mailer_core::{Barrier, Batch, Record, Result, Watermark};
use mailer_state::StateStore;
use std::marker::PhantomData;

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
    fn state(&mut self) -> &mut dyn StateStore {
        self.out.state()
    }
}

impl<In, A: Operator<In>, B: Operator<A::Out>> Operator<In> for Then<A, B> {
    type Out = B::Out;

    fn describe(&self, out: &mut Vec<Description>) {
        self.0.describe(out);
        self.1.describe(out);
    }

    fn open(&mut self, context: &dyn OpenOperator) -> Result<()> {
        self.0.open(context)?;
        self.1.open(context)
    }

    #[inline]
    fn on_record(&mut self, record: Record<In>, out: &mut impl Collector<B::Out>) -> Result<()> {
        let Then(first, next) = self;
        first.on_record(record, &mut Feed { next, out })
    }

    fn on_watermark(&mut self, watermark: Watermark, out: &mut impl Collector<B::Out>) -> Result<()> {
        let Then(first, next) = self;
        first.on_watermark(watermark, &mut Feed { next, out })?;
        next.on_watermark(watermark, out)
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

/// A chain as the runtime calls it: once per batch. Every [`Operator`] is one.
pub trait Chain<In, Out>: Send {
    /// See [`Operator::open`].
    fn open(&mut self, context: &dyn OpenOperator) -> Result<()>;
    /// Drains `batch` and appends to `out`.
    fn process(&mut self, batch: &mut Batch<In>, out: &mut Batch<Out>, store: &mut dyn StateStore) -> Result<()>;
    /// See [`Operator::on_watermark`].
    fn watermark(&mut self, watermark: Watermark, out: &mut Batch<Out>, store: &mut dyn StateStore) -> Result<()>;
    /// See [`Operator::on_barrier`].
    fn barrier(&mut self, barrier: Barrier, store: &mut dyn StateStore) -> Result<()>;
}

/// The end of a chain: appends to a batch.
struct ToBatch<'a, T> {
    batch: &'a mut Batch<T>,
    store: &'a mut dyn StateStore,
}

impl<T> Collector<T> for ToBatch<'_, T> {
    #[inline]
    fn collect(&mut self, record: Record<T>) -> Result<()> {
        self.batch.push(record);
        Ok(())
    }

    #[inline]
    fn state(&mut self) -> &mut dyn StateStore {
        self.store
    }
}

impl<In, Op: Operator<In>> Chain<In, Op::Out> for Op {
    fn open(&mut self, context: &dyn OpenOperator) -> Result<()> {
        Operator::open(self, context)
    }

    fn process(&mut self, batch: &mut Batch<In>, out: &mut Batch<Op::Out>, store: &mut dyn StateStore) -> Result<()> {
        out.reserve(batch.len());
        let mut collector = ToBatch { batch: out, store };
        for record in batch.drain(..) {
            self.on_record(record, &mut collector)?;
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: Watermark, out: &mut Batch<Op::Out>, store: &mut dyn StateStore) -> Result<()> {
        self.on_watermark(watermark, &mut ToBatch { batch: out, store })
    }

    fn barrier(&mut self, barrier: Barrier, store: &mut dyn StateStore) -> Result<()> {
        self.on_barrier(barrier, store)
    }
}
