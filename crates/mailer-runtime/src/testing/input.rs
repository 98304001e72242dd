//! A source that is fed by a test.

use crate::connectors::Places;
use crate::shared::lock;
use mailer_core::{
    Batch, Error, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SourceFactory, SplitId, SplitState, StartAt,
    Timestamp, WorkerContext,
};
use std::collections::BTreeSet;
use std::mem::size_of;
use std::sync::{Arc, Mutex};

/// A source that a test feeds through [`TestDriver`](super::TestDriver). Clones are the same input: one goes into the
/// pipeline, one stays in the test. Like a Kafka topic it keeps what it was given, so that a restored pipeline reads on
/// from where its checkpoint stands.
#[derive(Debug)]
pub struct TestInput<T>(Arc<Mutex<Log<T>>>);

#[derive(Debug)]
struct Log<T> {
    splits: Vec<Vec<Record<T>>>,
    /// The names under which it was put into a pipeline.
    sources: BTreeSet<String>,
}

impl<T> Clone for TestInput<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for TestInput<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TestInput<T> {
    /// An empty input of one split.
    pub fn new() -> Self {
        Self::with_splits(1)
    }

    /// An empty input of several splits, for what depends on them: watermarks are the least of all splits.
    pub fn with_splits(splits: u32) -> Self {
        let splits = (0..splits.max(1)).map(|_| Vec::new()).collect();
        Self(Arc::new(Mutex::new(Log { splits, sources: BTreeSet::new() })))
    }

    /// How many values it was given.
    pub fn len(&self) -> usize {
        lock(&self.0).splits.iter().map(Vec::len).sum()
    }

    /// Whether it was given none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn push(&self, split: u32, record: Record<T>) -> Result<()> {
        let mut log = lock(&self.0);
        let splits = log.splits.len();
        let split = log.splits.get_mut(split as usize).ok_or_else(|| {
            Error::refused(format!("there is no split {split}: the input has {splits}; use `TestInput::with_splits`"))
        })?;
        split.push(record);
        Ok(())
    }

    pub(super) fn sources(&self) -> BTreeSet<String> {
        lock(&self.0).sources.clone()
    }
}

impl<T: Clone + Send + 'static> SourceFactory for TestInput<T> {
    type Source = TestReader<T>;

    fn build(&self, context: &WorkerContext) -> Result<TestReader<T>> {
        lock(&self.0).sources.insert(context.name.clone());
        Ok(TestReader { input: self.clone(), places: Places::default() })
    }

    fn describe(&self) -> String {
        "test input".into()
    }
}

/// The source behind [`TestInput`].
#[derive(Debug)]
pub struct TestReader<T> {
    input: TestInput<T>,
    places: Places,
}

impl<T> TestReader<T> {
    fn left(&self, split: &SplitId) -> u64 {
        let held = lock(&self.input.0).splits.get(split.index as usize).map_or(0, Vec::len) as u64;
        held.saturating_sub(self.places.position(split))
    }
}

impl<T: Clone + Send + 'static> Source for TestReader<T> {
    type Item = T;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        let splits = lock(&self.input.0).splits.len() as u32;
        Ok((0..splits).map(|i| SplitId::new(format!("test-{i}"), i)).collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        Ok(self.places.assign(split, start))
    }

    fn poll(&mut self, out: &mut Batch<T>) -> Result<Polled> {
        for _ in 0..self.places.len() {
            let Some((split, position)) = self.places.next() else { continue };
            let log = lock(&self.input.0);
            let held = log.splits.get(split.index as usize).into_iter().flatten();
            out.extend(held.skip(position as usize).take(MAX_BATCH_RECORDS).cloned());
            if !out.is_empty() {
                self.places.advance(&split, out.len());
                return Ok(Polled::Records { split, bytes: out.len() * size_of::<Record<T>>() });
            }
        }
        let waits = self.places.paused().any(|split| self.left(split) > 0);
        Ok(Polled::Nothing { caught_up: !waits })
    }

    fn position(&self, split: &SplitId) -> u64 {
        self.places.position(split)
    }

    fn offset(&self, split: &SplitId) -> Option<u64> {
        Some(self.position(split))
    }

    fn split_state(&self, split: &SplitId) -> Option<SplitState> {
        Some(if self.left(split) == 0 { SplitState::CaughtUp } else { SplitState::Reading })
    }

    fn lag(&self, split: &SplitId) -> Option<u64> {
        Some(self.left(split))
    }

    fn pause(&mut self, split: &SplitId, paused: bool) -> bool {
        self.places.pause(split, paused);
        true
    }
}

/// A record of a test.
pub(super) fn record<T>(time: i64, value: T) -> Record<T> {
    Record::new(Timestamp(time), value)
}
