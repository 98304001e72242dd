//! A plain sink at the end of a stage.

use super::{Node, PartJob, TaskContext};
use mailer_core::{Barrier, Batch, Error, Flush, Result, Sink, Watermark};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) struct PlainSink<T, S> {
    name: String,
    sink: S,
    pending: Batch<T>,
    written: Arc<AtomicU64>,
}

impl<T, S: Sink<T>> PlainSink<T, S> {
    pub(crate) fn new(name: String, sink: S, written: Arc<AtomicU64>) -> Self {
        Self { name, sink, pending: Batch::new(), written }
    }

    fn write(&mut self) -> Result<bool> {
        if self.pending.is_empty() {
            return Ok(true);
        }
        let before = self.pending.len();
        self.sink.write(&mut self.pending).map_err(|e| e.context(format_args!("sink \"{}\"", self.name)))?;
        self.written.fetch_add((before - self.pending.len()) as u64, Relaxed);
        Ok(self.pending.is_empty())
    }
}

impl<T: Send, S: Sink<T>> Node<T> for PlainSink<T, S> {
    fn push(&mut self, batch: &mut Batch<T>, _cx: &mut TaskContext) -> Result<()> {
        if self.pending.is_empty() {
            std::mem::swap(&mut self.pending, batch);
        } else {
            self.pending.append(batch);
        }
        self.write().map(|_| ())
    }

    fn flush(&mut self, _cx: &mut TaskContext) -> Result<bool> {
        self.write()
    }

    fn flush_partial(&mut self, _cx: &mut TaskContext) -> Result<()> {
        Ok(())
    }

    fn watermark(&mut self, _: Watermark, _cx: &mut TaskContext) -> Result<()> {
        Ok(())
    }

    fn idle(&mut self, _cx: &mut TaskContext) -> Result<()> {
        Ok(())
    }

    fn barrier(&mut self, _: Barrier, cx: &mut TaskContext) -> Result<()> {
        if !self.pending.is_empty() {
            return Err(Error::internal(format!("sink \"{}\" met a barrier with records before it", self.name)));
        }
        let name = self.name.clone();
        match self.sink.flush().map_err(|e| e.context(format_args!("sink \"{name}\"")))? {
            Flush::Done => {}
            Flush::Pending(job) => cx
                .jobs
                .push(PartJob::Flush(Box::new(move || job().map_err(|e| e.context(format_args!("sink \"{name}\"")))))),
        }
        Ok(())
    }

    fn end(&mut self, _cx: &mut TaskContext) -> Result<()> {
        Ok(())
    }
}
