//! The reader of one side output of a chain, whatever its type.

use super::{Node, TaskContext};
use mailer_core::{Barrier, Result, Watermark};
use mailer_operators::{SideOutputs, SideTag};

/// What a [`super::ChainNode`] asks of the nodes behind its side outputs: [`Node`], but for how records come.
pub(crate) trait SideReader: Send {
    /// Says that the output is wanted.
    fn subscribe(&self, sides: &mut SideOutputs);
    /// Takes what the chain has put out under the tag.
    fn push(&mut self, sides: &mut SideOutputs, cx: &mut TaskContext) -> Result<()>;
    fn flush(&mut self, cx: &mut TaskContext) -> Result<bool>;
    fn flush_partial(&mut self, cx: &mut TaskContext) -> Result<()>;
    fn watermark(&mut self, watermark: Watermark, cx: &mut TaskContext) -> Result<()>;
    fn idle(&mut self, cx: &mut TaskContext) -> Result<()>;
    fn barrier(&mut self, barrier: Barrier, cx: &mut TaskContext) -> Result<()>;
    fn end(&mut self, cx: &mut TaskContext) -> Result<()>;
}

/// A node behind a tag.
pub(crate) struct Tagged<T> {
    pub(crate) tag: SideTag<T>,
    pub(crate) node: Box<dyn Node<T>>,
}

impl<T: Send + 'static> SideReader for Tagged<T> {
    fn subscribe(&self, sides: &mut SideOutputs) {
        sides.wanted(&self.tag);
    }

    fn push(&mut self, sides: &mut SideOutputs, cx: &mut TaskContext) -> Result<()> {
        match sides.find(&self.tag) {
            Some(batch) if !batch.is_empty() => self.node.push(batch, cx),
            _ => Ok(()),
        }
    }

    fn flush(&mut self, cx: &mut TaskContext) -> Result<bool> {
        self.node.flush(cx)
    }

    fn flush_partial(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.node.flush_partial(cx)
    }

    fn watermark(&mut self, watermark: Watermark, cx: &mut TaskContext) -> Result<()> {
        self.node.watermark(watermark, cx)
    }

    fn idle(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.node.idle(cx)
    }

    fn barrier(&mut self, barrier: Barrier, cx: &mut TaskContext) -> Result<()> {
        self.node.barrier(barrier, cx)
    }

    fn end(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.node.end(cx)
    }
}
