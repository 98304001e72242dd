//! A stage fed by other stages.

use super::{Progress, Task, TaskCore};
use crate::edge::Receiver;
use crate::input_gate::InputGate;
use crate::job::status::StageMeter;
use crate::node::Node;
use mailer_core::{Barrier, Batch, Element, Record, Result, Timestamp, Watermark};
use std::mem::size_of;

pub(crate) struct StageTask<T> {
    core: TaskCore,
    gate: InputGate<T>,
    root: Box<dyn Node<T>>,
    meter: StageMeter,
    /// Where a restored task begins: given to its nodes before the first record, or a record that was late would not be.
    restored: Option<Watermark>,
    /// Event time of the first record of the batch in hand.
    at: Timestamp,
    finished: bool,
}

impl<T: Send> StageTask<T> {
    pub(crate) fn new(core: TaskCore, inputs: Vec<Receiver<T>>, root: Box<dyn Node<T>>, meter: StageMeter) -> Self {
        let gate = InputGate::new(inputs, core.restored, core.shared.clone());
        let restored = (core.restored > Watermark::NONE).then_some(core.restored);
        Self { core, gate, root, meter, restored, at: Timestamp::MIN, finished: false }
    }

    fn on_batch(&mut self, mut batch: Batch<T>, bytes: usize) -> Result<()> {
        self.meter.count(batch.len());
        self.at = batch.first().map_or(Timestamp::MIN, |record| record.timestamp);
        self.core.context.bytes_per_record = (bytes / batch.len().max(1)).max(size_of::<Record<T>>());
        self.root.push(&mut batch, &mut self.core.context)?;
        batch.clear();
        self.gate.recycle(batch);
        Ok(())
    }

    fn on_barrier(&mut self, barrier: Barrier) -> Result<()> {
        self.root.barrier(barrier, &mut self.core.context)?;
        self.core.hand_in(barrier, None, self.gate.watermark())
    }

    fn on_watermark(&mut self, watermark: Watermark) -> Result<()> {
        self.meter.note(watermark);
        self.root.watermark(watermark, &mut self.core.context)
    }
}

impl<T: Send> Task for StageTask<T> {
    fn name(&self) -> &str {
        &self.core.name
    }

    fn origin(&self) -> String {
        format!("event time {}", self.at.0)
    }

    fn meter(&self) -> &StageMeter {
        &self.meter
    }

    fn step(&mut self) -> Result<Progress> {
        self.core.context.now = self.core.shared.clock.wall();
        if !self.root.flush(&mut self.core.context)? {
            return Ok(Progress::Blocked);
        }
        if self.finished {
            return Ok(Progress::Finished);
        }
        if let Some(watermark) = self.restored.take() {
            self.on_watermark(watermark)?;
            return Ok(Progress::Worked);
        }
        let Some(parcel) = self.gate.poll() else {
            self.root.flush_partial(&mut self.core.context)?;
            return Ok(Progress::Waiting);
        };
        match parcel.element {
            Element::Batch(batch) => self.on_batch(batch, parcel.bytes)?,
            Element::Watermark(watermark) => self.on_watermark(watermark)?,
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
