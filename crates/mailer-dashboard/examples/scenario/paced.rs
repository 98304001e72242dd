//! A plain sink that can be slow.

use mailer_core::{Batch, Clock, Flush, Result, Sink, SinkFactory, WorkerContext};
use std::sync::Arc;
use std::time::Duration;

/// Accepts so many records a second and no more.
#[derive(Clone)]
pub(crate) struct Paced {
    pub(crate) per_second: f64,
}

pub(crate) struct PacedSink {
    per_second: f64,
    clock: Arc<dyn Clock>,
    began: Option<Duration>,
    taken: f64,
}

impl<T: Send + 'static> SinkFactory<T> for Paced {
    type Sink = PacedSink;

    fn build(&self, context: &WorkerContext) -> Result<PacedSink> {
        let (per_second, clock) = (self.per_second, context.clock.clone());
        Ok(PacedSink { per_second, clock, began: None, taken: 0.0 })
    }

    fn describe(&self) -> String {
        format!("a sink that takes {} records a second", self.per_second)
    }
}

impl<T: Send + 'static> Sink<T> for PacedSink {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let now = self.clock.monotonic();
        let began = *self.began.get_or_insert(now);
        let room = (now - began).as_secs_f64() * self.per_second - self.taken;
        let taken = (room.max(0.0) as usize).min(batch.len());
        batch.drain(..taken);
        self.taken += taken as f64;
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        Ok(Flush::Done)
    }
}
