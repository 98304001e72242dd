//! Slows a Kafka source down, by the clock: a crash test needs time, and many checkpoints, to crash in.

use mailer_core::{Batch, Clock, Polled, Record, Result, Source, SourceFactory, SplitId, StartAt, WorkerContext};
use mailer_kafka::{KafkaReader, KafkaRecord, KafkaSource, Position, Raw};
use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

/// Hands out the records of a Kafka source a few at a time, no faster than `per_second` a second and worker.
pub struct Paced {
    inner: KafkaSource<Raw>,
    per_second: f64,
}

impl Paced {
    /// Paces `inner`.
    pub fn new(inner: KafkaSource<Raw>, per_second: f64) -> Self {
        Self { inner, per_second }
    }
}

impl SourceFactory for Paced {
    type Source = PacedReader;

    fn build(&self, context: &WorkerContext) -> Result<PacedReader> {
        let clock = context.clock.clone();
        let inner = self.inner.build(context)?;
        Ok(PacedReader {
            inner,
            clock,
            began: None,
            per_second: self.per_second,
            read: 0,
            held: VecDeque::new(),
            split: None,
        })
    }

    fn describe(&self) -> String {
        format!("{} at {}/s", self.inner.describe(), self.per_second)
    }
}

/// The source behind [`Paced`].
pub struct PacedReader {
    inner: KafkaReader<Raw>,
    clock: Arc<dyn Clock>,
    /// The first poll: a slow start earns no burst.
    began: Option<Duration>,
    per_second: f64,
    read: u64,
    /// Read from `split` and not handed out yet.
    held: VecDeque<Record<KafkaRecord>>,
    split: Option<SplitId>,
}

impl PacedReader {
    /// How many records may be handed out now.
    fn allowance(&mut self) -> usize {
        let now = self.clock.monotonic();
        let due = (now - *self.began.get_or_insert(now)).as_secs_f64() * self.per_second;
        (due as u64).saturating_sub(self.read) as usize
    }
}

impl Source for PacedReader {
    type Item = KafkaRecord;
    type Position = Position;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        self.inner.splits()
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<Position>) -> Result<Position> {
        self.inner.assign(split, start)
    }

    fn poll(&mut self, out: &mut Batch<KafkaRecord>) -> Result<Polled> {
        let allowance = self.allowance();
        if allowance == 0 {
            return Ok(Polled::Nothing { caught_up: false });
        }
        if self.held.is_empty() {
            match self.inner.poll(out)? {
                Polled::Records { split, .. } => self.split = Some(split),
                other => return Ok(other),
            }
            self.held.extend(out.drain(..));
        }
        out.extend(self.held.drain(..allowance.min(self.held.len())));
        self.read += out.len() as u64;
        let bytes = out.len() * size_of::<Record<KafkaRecord>>();
        match self.split.clone() {
            Some(split) => Ok(Polled::Records { split, bytes }),
            None => Ok(Polled::Nothing { caught_up: false }),
        }
    }

    /// The first record that was not handed out; the inner source stands behind all it has read.
    fn position(&self, split: &SplitId) -> Position {
        let mut position = self.inner.position(split);
        if self.split.as_ref() == Some(split)
            && let Some(first) = self.held.front()
        {
            position.offset = first.value.offset;
        }
        position
    }

    fn on_completed(&mut self, id: mailer_core::CheckpointId) -> Result<()> {
        self.inner.on_completed(id)
    }
}
