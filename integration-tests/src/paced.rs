//! Slows a source down, by the clock: a crash test needs time to crash in.

use mailer_core::{Batch, Clock, Polled, Result, Source, SourceFactory, SplitId, StartAt, WorkerContext};
use std::sync::Arc;
use std::time::Duration;

/// Reads `inner` no faster than `per_second` records a second and worker.
pub struct Paced<F> {
    inner: F,
    per_second: f64,
}

impl<F> Paced<F> {
    /// Paces `inner`.
    pub fn new(inner: F, per_second: f64) -> Self {
        Self { inner, per_second }
    }
}

impl<F: SourceFactory> SourceFactory for Paced<F> {
    type Source = PacedReader<F::Source>;

    fn build(&self, context: &WorkerContext) -> Result<Self::Source> {
        let clock = context.clock.clone();
        let (began, inner) = (clock.monotonic(), self.inner.build(context)?);
        Ok(PacedReader { inner, clock, began, per_second: self.per_second, read: 0 })
    }

    fn is_replayable(&self) -> bool {
        self.inner.is_replayable()
    }

    fn describe(&self) -> String {
        format!("{} at {}/s", self.inner.describe(), self.per_second)
    }
}

/// The source behind [`Paced`].
pub struct PacedReader<S: Source> {
    inner: S,
    clock: Arc<dyn Clock>,
    began: Duration,
    per_second: f64,
    read: u64,
}

impl<S: Source> Source for PacedReader<S> {
    type Item = S::Item;
    type Position = S::Position;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        self.inner.splits()
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<S::Position>) -> Result<S::Position> {
        self.inner.assign(split, start)
    }

    /// One whole batch of the inner source when its time has come: positions stay those of the inner source.
    fn poll(&mut self, out: &mut Batch<S::Item>) -> Result<Polled> {
        let due = (self.clock.monotonic() - self.began).as_secs_f64() * self.per_second;
        if self.read as f64 > due {
            return Ok(Polled::Nothing { caught_up: false });
        }
        let polled = self.inner.poll(out)?;
        self.read += out.len() as u64;
        Ok(polled)
    }

    fn position(&self, split: &SplitId) -> S::Position {
        self.inner.position(split)
    }

    fn on_completed(&mut self, id: mailer_core::CheckpointId) -> Result<()> {
        self.inner.on_completed(id)
    }
}
