//! A node with several readers: every branch gets every record.

use super::{Node, TaskContext};
use mailer_core::{Barrier, Batch, Record, Result, Watermark};

pub(crate) struct Fanout<T> {
    branches: Vec<Box<dyn Node<T>>>,
    /// Known where the author made the branches, and there only: `T: Clone` is asked of `Stream::clone`.
    copy: fn(&T) -> T,
    scratch: Batch<T>,
}

impl<T> Fanout<T> {
    pub(crate) fn new(branches: Vec<Box<dyn Node<T>>>, copy: fn(&T) -> T) -> Self {
        Self { branches, copy, scratch: Batch::new() }
    }

    fn each(
        &mut self,
        cx: &mut TaskContext,
        mut call: impl FnMut(&mut dyn Node<T>, &mut TaskContext) -> Result<()>,
    ) -> Result<()> {
        self.branches.iter_mut().try_for_each(|branch| call(branch.as_mut(), cx))
    }
}

impl<T: Send> Node<T> for Fanout<T> {
    fn push(&mut self, batch: &mut Batch<T>, cx: &mut TaskContext) -> Result<()> {
        let Some((last, others)) = self.branches.split_last_mut() else { return Ok(()) };
        for branch in others {
            let copies =
                batch.iter().map(|record| Record { timestamp: record.timestamp, value: (self.copy)(&record.value) });
            self.scratch.extend(copies);
            branch.push(&mut self.scratch, cx)?;
        }
        last.push(batch, cx)
    }

    fn flush(&mut self, cx: &mut TaskContext) -> Result<bool> {
        let mut clear = true;
        for branch in &mut self.branches {
            clear &= branch.flush(cx)?;
        }
        Ok(clear)
    }

    fn flush_partial(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.each(cx, |branch, cx| branch.flush_partial(cx))
    }

    fn watermark(&mut self, watermark: Watermark, cx: &mut TaskContext) -> Result<()> {
        self.each(cx, |branch, cx| branch.watermark(watermark, cx))
    }

    fn idle(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.each(cx, |branch, cx| branch.idle(cx))
    }

    fn barrier(&mut self, barrier: Barrier, cx: &mut TaskContext) -> Result<()> {
        self.each(cx, |branch, cx| branch.barrier(barrier, cx))
    }

    fn end(&mut self, cx: &mut TaskContext) -> Result<()> {
        self.each(cx, |branch, cx| branch.end(cx))
    }
}
