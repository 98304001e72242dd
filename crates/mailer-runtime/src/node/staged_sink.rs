//! The worker's half of an exactly-once sink: stages, and seals at the barrier.

use super::{Node, PartJob, TaskContext};
use crate::shared::JobShared;
use mailer_core::{Barrier, Batch, Result, Stager, Watermark};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) struct StagedSink<T, S> {
    name: String,
    stager: S,
    /// What this stager has added to the job's count of staged bytes since the last seal: taken off when it is sealed.
    counted: usize,
    written: Arc<AtomicU64>,
    shared: Arc<JobShared>,
    input: PhantomData<fn(T)>,
}

impl<T, S: Stager<T>> StagedSink<T, S> {
    pub(crate) fn new(name: String, stager: S, written: Arc<AtomicU64>, shared: Arc<JobShared>) -> Self {
        Self { name, stager, counted: 0, written, shared, input: PhantomData }
    }
}

impl<T: Send, S: Stager<T>> Node<T> for StagedSink<T, S> {
    fn push(&mut self, batch: &mut Batch<T>, _cx: &mut TaskContext) -> Result<()> {
        self.written.fetch_add(batch.len() as u64, Relaxed);
        self.stager.stage(batch).map_err(|e| e.context(format_args!("sink \"{}\"", self.name)))?;
        let staged = self.stager.staged_bytes();
        self.shared.staged.add(staged.saturating_sub(self.counted));
        self.counted = self.counted.max(staged);
        Ok(())
    }

    fn flush(&mut self, _cx: &mut TaskContext) -> Result<bool> {
        Ok(true)
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

    fn barrier(&mut self, barrier: Barrier, cx: &mut TaskContext) -> Result<()> {
        let sealed = self.stager.seal(barrier.checkpoint);
        let job = sealed.map_err(|e| e.context(format_args!("sink \"{}\"", self.name)))?;
        let bytes = std::mem::take(&mut self.counted);
        let name = self.name.clone();
        let job = move || job().map_err(|e| e.context(format_args!("sink \"{name}\"")));
        cx.jobs.push(PartJob::Seal { job: Box::new(job), bytes });
        Ok(())
    }

    fn end(&mut self, _cx: &mut TaskContext) -> Result<()> {
        Ok(())
    }
}
