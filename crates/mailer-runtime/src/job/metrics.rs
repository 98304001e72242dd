//! Metrics through the `metrics` facade: a picture of the job, about once a second, becomes counters, gauges and
//! histograms. The data path knows nothing of it.

mod samples;
mod table;

pub use table::{METRICS, Metric, MetricKind};

use super::status::JobStatus;
use mailer_core::{CheckpointId, Timestamp};
use metrics::{Key, Label, Level, Metadata, Recorder, SharedString, Unit};
use samples::Sample;
use std::collections::HashMap;
use std::sync::Arc;

/// A recorder that several threads may use.
pub(crate) type SharedRecorder = Arc<dyn Recorder + Send + Sync>;

const METADATA: Metadata<'static> = Metadata::new("mailer", Level::INFO, Some(module_path!()));

/// Brings recorders up to date: those the program gave, and the global one of its process, where there is one.
#[derive(Default)]
pub(crate) struct Exporter {
    recorders: Vec<SharedRecorder>,
    described: bool,
    /// What was said of each counter before: what recorders are told is the difference, so that a restart of the job,
    /// where counting begins anew, takes nothing back.
    totals: HashMap<Key, u64>,
    /// The newest checkpoint whose times are in the histograms.
    timed: CheckpointId,
}

impl Exporter {
    pub(crate) fn new(recorders: Vec<SharedRecorder>) -> Self {
        Self { recorders, ..Self::default() }
    }

    /// `now` is wall time: what has an age is measured against it.
    pub(crate) fn export(&mut self, status: &JobStatus, now: Timestamp) {
        let describe = !std::mem::replace(&mut self.described, true);
        let samples = samples::of(status, now, &mut self.timed);
        let changes = self.changes(samples);
        let tell = |recorder: &dyn Recorder| {
            if describe {
                METRICS.iter().for_each(|metric| metric.describe(recorder));
            }
            changes.iter().for_each(|change| change.tell(recorder));
        };
        metrics::with_recorder(tell);
        self.recorders.iter().for_each(|recorder| tell(recorder.as_ref()));
    }

    fn changes(&mut self, samples: Vec<Sample>) -> Vec<Change> {
        samples.into_iter().map(|sample| self.change(sample)).collect()
    }

    fn change(&mut self, Sample { metric, labels, value }: Sample) -> Change {
        let labels: Vec<Label> = labels.into_iter().map(|(name, value)| Label::new(name, value)).collect();
        let key = Key::from_parts(metric.name, labels);
        let to = match metric.kind {
            MetricKind::Counter => To::Add(self.added(&key, value as u64)),
            MetricKind::Gauge => To::Set(value),
            MetricKind::Histogram => To::Record(value),
        };
        Change { key, to }
    }

    fn added(&mut self, key: &Key, total: u64) -> u64 {
        let before = self.totals.insert(key.clone(), total).unwrap_or_default();
        // Less than before: counting has begun anew.
        if total >= before { total - before } else { total }
    }
}

struct Change {
    key: Key,
    to: To,
}

enum To {
    Add(u64),
    Set(f64),
    Record(f64),
}

impl Change {
    fn tell(&self, recorder: &dyn Recorder) {
        match self.to {
            To::Add(count) => recorder.register_counter(&self.key, &METADATA).increment(count),
            To::Set(value) => recorder.register_gauge(&self.key, &METADATA).set(value),
            To::Record(value) => recorder.register_histogram(&self.key, &METADATA).record(value),
        }
    }
}

impl Metric {
    fn describe(&self, recorder: &dyn Recorder) {
        let (name, unit) = (self.name.into(), Unit::from_string(self.unit));
        let meaning = SharedString::const_str(self.meaning);
        match self.kind {
            MetricKind::Counter => recorder.describe_counter(name, unit, meaning),
            MetricKind::Gauge => recorder.describe_gauge(name, unit, meaning),
            MetricKind::Histogram => recorder.describe_histogram(name, unit, meaning),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::SinkStatus;
    use metrics::{Counter, CounterFn, Gauge, Histogram, KeyName};
    use std::sync::Mutex;

    /// Keeps counters alone.
    #[derive(Clone, Default)]
    struct Ledger(Arc<Mutex<HashMap<Key, u64>>>);

    struct Line(Ledger, Key);

    impl CounterFn for Line {
        fn increment(&self, value: u64) {
            *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += value;
        }

        fn absolute(&self, _: u64) {}
    }

    impl Recorder for Ledger {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(Arc::new(Line(self.clone(), key.clone())))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn a_restart_of_the_job_takes_nothing_back() {
        let ledger = Ledger::default();
        let mut exporter = Exporter::new(vec![Arc::new(ledger.clone())]);
        let mut status = JobStatus::new("job");
        for records in [10, 25, 4, 9] {
            status.sinks = vec![SinkStatus { name: "out".into(), records }];
            exporter.export(&status, Timestamp(0));
        }
        let labels = vec![Label::new("job", "job"), Label::new("sink", "out")];
        let written = ledger.0.lock().unwrap()[&Key::from_parts("mailer_sink_records_total", labels)];
        assert_eq!(written, 25 + 9);
    }
}
