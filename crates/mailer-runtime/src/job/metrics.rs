//! Metrics through the `metrics` facade: a picture of the job, about once a second, becomes counters, gauges and
//! histograms. The data path knows nothing of it.

mod samples;
mod series;
mod table;

pub use table::{METRICS, Metric, MetricKind};

use super::status::JobStatus;
use mailer_core::Timestamp;
use metrics::{Key, Level, Metadata, Recorder, SharedString, Unit};
use samples::Memory;
use series::{AllSeries, Change};
use std::sync::Arc;

/// A recorder that several threads may use.
pub(crate) type SharedRecorder = Arc<dyn Recorder + Send + Sync>;

const METADATA: Metadata<'static> = Metadata::new("mailer", Level::INFO, Some(module_path!()));

/// Brings recorders up to date: those the program gave, and the global one of its process, where there is one.
///
/// A series that was told before is found again by its labels: nothing is allocated for it. Recorders are asked for it
/// every time, because the global one may be set, and theirs may be let go, while the job runs.
#[derive(Default)]
pub(crate) struct Exporter {
    recorders: Vec<SharedRecorder>,
    described: bool,
    series: AllSeries,
    memory: Memory,
}

impl Exporter {
    pub(crate) fn new(recorders: Vec<SharedRecorder>) -> Self {
        Self { recorders, ..Self::default() }
    }

    /// `now` is wall time: what has an age is measured against it.
    pub(crate) fn export(&mut self, status: &JobStatus, now: Timestamp) {
        let Self { recorders, described, series, memory } = self;
        if !std::mem::replace(described, true) {
            METRICS.iter().for_each(|metric| each(recorders, |recorder| metric.describe(recorder)));
        }
        series.begin();
        samples::of(status, now, memory, &mut |metric, labels, value| {
            let (key, change) = series.note(metric, labels, value);
            each(recorders, |recorder| change.tell(key, recorder));
        });
        series.end(|key| each(recorders, |recorder| Change::Set(f64::NAN).tell(key, recorder)));
    }
}

fn each(recorders: &[SharedRecorder], tell: impl Fn(&dyn Recorder)) {
    metrics::with_recorder(&tell);
    recorders.iter().for_each(|recorder| tell(recorder.as_ref()));
}

impl Change {
    fn tell(self, key: &Key, recorder: &dyn Recorder) {
        match self {
            Change::Add(count) => recorder.register_counter(key, &METADATA).increment(count),
            Change::Grow(more) => recorder.register_gauge(key, &METADATA).increment(more),
            Change::Set(value) => recorder.register_gauge(key, &METADATA).set(value),
            Change::Record(value) => recorder.register_histogram(key, &METADATA).record(value),
        }
    }
}

impl Metric {
    fn describe(&self, recorder: &dyn Recorder) {
        let (name, unit) = (self.name.into(), Unit::from_string(self.unit));
        let meaning = SharedString::const_str(self.meaning);
        match self.kind {
            MetricKind::Counter => recorder.describe_counter(name, unit, meaning),
            MetricKind::Gauge | MetricKind::Time => recorder.describe_gauge(name, unit, meaning),
            MetricKind::Histogram => recorder.describe_histogram(name, unit, meaning),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{SinkStatus, SourceStatus, SplitStatus, StageStatus, WorkerStatus};
    use metrics::{Counter, CounterFn, Gauge, GaugeFn, Histogram, KeyName, Label};
    use std::collections::HashMap;
    use std::sync::Mutex;
    use std::time::Duration;

    /// Keeps counters and gauges.
    #[derive(Clone, Default)]
    struct Ledger(Arc<Mutex<HashMap<Key, f64>>>);

    struct Line(Ledger, Key);

    impl Line {
        fn change(&self, change: impl Fn(f64) -> f64) {
            let mut lines = self.0.0.lock().unwrap();
            let value = lines.entry(self.1.clone()).or_default();
            *value = change(*value);
        }
    }

    impl CounterFn for Line {
        fn increment(&self, value: u64) {
            self.change(|before| before + value as f64);
        }

        fn absolute(&self, _: u64) {}
    }

    impl GaugeFn for Line {
        fn increment(&self, value: f64) {
            self.change(|before| before + value);
        }

        fn decrement(&self, value: f64) {
            self.change(|before| before - value);
        }

        fn set(&self, value: f64) {
            self.change(|_| value);
        }
    }

    impl Recorder for Ledger {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(Arc::new(Line(self.clone(), key.clone())))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(Arc::new(Line(self.clone(), key.clone())))
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    impl Ledger {
        fn read(&self, name: &'static str, labels: &[(&'static str, &'static str)]) -> Option<f64> {
            let labels = [("job", "job")].iter().chain(labels).map(|(name, value)| Label::new(*name, *value));
            self.0.lock().unwrap().get(&Key::from_parts(name, labels.collect::<Vec<_>>())).copied()
        }
    }

    /// What is written after each of these pictures.
    fn exported(pictures: &[JobStatus], mut read: impl FnMut(&Ledger)) {
        let ledger = Ledger::default();
        let mut exporter = Exporter::new(vec![Arc::new(ledger.clone())]);
        for status in pictures {
            exporter.export(status, Timestamp(0));
            read(&ledger);
        }
    }

    fn picture(change: impl FnOnce(&mut JobStatus)) -> JobStatus {
        let mut status = JobStatus::new("job");
        change(&mut status);
        status
    }

    #[test]
    fn a_restart_of_the_job_takes_nothing_back() {
        let sink = |records| picture(|status| status.sinks = vec![SinkStatus { name: "out".into(), records }]);
        let mut written = Vec::new();
        let read = |ledger: &Ledger| written.extend(ledger.read("mailer_sink_records_total", &[("sink", "out")]));
        exported(&[10, 25, 4, 9].map(sink), read);
        assert_eq!(written, [10.0, 25.0, 29.0, 34.0]);
    }

    fn busy(millis: u64, batches: u64, records: u64) -> JobStatus {
        let worker = WorkerStatus { records, batches, busy: Duration::from_millis(millis), ..WorkerStatus::default() };
        let (name, flushing) = ("s".to_owned(), Duration::ZERO);
        let (workers, watermark, is_keyed, by_worker) = (1, None, false, vec![worker]);
        picture(|status| {
            status.stages = vec![StageStatus { name, workers, records, watermark, is_keyed, flushing, by_worker }];
        })
    }

    #[test]
    fn times_are_fractions_that_only_grow() {
        let mut written = Vec::new();
        let labels = [("stage", "s"), ("worker", "0")];
        let read = |ledger: &Ledger| written.extend(ledger.read("mailer_stage_busy_seconds_total", &labels));
        exported(&[250, 750, 500].map(|millis| busy(millis, 0, 0)), read);
        assert_eq!(written, [0.25, 0.75, 1.25]);
    }

    #[test]
    fn batches_are_averaged_over_what_came_since() {
        let mut written = Vec::new();
        let read = |ledger: &Ledger| written.extend(ledger.read("mailer_stage_batch_records", &[("stage", "s")]));
        exported(
            &[(2, 200), (4, 1_000), (4, 1_000), (1, 30)].map(|(batches, records)| busy(0, batches, records)),
            read,
        );
        assert_eq!((&written[..2], written[3]), (&[100.0, 400.0][..], 30.0));
        assert!(written[2].is_nan(), "nothing came: {written:?}");
    }

    #[test]
    fn what_has_gone_is_not_said_again() {
        let split = |name: &str, lag| {
            let split = name.to_owned();
            SplitStatus {
                split,
                worker: 0,
                watermark: None,
                idle: false,
                paused: false,
                lag: Some(lag),
                position: None,
            }
        };
        let source = |splits: Vec<SplitStatus>| {
            picture(|status| status.sources = vec![SourceStatus { name: "in".into(), splits }])
        };
        let mut lags = Vec::new();
        let read = |ledger: &Ledger| {
            let lag = |partition| {
                let labels = [("source", "in"), ("partition", partition)];
                ledger.read("mailer_source_lag_records", &labels).filter(|lag| !lag.is_nan())
            };
            lags.push((lag("a"), lag("b")));
        };
        let pictures = [vec![split("a", 1), split("b", 2)], vec![split("b", 3)], vec![split("a", 4), split("b", 5)]];
        exported(&pictures.map(source), read);
        assert_eq!(lags, [(Some(1.0), Some(2.0)), (None, Some(3.0)), (Some(4.0), Some(5.0))]);
    }
}
