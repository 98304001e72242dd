//! A fused chain inside a stage.

use super::{Node, TaskContext};
use mailer_core::{Barrier, Batch, Result, Watermark};
use mailer_operators::Chain;

pub(crate) struct ChainNode<In, Out> {
    chain: Box<dyn Chain<In, Out>>,
    out: Batch<Out>,
    next: Box<dyn Node<Out>>,
}

impl<In, Out> ChainNode<In, Out> {
    pub(crate) fn new(chain: Box<dyn Chain<In, Out>>, next: Box<dyn Node<Out>>) -> Self {
        Self { chain, out: Batch::new(), next }
    }

    fn forward(&mut self, cx: &mut TaskContext) -> Result<()> {
        if self.out.is_empty() { Ok(()) } else { self.next.push(&mut self.out, cx) }
    }
}

impl<In: Send, Out: Send> Node<In> for ChainNode<In, Out> {
    fn push(&mut self, batch: &mut Batch<In>, cx: &mut TaskContext) -> Result<()> {
        self.chain.process(batch, &mut self.out, cx.store.as_mut())?;
        self.forward(cx)
    }

    fn flush(&mut self, cx: &mut TaskContext) -> Result<bool> {
        self.next.flush(cx)
    }

    fn flush_partial(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.next.flush_partial(cx)
    }

    fn watermark(&mut self, watermark: Watermark, cx: &mut TaskContext) -> Result<()> {
        self.chain.watermark(watermark, &mut self.out, cx.store.as_mut())?;
        self.forward(cx)?;
        self.next.watermark(watermark, cx)
    }

    fn idle(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.next.idle(cx)
    }

    fn barrier(&mut self, barrier: Barrier, cx: &mut TaskContext) -> Result<()> {
        self.chain.barrier(barrier, cx.store.as_mut())?;
        self.next.barrier(barrier, cx)
    }

    fn end(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.next.end(cx)
    }
}
