//! A fused chain inside a stage.

use super::{Node, SideReader, TaskContext};
use mailer_core::{Barrier, Batch, Result, Watermark};
use mailer_operators::{Chain, ChainContext, SideOutputs};

pub(crate) struct ChainNode<In, Out> {
    chain: Box<dyn Chain<In, Out>>,
    out: Batch<Out>,
    sides: SideOutputs,
    readers: Vec<Box<dyn SideReader>>,
    next: Box<dyn Node<Out>>,
    /// How far event time has moved behind the chain.
    passed: Watermark,
    /// The chain holds elements that will still come out.
    waits: bool,
    /// The input has become idle, and nobody was told yet: what the chain holds comes first.
    idle_held: bool,
}

impl<In, Out> ChainNode<In, Out> {
    /// `readers` take the side outputs; they are told every marker, as `next` is.
    pub(crate) fn new(
        chain: Box<dyn Chain<In, Out>>,
        next: Box<dyn Node<Out>>,
        readers: Vec<Box<dyn SideReader>>,
    ) -> Self {
        let mut sides = SideOutputs::default();
        readers.iter().for_each(|reader| reader.subscribe(&mut sides));
        let (passed, waits, idle_held) = (Watermark::NONE, false, false);
        Self { chain, out: Batch::new(), sides, readers, next, passed, waits, idle_held }
    }

    fn forward(&mut self, cx: &mut TaskContext) -> Result<()> {
        for reader in &mut self.readers {
            reader.push(&mut self.sides, cx)?;
        }
        if self.out.is_empty() { Ok(()) } else { self.next.push(&mut self.out, cx) }
    }

    /// Only what moves event time is passed on.
    fn pass(&mut self, watermark: Watermark, cx: &mut TaskContext) -> Result<()> {
        if watermark <= self.passed {
            return Ok(());
        }
        self.passed = watermark;
        self.each(cx, |node, cx| node.watermark(watermark, cx))?;
        self.next.watermark(watermark, cx)
    }

    fn each(
        &mut self,
        cx: &mut TaskContext,
        mut call: impl FnMut(&mut dyn SideReader, &mut TaskContext) -> Result<()>,
    ) -> Result<()> {
        self.readers.iter_mut().try_for_each(|reader| call(reader.as_mut(), cx))
    }

    fn flush_next(&mut self, cx: &mut TaskContext) -> Result<bool> {
        let mut clear = self.next.flush(cx)?;
        for reader in &mut self.readers {
            clear &= reader.flush(cx)?;
        }
        Ok(clear)
    }
}

fn lend<'a>(cx: &'a mut TaskContext, sides: &'a mut SideOutputs) -> ChainContext<'a> {
    ChainContext { store: cx.store.as_mut(), sides, now: cx.now }
}

impl<In: Send, Out: Send> Node<In> for ChainNode<In, Out> {
    fn push(&mut self, batch: &mut Batch<In>, cx: &mut TaskContext) -> Result<()> {
        self.idle_held = false;
        self.chain.process(batch, &mut self.out, lend(cx, &mut self.sides))?;
        self.forward(cx)
    }

    /// What the chain does without input happens here, and only when its last output is gone.
    fn flush(&mut self, cx: &mut TaskContext) -> Result<bool> {
        if !self.flush_next(cx)? {
            return Ok(false);
        }
        let polled = self.chain.poll(&mut self.out, lend(cx, &mut self.sides))?;
        self.forward(cx)?;
        if let Some(watermark) = polled.watermark {
            // The records of the poll come first, and each node holds one element back at most.
            self.pass(watermark, cx)?;
        }
        self.waits = polled.waits;
        if self.idle_held && !self.waits {
            self.idle(cx)?;
        }
        Ok(self.flush_next(cx)? && polled.takes_more)
    }

    fn flush_partial(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.each(cx, |node, cx| node.flush_partial(cx))?;
        self.next.flush_partial(cx)
    }

    fn watermark(&mut self, watermark: Watermark, cx: &mut TaskContext) -> Result<()> {
        self.idle_held = false;
        let passed = self.chain.watermark(watermark, &mut self.out, lend(cx, &mut self.sides))?;
        self.forward(cx)?;
        self.pass(passed, cx)
    }

    fn idle(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.idle_held = self.waits;
        if self.idle_held {
            return Ok(());
        }
        self.each(cx, |node, cx| node.idle(cx))?;
        self.next.idle(cx)
    }

    fn barrier(&mut self, barrier: Barrier, cx: &mut TaskContext) -> Result<()> {
        let began = cx.clock.monotonic();
        self.chain.barrier(barrier, cx.store.as_mut())?;
        cx.flushing += cx.clock.monotonic().saturating_sub(began);
        self.each(cx, |node, cx| node.barrier(barrier, cx))?;
        self.next.barrier(barrier, cx)
    }

    fn end(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.each(cx, |node, cx| node.end(cx))?;
        self.next.end(cx)
    }
}
