//! What was said of each series before: pure. Counters and times are told as differences, and what has gone is ended.

use super::table::{Metric, MetricKind};
use hashbrown::HashTable;
use metrics::{Key, Label};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// What recorders are told of a series.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Add(u64),
    /// A gauge is so much higher. Told as a difference: another start of the job in this process goes on where one ended.
    Grow(f64),
    Set(f64),
    Record(f64),
}

/// Every series of a job, found by its labels.
#[derive(Default)]
pub(super) struct AllSeries {
    table: HashTable<Series>,
    /// One look at the job after the other.
    look: u64,
}

struct Series {
    metric: &'static Metric,
    key: Key,
    hash: u64,
    /// The total at the look before: a restart of the job, where counting begins anew, must take nothing back.
    before: f64,
    /// When it was heard of last.
    look: u64,
}

impl AllSeries {
    pub(super) fn begin(&mut self) {
        self.look += 1;
    }

    /// `labels` are the values, in the order of the metric's names.
    pub(super) fn note(&mut self, metric: &'static Metric, labels: &[&str], value: f64) -> (&Key, Change) {
        let hash = hash(metric, labels);
        let entry = self.table.entry(hash, |series| series.is(metric, labels), |series| series.hash);
        let series = entry.or_insert_with(|| Series::new(metric, labels, hash)).into_mut();
        series.look = self.look;
        let change = series.change(value);
        (&series.key, change)
    }

    /// Ends the gauges of which nothing was heard since [`AllSeries::begin`].
    pub(super) fn end(&mut self, mut ended: impl FnMut(&Key)) {
        let look = self.look;
        self.table.retain(|series| {
            let has_gone = series.metric.kind == MetricKind::Gauge && series.look != look;
            if has_gone {
                ended(&series.key);
            }
            !has_gone
        });
    }
}

fn hash(metric: &Metric, labels: &[&str]) -> u64 {
    let mut hasher = FxHasher::default();
    (metric.name, labels).hash(&mut hasher);
    hasher.finish()
}

impl Series {
    fn new(metric: &'static Metric, labels: &[&str], hash: u64) -> Self {
        let labels = metric.labels.iter().zip(labels).map(|(name, value)| Label::new(*name, (*value).to_owned()));
        let key = Key::from_parts(metric.name, labels.collect::<Vec<_>>());
        Self { metric, key, hash, before: 0.0, look: 0 }
    }

    fn is(&self, metric: &Metric, labels: &[&str]) -> bool {
        self.metric.name == metric.name && self.key.labels().map(Label::value).eq(labels.iter().copied())
    }

    fn change(&mut self, value: f64) -> Change {
        match self.metric.kind {
            MetricKind::Counter => Change::Add(self.added(value) as u64),
            MetricKind::Time => Change::Grow(self.added(value)),
            MetricKind::Gauge => Change::Set(value),
            MetricKind::Histogram => Change::Record(value),
        }
    }

    fn added(&mut self, total: f64) -> f64 {
        let before = std::mem::replace(&mut self.before, total);
        // Less than before: counting has begun anew.
        if total >= before { total - before } else { total }
    }
}
