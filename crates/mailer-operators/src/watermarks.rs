//! Watermark strategies: how event time is told from the records of a source, split by split.
//!
//! A [`Watermarks`] holds a generator ([`WatermarkGenerator`]), where timestamps come from, and what happens when a split
//! falls silent or runs ahead. The runtime clones the generator once per split, combines the splits of a worker by the
//! minimum, and keeps every generator's state in the checkpoint.

mod generators;

pub use generators::{BoundedOutOfOrderness, Punctuated};

use mailer_core::{Batch, Record, Result, Timestamp, Watermark};
use std::sync::Arc;
use std::time::Duration;

/// Tells from the records of one split how far event time has moved in it.
pub trait WatermarkGenerator<T>: Clone + Send + Sync + 'static {
    /// A record was read.
    fn on_record(&mut self, timestamp: Timestamp, value: &T);
    /// No record with a timestamp below this one is expected any more. May go back; the runtime never does.
    fn current(&self) -> Watermark;
    /// Appends what a restored generator needs to go on.
    fn save(&self, out: &mut Vec<u8>);
    /// Goes on with what [`WatermarkGenerator::save`] wrote.
    fn restore(&mut self, saved: &[u8]) -> Result<()>;
}

/// Where a record's event time comes from.
pub trait Stamp<T>: Clone + Send + Sync + 'static {
    /// Sets it.
    fn stamp(&self, record: &mut Record<T>);
}

/// The timestamp the source gave.
#[derive(Clone, Copy, Debug)]
pub struct FromSource;

impl<T> Stamp<T> for FromSource {
    #[inline]
    fn stamp(&self, _record: &mut Record<T>) {}
}

/// A field of the value, or anything computed from it: milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub struct FromValue<F>(F);

impl<T, F: Fn(&T) -> i64 + Clone + Send + Sync + 'static> Stamp<T> for FromValue<F> {
    #[inline]
    fn stamp(&self, record: &mut Record<T>) {
        record.timestamp = Timestamp((self.0)(&record.value));
    }
}

/// How event time is told; given to a source's stream.
///
/// ```
/// use mailer_operators::Watermarks;
/// use std::time::Duration;
/// struct Order { placed_at: i64 }
/// let watermarks = Watermarks::bounded(Duration::from_secs(5))
///     .timestamps(|order: &Order| order.placed_at)
///     .idle_after(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
pub struct Watermarks<G = BoundedOutOfOrderness, S = FromSource> {
    generator: G,
    stamp: S,
    pacing: Pacing,
}

/// What of a strategy does not depend on the type of the records.
#[derive(Clone, Debug)]
pub struct Pacing {
    /// A split that is silent for so long, although it is read and caught up, holds no watermark back. `None`: never.
    pub idle_after: Option<Duration>,
    /// While records keep coming, a watermark at most so often.
    pub emit_every: Duration,
    /// Splits of one alignment group do not run ahead of each other by more than `max_drift`.
    pub alignment: Option<Alignment>,
}

/// See [`Watermarks::align`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Sources that name the same group are aligned with each other.
    pub group: String,
    /// How far a split may be ahead of the slowest.
    pub max_drift: Duration,
}

impl Watermarks {
    /// Records come at most `bound` late: the watermark is the largest timestamp so far minus `bound`.
    pub fn bounded(bound: Duration) -> Self {
        Self::custom(BoundedOutOfOrderness::new(bound))
    }

    /// Timestamps of a split never go back: the watermark is the largest timestamp so far.
    pub fn monotonic() -> Self {
        Self::bounded(Duration::ZERO)
    }
}

impl<F> Watermarks<Punctuated<F>> {
    /// Some records carry a watermark: `function` returns it, in milliseconds since the Unix epoch.
    ///
    /// ```
    /// use mailer_operators::Watermarks;
    /// let _ = Watermarks::punctuated(|line: &String, _timestamp| line.strip_prefix("mark ")?.parse().ok());
    /// ```
    pub fn punctuated<T>(function: F) -> Self
    where
        F: Fn(&T, Timestamp) -> Option<i64> + Clone + Send + Sync + 'static,
    {
        Self::custom(Punctuated::new(function))
    }
}

impl<G> Watermarks<G> {
    /// A generator of your own.
    pub fn custom(generator: G) -> Self {
        let pacing = Pacing { idle_after: None, emit_every: Duration::from_millis(10), alignment: None };
        Self { generator, stamp: FromSource, pacing }
    }
}

impl<G, S> Watermarks<G, S> {
    /// Takes event time, in milliseconds since the Unix epoch, out of the value. Default: the source's timestamp.
    #[must_use]
    pub fn timestamps<T, F: Fn(&T) -> i64>(self, function: F) -> Watermarks<G, FromValue<F>> {
        Watermarks { generator: self.generator, stamp: FromValue(function), pacing: self.pacing }
    }

    /// A split that stays silent for `timeout` *while it is read, caught up, and nothing downstream is blocked* stops
    /// holding the watermark back, until its next record. Default: never.
    #[must_use]
    pub fn idle_after(mut self, timeout: Duration) -> Self {
        self.pacing.idle_after = Some(timeout);
        self
    }

    /// Pauses a split whose watermark is ahead of the slowest of `group` by more than `max_drift`. Default: no alignment.
    #[must_use]
    pub fn align(mut self, group: &str, max_drift: Duration) -> Self {
        self.pacing.alignment = Some(Alignment { group: group.to_owned(), max_drift });
        self
    }

    /// While records keep coming, sends a watermark at most so often; zero sends one behind every batch. When a source has
    /// nothing to read, its watermark goes at once. Default: 10 ms.
    #[must_use]
    pub fn emit_every(mut self, interval: Duration) -> Self {
        self.pacing.emit_every = interval;
        self
    }

    /// The strategy without its types, for the runtime: one virtual call per batch.
    pub fn erase<T>(self) -> (Arc<dyn MakeSplitClock<T>>, Pacing)
    where
        T: 'static,
        G: WatermarkGenerator<T>,
        S: Stamp<T>,
    {
        (Arc::new(Prototype { generator: self.generator, stamp: self.stamp }), self.pacing)
    }
}

/// Tells the time of one split. Called once per batch.
pub trait SplitClock<T>: Send {
    /// Sets the timestamps of a batch and looks at its records.
    fn on_batch(&mut self, batch: &mut Batch<T>);
    /// See [`WatermarkGenerator::current`].
    fn current(&self) -> Watermark;
    /// See [`WatermarkGenerator::save`].
    fn save(&self, out: &mut Vec<u8>);
    /// See [`WatermarkGenerator::restore`].
    fn restore(&mut self, saved: &[u8]) -> Result<()>;
}

/// Makes a [`SplitClock`] for every split.
pub trait MakeSplitClock<T>: Send + Sync {
    /// A fresh one.
    fn make(&self) -> Box<dyn SplitClock<T>>;
}

#[derive(Clone)]
struct Prototype<G, S> {
    generator: G,
    stamp: S,
}

impl<T, G: WatermarkGenerator<T>, S: Stamp<T>> MakeSplitClock<T> for Prototype<G, S> {
    fn make(&self) -> Box<dyn SplitClock<T>> {
        Box::new(self.clone())
    }
}

impl<T, G: WatermarkGenerator<T>, S: Stamp<T>> SplitClock<T> for Prototype<G, S> {
    fn on_batch(&mut self, batch: &mut Batch<T>) {
        for record in batch {
            self.stamp.stamp(record);
            self.generator.on_record(record.timestamp, &record.value);
        }
    }

    fn current(&self) -> Watermark {
        self.generator.current()
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.generator.save(out);
    }

    fn restore(&mut self, saved: &[u8]) -> Result<()> {
        self.generator.restore(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stamps_a_batch_and_goes_on_after_a_restore() {
        let strategy = Watermarks::bounded(Duration::from_millis(5)).timestamps(|value: &i64| *value * 10);
        let (clocks, _) = strategy.erase::<i64>();
        let mut clock = clocks.make();
        assert_eq!(clock.current(), Watermark::NONE);
        let mut batch = vec![Record::new(Timestamp(0), 3), Record::new(Timestamp(0), 2)];
        clock.on_batch(&mut batch);
        assert_eq!(batch.iter().map(|record| record.timestamp.0).collect::<Vec<_>>(), [30, 20]);
        assert_eq!(clock.current(), Watermark(Timestamp(25)));
        let mut saved = Vec::new();
        clock.save(&mut saved);
        let mut restored = clocks.make();
        restored.restore(&saved).unwrap();
        assert_eq!(restored.current(), Watermark(Timestamp(25)));
    }
}
