//! Counters of one run, shared with its tasks: updated per batch, read when somebody asks for the status.

use super::status::{EdgeStatus, JobStatus, OperatorStatus, SinkStatus, SourceStatus, SplitStatus, StageStatus};
use crate::edge::{Capacity, Meter};
use crate::shared::{JobShared, lock};
use mailer_core::{Timestamp, Watermark};
use mailer_operators::Counter;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub(crate) struct RunCounters {
    pub(crate) sources: Vec<(String, Mutex<Vec<Arc<SourceMeter>>>)>,
    pub(crate) stages: Vec<StageCounters>,
    pub(crate) sinks: Vec<(String, Arc<AtomicU64>)>,
    pub(crate) edges: Vec<(String, Capacity, Vec<Arc<Meter>>)>,
    pub(crate) operators: Mutex<BTreeMap<(String, &'static str), Vec<Counter>>>,
    pub(crate) shared: Option<Arc<JobShared>>,
}

/// A stage: one counter over all workers, one watermark a worker.
pub(crate) struct StageCounters {
    name: String,
    records: Arc<AtomicU64>,
    watermarks: Vec<Arc<AtomicI64>>,
}

/// What one task counts.
#[derive(Clone)]
pub(crate) struct StageMeter {
    records: Arc<AtomicU64>,
    watermark: Arc<AtomicI64>,
}

/// The splits of one source task, as it last described them.
#[derive(Default)]
pub(crate) struct SourceMeter(Mutex<Vec<SplitStatus>>);

impl StageMeter {
    pub(crate) fn count(&self, records: usize) {
        self.records.fetch_add(records as u64, Relaxed);
    }

    pub(crate) fn note(&self, watermark: Watermark) {
        self.watermark.store(watermark.0.0, Relaxed);
    }
}

impl SourceMeter {
    pub(crate) fn set(&self, splits: Vec<SplitStatus>) {
        *lock(&self.0) = splits;
    }
}

impl StageCounters {
    pub(crate) fn new(name: &str, workers: u16) -> Self {
        let unknown = |_| Arc::new(AtomicI64::new(i64::MIN));
        Self { name: name.to_owned(), records: Arc::default(), watermarks: (0..workers).map(unknown).collect() }
    }

    pub(crate) fn worker(&self, worker: u16) -> StageMeter {
        let watermark = self.watermarks.get(usize::from(worker)).cloned().unwrap_or_default();
        StageMeter { records: self.records.clone(), watermark }
    }

    fn status(&self) -> StageStatus {
        let least = self.watermarks.iter().map(|watermark| watermark.load(Relaxed)).min();
        StageStatus {
            name: self.name.clone(),
            workers: self.watermarks.len() as u16,
            records: self.records.load(Relaxed),
            watermark: least.filter(|least| *least > i64::MIN).map(Timestamp),
        }
    }
}

impl RunCounters {
    /// A meter for one more task of a source.
    pub(crate) fn source(&self, name: &str) -> Arc<SourceMeter> {
        let meter = Arc::<SourceMeter>::default();
        if let Some((_, meters)) = self.sources.iter().find(|(source, _)| source == name) {
            lock(meters).push(meter.clone());
        }
        meter
    }

    /// A counter of one worker's operator.
    pub(crate) fn operator(&self, name: &str, counts: &'static str) -> Counter {
        let counter = Counter::default();
        lock(&self.operators).entry((name.to_owned(), counts)).or_default().push(counter.clone());
        counter
    }

    pub(super) fn read_into(&self, status: &mut JobStatus) {
        let Some(shared) = &self.shared else { return };
        status.staged_bytes = shared.staged.bytes();
        status.sources = self.sources.iter().map(source_status).collect();
        status.stages = self.stages.iter().map(StageCounters::status).collect();
        status.operators = lock(&self.operators).iter().map(operator_status).collect();
        let sink = |(name, records): &(String, Arc<AtomicU64>)| SinkStatus {
            name: name.clone(),
            records: records.load(Relaxed),
        };
        status.sinks = self.sinks.iter().map(sink).collect();
        status.edges = self.edges.iter().map(edge_status).collect();
    }
}

fn source_status((name, meters): &(String, Mutex<Vec<Arc<SourceMeter>>>)) -> SourceStatus {
    let mut splits: Vec<_> = lock(meters).iter().flat_map(|meter| lock(&meter.0).clone()).collect();
    splits.sort_by(|a, b| a.split.cmp(&b.split));
    SourceStatus { name: name.clone(), splits }
}

fn operator_status(((name, counts), counters): (&(String, &'static str), &Vec<Counter>)) -> OperatorStatus {
    OperatorStatus { name: name.clone(), counts, count: counters.iter().map(Counter::get).sum() }
}

fn edge_status((name, capacity, meters): &(String, Capacity, Vec<Arc<Meter>>)) -> EdgeStatus {
    EdgeStatus {
        name: name.clone(),
        batches: meters.iter().map(|meter| meter.batches.load(Relaxed)).sum(),
        bytes: meters.iter().map(|meter| meter.bytes.load(Relaxed)).sum(),
        capacity_bytes: capacity.bytes * meters.len(),
        refused: meters.iter().map(|meter| meter.refused.load(Relaxed)).sum(),
    }
}
