//! A source over values in memory.

use super::Places;
use mailer_core::{
    Batch, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SourceFactory, SplitId, SplitState, StartAt, Timestamp,
    WorkerContext,
};
use std::mem::size_of;
use std::sync::Arc;

/// Takes the event time, in ms since the Unix epoch, out of a value.
type TimestampOf<T> = Arc<dyn Fn(&T) -> i64 + Send + Sync>;

/// Reads values in memory, once. A value's timestamp is its place unless [`SliceSource::timestamps`] says otherwise.
///
/// With [`SliceSource::splits`] the values are dealt out to several splits, so that several workers read.
///
/// ```
/// use mailer_runtime::{Collect, Env, SliceSource};
/// let out = Collect::new();
/// let env = Env::new("doubles");
/// env.source("numbers", SliceSource::new(1..=3)).map(|x| x * 2).sink("out", out.clone());
/// env.execute()?;
/// assert_eq!(out.take(), [2, 4, 6]);
/// # Ok::<(), mailer_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct SliceSource<T> {
    values: Arc<[T]>,
    timestamp: Option<TimestampOf<T>>,
    splits: u32,
    bytes_each: usize,
}

impl<T: Clone + Send + Sync + 'static> SliceSource<T> {
    /// Reads `values` as one split.
    pub fn new(values: impl IntoIterator<Item = T>) -> Self {
        let values = values.into_iter().collect();
        Self { values, timestamp: None, splits: 1, bytes_each: size_of::<Record<T>>() }
    }

    /// Takes event times, in ms since the Unix epoch, out of the values.
    #[must_use]
    pub fn timestamps(mut self, timestamp: impl Fn(&T) -> i64 + Send + Sync + 'static) -> Self {
        self.timestamp = Some(Arc::new(timestamp));
        self
    }

    /// What one value counts for where edges are bounded in bytes: say it when values own memory outside themselves
    /// (strings, vectors). Default: the size of the value itself.
    #[must_use]
    pub fn bytes_each(mut self, bytes: usize) -> Self {
        self.bytes_each = bytes;
        self
    }

    /// Deals the values out to `splits` splits: value `i` belongs to split `i % splits`.
    #[must_use]
    pub fn splits(mut self, splits: u32) -> Self {
        self.splits = splits.max(1);
        self
    }
}

impl<T: Clone + Send + Sync + 'static> SourceFactory for SliceSource<T> {
    type Source = SliceReader<T>;

    fn build(&self, _context: &WorkerContext) -> Result<SliceReader<T>> {
        Ok(SliceReader { slice: self.clone(), places: Places::default() })
    }

    fn describe(&self) -> String {
        format!("slice of {} values", self.values.len())
    }
}

/// The source behind [`SliceSource`].
pub struct SliceReader<T> {
    slice: SliceSource<T>,
    places: Places,
}

impl<T: Clone + Send + Sync + 'static> SliceReader<T> {
    /// Values of a split that have not been read.
    fn left(&self, split: &SplitId) -> u64 {
        let all = self.slice.values.len().saturating_sub(split.index as usize).div_ceil(self.slice.splits as usize);
        (all as u64).saturating_sub(self.places.position(split))
    }

    /// The values of one split from `position` on; `false` when it is read to its end.
    fn read(&mut self, split: &SplitId, position: u64, out: &mut Batch<T>) -> bool {
        let stride = self.slice.splits as usize;
        let first = split.index as usize + position as usize * stride;
        let indices = (first..self.slice.values.len()).step_by(stride).take(MAX_BATCH_RECORDS);
        for i in indices {
            let value = self.slice.values[i].clone();
            let timestamp = self.slice.timestamp.as_ref().map_or(i as i64, |timestamp| timestamp(&value));
            out.push(Record::new(Timestamp(timestamp), value));
        }
        self.places.advance(split, out.len());
        !out.is_empty()
    }
}

impl<T: Clone + Send + Sync + 'static> Source for SliceReader<T> {
    type Item = T;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok((0..self.slice.splits).map(|i| SplitId::new(format!("slice-{i}"), i)).collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        Ok(self.places.assign(split, start))
    }

    fn poll(&mut self, out: &mut Batch<T>) -> Result<Polled> {
        for _ in 0..self.places.len() {
            let Some((split, position)) = self.places.next() else { continue };
            if self.read(&split, position, out) {
                return Ok(Polled::Records { split, bytes: out.len() * self.slice.bytes_each });
            }
        }
        let waits = self.places.paused().any(|split| self.left(split) > 0);
        Ok(if waits { Polled::Nothing { caught_up: false } } else { Polled::Ended })
    }

    fn split_state(&self, split: &SplitId) -> Option<SplitState> {
        Some(if self.left(split) == 0 { SplitState::Ended } else { SplitState::Reading })
    }

    fn lag(&self, split: &SplitId) -> Option<u64> {
        Some(self.left(split))
    }

    fn pause(&mut self, split: &SplitId, paused: bool) -> bool {
        self.places.pause(split, paused);
        true
    }

    fn position(&self, split: &SplitId) -> u64 {
        self.places.position(split)
    }

    fn offset(&self, split: &SplitId) -> Option<u64> {
        Some(self.position(split))
    }
}
