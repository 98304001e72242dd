//! Counters of one run, shared with its tasks: updated per batch, read when somebody asks for the status.

use super::status::{
    EdgeStatus, JobStatus, LookupStatus, OperatorStatus, SinkStatus, SourceStatus, SplitStatus, StageStatus,
    StateStatus, WorkerStatus,
};
use crate::edge::{Capacity, Meter};
use crate::executor::AssignedSplit;
use crate::shared::{JobShared, lock};
use crate::tally::Tally;
use mailer_core::{Timestamp, Watermark};
use mailer_operators::Counter;
use mailer_state::{Lookups, OpenBackend, StateUsage};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct RunCounters {
    pub(crate) sources: Vec<(String, Mutex<Vec<Arc<SourceMeter>>>)>,
    pub(crate) stages: Vec<StageCounters>,
    pub(crate) sinks: Vec<(String, Arc<AtomicU64>)>,
    pub(crate) edges: Vec<EdgeCounters>,
    pub(crate) operators: Mutex<BTreeMap<(String, &'static str), Vec<Counter>>>,
    pub(crate) shared: Option<Arc<JobShared>>,
    pub(crate) backend: Option<Arc<dyn OpenBackend>>,
    /// Operators by the id under which their state is kept.
    pub(crate) operator_ids: BTreeMap<u32, String>,
    pub(crate) states: Mutex<Vec<StateMeter>>,
}

/// What one task says of its store, at its barriers.
#[derive(Clone, Debug)]
pub(crate) struct StateMeter(Arc<TaskState>);

#[derive(Debug)]
struct TaskState {
    stage: usize,
    usage: Mutex<Vec<StateUsage>>,
    /// By operator.
    lookups: Mutex<BTreeMap<u16, Lookups>>,
    flushing: Tally,
}

impl StateMeter {
    fn new(stage: usize) -> Self {
        let (usage, lookups, flushing) = <(Mutex<_>, Mutex<_>, Tally)>::default();
        Self(Arc::new(TaskState { stage, usage, lookups, flushing }))
    }

    pub(crate) fn set(&self, usage: Vec<StateUsage>) {
        *lock(&self.0.usage) = usage;
    }

    pub(crate) fn note_lookups(&self, operator: u16, lookups: Lookups) {
        *lock(&self.0.lookups).entry(operator).or_default() += lookups;
    }

    /// State was written back and frozen in so much time.
    pub(crate) fn note_flush(&self, took: Duration) {
        self.0.flushing.add_time(took);
    }
}

/// An edge: the meters of all its rings.
pub(crate) struct EdgeCounters {
    pub(crate) name: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// Of one ring.
    pub(crate) capacity: Capacity,
    pub(crate) meters: Vec<Arc<Meter>>,
}

/// A stage: the counters of each worker.
pub(crate) struct StageCounters {
    name: String,
    is_keyed: bool,
    workers: Vec<StageMeter>,
}

/// What one task counts. Only its thread writes, so nothing is contended.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageMeter(Arc<TaskCounters>);

#[derive(Debug)]
#[repr(align(128))] // no cache line with the counters of another worker
struct TaskCounters {
    records: Tally,
    batches: Tally,
    watermark: AtomicI64,
    /// By [`Spent`].
    spent: [Tally; 3],
}

impl Default for TaskCounters {
    fn default() -> Self {
        Self {
            records: Tally::default(),
            batches: Tally::default(),
            watermark: AtomicI64::new(i64::MIN),
            spent: Default::default(),
        }
    }
}

/// On what a task spends its time. While others have their turn on its thread it does none of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spent {
    /// In a step that did something.
    Busy,
    /// Until there is something to take in.
    Waiting,
    /// Until there is room for what is to go out.
    Blocked,
}

/// The splits of one source task, as it last described them.
#[derive(Default)]
pub(crate) struct SourceMeter(Mutex<Vec<SplitStatus>>);

impl StageMeter {
    /// One batch was taken in.
    pub(crate) fn count(&self, records: usize) {
        self.0.records.add(records as u64);
        self.0.batches.add(1);
    }

    pub(crate) fn note(&self, watermark: Watermark) {
        self.0.watermark.store(watermark.0.0, Relaxed);
    }

    pub(crate) fn spend(&self, on: Spent, time: Duration) {
        self.0.spent[on as usize].add_time(time);
    }

    fn spent(&self, on: Spent) -> Duration {
        self.0.spent[on as usize].time()
    }

    fn status(&self) -> WorkerStatus {
        WorkerStatus {
            records: self.0.records.get(),
            batches: self.0.batches.get(),
            watermark: Some(self.0.watermark.load(Relaxed)).filter(|time| *time > i64::MIN).map(Timestamp),
            busy: self.spent(Spent::Busy),
            waiting: self.spent(Spent::Waiting),
            blocked: self.spent(Spent::Blocked),
        }
    }
}

impl SourceMeter {
    pub(crate) fn set(&self, splits: Vec<SplitStatus>) {
        *lock(&self.0) = splits;
    }
}

impl StageCounters {
    pub(crate) fn new(name: &str, is_keyed: bool, workers: u16) -> Self {
        let workers = (0..workers).map(|_| StageMeter::default()).collect();
        Self { name: name.to_owned(), is_keyed, workers }
    }

    pub(crate) fn worker(&self, worker: u16) -> StageMeter {
        self.workers.get(usize::from(worker)).cloned().unwrap_or_default()
    }

    fn status(&self) -> StageStatus {
        let by_worker: Vec<_> = self.workers.iter().map(StageMeter::status).collect();
        StageStatus {
            name: self.name.clone(),
            workers: by_worker.len() as u16,
            records: by_worker.iter().map(|worker| worker.records).sum(),
            // `None` is less than any time: a worker that knows none holds the stage back.
            watermark: by_worker.iter().map(|worker| worker.watermark).min().flatten(),
            is_keyed: self.is_keyed,
            flushing: Duration::ZERO,
            by_worker,
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

    /// Every split with the task that reads it.
    pub(super) fn splits(&self) -> Vec<AssignedSplit> {
        let assigned = |status: SourceStatus| {
            let SourceStatus { name, splits } = status;
            splits.into_iter().map(move |SplitStatus { split, worker, .. }| AssignedSplit {
                source: name.clone(),
                worker,
                split,
            })
        };
        self.sources.iter().map(source_status).flat_map(assigned).collect()
    }

    /// For the store of one task.
    pub(crate) fn state_meter(&self, stage: usize) -> StateMeter {
        let meter = StateMeter::new(stage);
        lock(&self.states).push(meter.clone());
        meter
    }

    fn state_sizes(&self) -> Vec<StateStatus> {
        if let Some(all) = self.backend.as_ref().and_then(|backend| backend.usage()) {
            return vec![StateStatus { operator: None, entries: all.entries, bytes: all.bytes }];
        }
        let mut sizes: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
        for meter in lock(&self.states).iter() {
            for usage in lock(&meter.0.usage).iter() {
                let size = sizes.entry(usage.operator).or_default();
                *size = (size.0 + usage.entries, size.1 + usage.bytes);
            }
        }
        let status = |(id, (entries, bytes))| StateStatus { operator: Some(self.operator_name(id)), entries, bytes };
        sizes.into_iter().map(status).collect()
    }

    fn operator_name(&self, id: u16) -> String {
        self.operator_ids.get(&id.into()).cloned().unwrap_or_else(|| format!("operator {id}"))
    }

    fn lookups(&self) -> Vec<LookupStatus> {
        let mut sums: BTreeMap<u16, Lookups> = BTreeMap::new();
        for meter in lock(&self.states).iter() {
            for (operator, lookups) in lock(&meter.0.lookups).iter() {
                *sums.entry(*operator).or_default() += *lookups;
            }
        }
        let status = |(id, Lookups { hits, misses })| LookupStatus { operator: self.operator_name(id), hits, misses };
        sums.into_iter().map(status).collect()
    }

    /// The stages with the time their tasks have spent on writing state back.
    fn stages(&self) -> Vec<StageStatus> {
        let mut stages: Vec<_> = self.stages.iter().map(StageCounters::status).collect();
        for meter in lock(&self.states).iter() {
            if let Some(stage) = stages.get_mut(meter.0.stage) {
                stage.flushing += meter.0.flushing.time();
            }
        }
        stages
    }

    pub(super) fn read_into(&self, status: &mut JobStatus) {
        let Some(shared) = &self.shared else { return };
        status.staged_bytes = shared.staged.bytes();
        status.staging_budget = shared.staged.budget();
        status.sources = self.sources.iter().map(source_status).collect();
        status.stages = self.stages();
        status.operators = lock(&self.operators).iter().map(operator_status).collect();
        let sink = |(name, records): &(String, Arc<AtomicU64>)| SinkStatus {
            name: name.clone(),
            records: records.load(Relaxed),
        };
        status.sinks = self.sinks.iter().map(sink).collect();
        status.state_sizes = self.state_sizes();
        status.lookups = self.lookups();
        status.edges = self.edges.iter().map(EdgeCounters::status).collect();
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

impl EdgeCounters {
    fn status(&self) -> EdgeStatus {
        let rings = self.meters.len();
        EdgeStatus {
            name: self.name.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            batches: self.meters.iter().map(|meter| meter.batches()).sum(),
            capacity_batches: self.capacity.batches * rings,
            bytes: self.meters.iter().map(|meter| meter.bytes()).sum(),
            capacity_bytes: self.capacity.bytes * rings,
            records: self.meters.iter().map(|meter| meter.records()).sum(),
            refused: self.meters.iter().map(|meter| meter.refused()).sum(),
            blocked: self.meters.iter().map(|meter| meter.blocked()).sum(),
        }
    }
}
