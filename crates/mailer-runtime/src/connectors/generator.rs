//! A source that makes its values.

use mailer_core::{
    Batch, Clock, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SourceFactory, SplitId, StartAt, Timestamp,
    WorkerContext,
};
use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

/// Makes `function(n)` for n = 0, 1, 2, …; value `n` has timestamp `n` ms unless [`Generator::timestamps`] says otherwise.
///
/// Several workers share the numbers: worker i of w makes n = i, i + w, …, so the set of values does not depend on their
/// number. A restored job goes on where it was; `function` must give the same value for the same `n`.
///
/// ```
/// use mailer_runtime::{Collect, Env, Generator};
/// let out = Collect::new();
/// let env = Env::new("squares");
/// env.source("numbers", Generator::new(|n| n * n).count(4)).partitions(1).sink("out", out.clone());
/// env.execute()?;
/// assert_eq!(out.take(), [0, 1, 4, 9]);
/// # Ok::<(), mailer_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct Generator<F> {
    function: F,
    count: Option<u64>,
    rate: Option<f64>,
    timestamp: Option<fn(u64) -> i64>,
    bytes_each: usize,
}

impl<T, F> Generator<F>
where
    T: Send + 'static,
    F: FnMut(u64) -> T + Clone + Send + Sync + 'static,
{
    /// Makes values without end and as fast as they are taken.
    pub fn new(function: F) -> Self {
        Self { function, count: None, rate: None, timestamp: None, bytes_each: size_of::<Record<T>>() }
    }

    /// Ends after `count` values, of all workers together.
    #[must_use]
    pub fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// At most so many values a second, of all workers together.
    #[must_use]
    pub fn rate(mut self, per_second: f64) -> Self {
        self.rate = Some(per_second);
        self
    }

    /// What one value counts for where edges are bounded in bytes: say it when values own memory outside themselves
    /// (strings, vectors). Default: the size of the value itself.
    #[must_use]
    pub fn bytes_each(mut self, bytes: usize) -> Self {
        self.bytes_each = bytes;
        self
    }

    /// Event times, in ms since the Unix epoch.
    #[must_use]
    pub fn timestamps(mut self, timestamp: fn(u64) -> i64) -> Self {
        self.timestamp = Some(timestamp);
        self
    }
}

impl<T, F> SourceFactory for Generator<F>
where
    T: Send + 'static,
    F: FnMut(u64) -> T + Clone + Send + Sync + 'static,
{
    type Source = GeneratorReader<F>;

    fn build(&self, context: &WorkerContext) -> Result<GeneratorReader<F>> {
        Ok(GeneratorReader {
            generator: self.clone(),
            splits: context.workers.into(),
            split: None,
            made: 0,
            clock: context.clock.clone(),
            began: None,
            paused: false,
        })
    }

    fn describe(&self) -> String {
        match self.count {
            Some(count) => format!("generator of {count} values"),
            None => "generator without end".into(),
        }
    }
}

/// The source behind [`Generator`].
pub struct GeneratorReader<F> {
    generator: Generator<F>,
    splits: u32,
    split: Option<SplitId>,
    /// Values made of this split.
    made: u64,
    clock: Arc<dyn Clock>,
    /// When the first value of this run was asked for, and how many had been made before.
    began: Option<(Duration, u64)>,
    paused: bool,
}

impl<F> GeneratorReader<F> {
    /// How many more may be made now.
    fn allowance(&mut self) -> u64 {
        let Some(rate) = self.generator.rate else { return MAX_BATCH_RECORDS as u64 };
        let now = self.clock.monotonic();
        let (began, before) = *self.began.get_or_insert((now, self.made));
        let due = (now - began).as_secs_f64() * rate / f64::from(self.splits);
        (before + due as u64).saturating_sub(self.made).min(MAX_BATCH_RECORDS as u64)
    }
}

impl<T, F> Source for GeneratorReader<F>
where
    T: Send + 'static,
    F: FnMut(u64) -> T + Clone + Send + Sync + 'static,
{
    type Item = T;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok((0..self.splits).map(|i| SplitId::new(format!("numbers-{i}-of-{}", self.splits), i)).collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        self.made = match start {
            StartAt::Configured | StartAt::Discovered => 0,
            StartAt::Position(position) => position,
        };
        self.split = Some(split.clone());
        Ok(self.made)
    }

    fn poll(&mut self, out: &mut Batch<T>) -> Result<Polled> {
        let Some(split) = self.split.clone() else { return Ok(Polled::Ended) };
        let end = self.generator.count.unwrap_or(u64::MAX);
        let number = |made: u64| u64::from(split.index) + made * u64::from(self.splits);
        if number(self.made) >= end {
            return Ok(Polled::Ended);
        }
        if self.paused {
            return Ok(Polled::Nothing { caught_up: false });
        }
        let (first, stride) = (number(self.made), u64::from(self.splits));
        for n in (first..end).step_by(stride as usize).take(self.allowance() as usize) {
            let timestamp = self.generator.timestamp.map_or(n as i64, |timestamp| timestamp(n));
            out.push(Record::new(Timestamp(timestamp), (self.generator.function)(n)));
        }
        if out.is_empty() {
            return Ok(Polled::Nothing { caught_up: true });
        }
        self.made += out.len() as u64;
        Ok(Polled::Records { split, bytes: out.len() * self.generator.bytes_each })
    }

    fn position(&self, _split: &SplitId) -> u64 {
        self.made
    }

    fn offset(&self, _split: &SplitId) -> Option<u64> {
        Some(self.made)
    }

    fn pause(&mut self, _split: &SplitId, paused: bool) -> bool {
        self.paused = paused;
        true
    }
}
