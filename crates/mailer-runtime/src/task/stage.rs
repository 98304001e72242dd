//! A stage fed by other stages.

use super::{Progress, Task, TaskCore};
use crate::edge::Receiver;
use crate::input_gate::InputGate;
use crate::node::Node;
use mailer_core::{Barrier, Batch, Element, Record, Result, Timestamp};
use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) struct StageTask<T> {
    core: TaskCore,
    gate: InputGate<T>,
    root: Box<dyn Node<T>>,
    read: Arc<AtomicU64>,
    /// Event time of the first record of the batch in hand.
    at: Timestamp,
    finished: bool,
}

impl<T: Send> StageTask<T> {
    pub(crate) fn new(core: TaskCore, inputs: Vec<Receiver<T>>, root: Box<dyn Node<T>>, read: Arc<AtomicU64>) -> Self {
        let gate = InputGate::new(inputs, core.shared.clone());
        Self { core, gate, root, read, at: Timestamp::MIN, finished: false }
    }

    fn on_batch(&mut self, mut batch: Batch<T>, bytes: usize) -> Result<()> {
        self.read.fetch_add(batch.len() as u64, Relaxed);
        self.at = batch.first().map_or(Timestamp::MIN, |record| record.timestamp);
        self.core.context.bytes_per_record = (bytes / batch.len().max(1)).max(size_of::<Record<T>>());
        self.root.push(&mut batch, &mut self.core.context)?;
        batch.clear();
        self.gate.recycle(batch);
        Ok(())
    }

    fn on_barrier(&mut self, barrier: Barrier) -> Result<()> {
        self.root.barrier(barrier, &mut self.core.context)?;
        self.core.hand_in(barrier, None)
    }
}

impl<T: Send> Task for StageTask<T> {
    fn name(&self) -> &str {
        &self.core.name
    }

    fn origin(&self) -> String {
        format!("event time {}", self.at.0)
    }

    fn step(&mut self) -> Result<Progress> {
        if !self.root.flush(&mut self.core.context)? {
            return Ok(Progress::Waiting);
        }
        if self.finished {
            return Ok(Progress::Finished);
        }
        let Some(parcel) = self.gate.poll() else {
            self.root.flush_partial(&mut self.core.context)?;
            return Ok(Progress::Waiting);
        };
        match parcel.element {
            Element::Batch(batch) => self.on_batch(batch, parcel.bytes)?,
            Element::Watermark(watermark) => self.root.watermark(watermark, &mut self.core.context)?,
            Element::Idle => self.root.idle(&mut self.core.context)?,
            Element::Barrier(barrier) => self.on_barrier(barrier)?,
            Element::End => {
                self.root.end(&mut self.core.context)?;
                self.finished = true;
            }
        }
        Ok(Progress::Worked)
    }
}
