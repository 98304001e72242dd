//! What a picture of a job says of each metric: pure.

use super::table::{self, Metric};
use crate::job::status::{EdgeStatus, JobState, JobStatus, SourceStatus, StageStatus};
use crate::job::timeline::CheckpointOutcome;
use mailer_core::{CheckpointId, Timestamp};
use std::time::Duration;

/// Takes a metric, its label values in order, and its value: the total, for what is counted.
pub(super) type Tell<'a> = dyn FnMut(&'static Metric, &[&str], f64) + 'a;

/// What must be known of the look before.
#[derive(Default)]
pub(super) struct Memory {
    /// The newest checkpoint whose times have been told.
    timed: CheckpointId,
    /// Records and batches of every stage.
    taken: Vec<(u64, u64)>,
}

/// No metric has more labels.
const MOST_LABELS: usize = 4;

/// Tells samples of one job.
struct Samples<'a, 'b> {
    job: &'a str,
    now: Timestamp,
    tell: &'a mut Tell<'b>,
}

/// All samples.
pub(super) fn of(status: &JobStatus, now: Timestamp, memory: &mut Memory, tell: &mut Tell<'_>) {
    let mut samples = Samples { job: &status.job, now, tell };
    samples.job(status);
    status.stages.iter().for_each(|stage| samples.stage(stage, status));
    samples.batches(status, &mut memory.taken);
    status.edges.iter().for_each(|edge| samples.edge(edge));
    status.sources.iter().for_each(|source| samples.source(source, status));
    samples.output(status);
    samples.state(status);
    samples.checkpoints(status);
    samples.observe(status, &mut memory.timed);
}

impl Samples<'_, '_> {
    fn put(&mut self, metric: &'static Metric, values: &[&str], value: f64) {
        let mut labels = [self.job; MOST_LABELS];
        let count = values.len() + 1;
        labels[1..count].copy_from_slice(values);
        (self.tell)(metric, &labels[..count], value);
    }

    fn count(&mut self, metric: &'static Metric, values: &[&str], total: u64) {
        self.put(metric, values, total as f64);
    }

    fn flag(&mut self, metric: &'static Metric, values: &[&str], is: bool) {
        self.put(metric, values, f64::from(u8::from(is)));
    }

    fn time(&mut self, metric: &'static Metric, values: &[&str], time: Duration) {
        self.put(metric, values, time.as_secs_f64());
    }

    /// Nothing is said before the first watermark, and at true end of input.
    fn lag(&mut self, metric: &'static Metric, values: &[&str], watermark: Option<Timestamp>) {
        if let Some(Timestamp(time)) = watermark.filter(|time| time.0 > i64::MIN && time.0 < i64::MAX) {
            self.put(metric, values, self.now.0.saturating_sub(time) as f64 / 1_000.0);
        }
    }

    fn job(&mut self, status: &JobStatus) {
        for state in JobState::ALL {
            self.flag(&table::JOB_STATE, &[state.as_str()], state == status.state);
        }
        self.count(&table::JOB_RESTARTS, &[], status.restarts.into());
        if let Some(recovery) = &status.recovery {
            self.time(&table::RECOVERY_DURATION, &[], recovery.took);
        }
        for (kind, count) in &status.error_counts {
            self.count(&table::ERRORS, &[&kind.to_string()], *count);
        }
    }

    fn stage(&mut self, stage: &StageStatus, status: &JobStatus) {
        let name = stage.name.as_str();
        self.count(&table::STAGE_RECORDS, &[name], stage.records);
        self.count(&table::STAGE_BATCHES, &[name], stage.by_worker.iter().map(|worker| worker.batches).sum());
        self.lag(&table::STAGE_WATERMARK_LAG, &[name], stage.watermark);
        let slow = status.bottleneck.as_ref().map(|bottleneck| bottleneck.stage.as_str());
        self.flag(&table::STAGE_BOTTLENECK, &[name], slow == Some(name));
        if !stage.flushing.is_zero() {
            self.time(&table::STATE_FLUSH, &[name], stage.flushing);
        }
        for (number, worker) in stage.by_worker.iter().enumerate() {
            let labels = [name, &number.to_string()];
            self.time(&table::STAGE_BUSY, &labels, worker.busy);
            self.time(&table::STAGE_WAITING, &labels, worker.waiting);
            self.time(&table::STAGE_BLOCKED, &labels, worker.blocked);
        }
    }

    /// How large batches were since the look before; nothing when none came.
    fn batches(&mut self, status: &JobStatus, taken: &mut Vec<(u64, u64)>) {
        taken.resize(status.stages.len(), (0, 0));
        for (stage, before) in status.stages.iter().zip(taken) {
            let now = (stage.records, stage.by_worker.iter().map(|worker| worker.batches).sum::<u64>());
            // Less than before: counting has begun anew.
            let since = if now.1 >= before.1 { *before } else { (0, 0) };
            *before = now;
            let (records, batches) = (now.0.saturating_sub(since.0), now.1 - since.1);
            if batches > 0 {
                self.put(&table::STAGE_BATCH, &[&stage.name], records as f64 / batches as f64);
            }
        }
    }

    fn edge(&mut self, edge: &EdgeStatus) {
        let name = [edge.name.as_str()];
        self.count(&table::EDGE_RECORDS, &name, edge.records);
        self.count(&table::EDGE_REFUSED, &name, edge.refused);
        self.time(&table::EDGE_BLOCKED, &name, edge.blocked);
        self.put(&table::EDGE_QUEUED_BATCHES, &name, edge.batches as f64);
        self.put(&table::EDGE_CAPACITY_BATCHES, &name, edge.capacity_batches as f64);
        self.put(&table::EDGE_QUEUED_BYTES, &name, edge.bytes as f64);
        self.put(&table::EDGE_CAPACITY_BYTES, &name, edge.capacity_bytes as f64);
        self.put(&table::EDGE_FULLNESS, &name, edge.fullness());
    }

    fn source(&mut self, source: &SourceStatus, status: &JobStatus) {
        let name = source.name.as_str();
        let standing = status.standing.iter().find(|standing| standing.source == source.name);
        self.time(&table::SOURCE_STANDING, &[name], standing.map_or(Duration::ZERO, |standing| standing.standing));
        for split in &source.splits {
            let labels = [name, split.split.as_str()];
            if let Some(lag) = split.lag {
                self.put(&table::SOURCE_LAG, &labels, lag as f64);
            }
            if let Some(position) = split.position {
                self.put(&table::SOURCE_POSITION, &labels, position as f64);
            }
            self.lag(&table::SOURCE_WATERMARK_LAG, &labels, split.watermark.map(|watermark| watermark.0));
            self.flag(&table::SOURCE_IDLE, &labels, split.idle);
            self.flag(&table::SOURCE_PAUSED, &labels, split.paused);
        }
    }

    fn output(&mut self, status: &JobStatus) {
        for sink in &status.sinks {
            self.count(&table::SINK_RECORDS, &[&sink.name], sink.records);
        }
        for operator in &status.operators {
            self.count(&table::OPERATOR_EVENTS, &[&operator.name, operator.counts], operator.count);
        }
        self.put(&table::STAGING_BYTES, &[], status.staged_bytes as f64);
        self.put(&table::STAGING_BUDGET, &[], status.staging_budget as f64);
        for target in &status.publishes {
            let name = [target.target.as_str()];
            self.count(&table::PUBLISH_TRANSACTIONS, &name, target.transactions);
            self.count(&table::PUBLISH_RETRIES, &name, target.retries);
            self.count(&table::PUBLISH_FENCED, &name, target.fenced);
            self.count(&table::PUBLISH_RECORDS, &name, target.records);
            self.count(&table::PUBLISH_BYTES, &name, target.bytes);
        }
    }

    fn state(&mut self, status: &JobStatus) {
        for state in &status.state_sizes {
            let operator = [state.operator.as_deref().unwrap_or("all")];
            self.put(&table::STATE_ENTRIES, &operator, state.entries as f64);
            self.put(&table::STATE_BYTES, &operator, state.bytes as f64);
        }
        for lookups in &status.lookups {
            self.count(&table::STATE_HITS, &[&lookups.operator], lookups.hits);
            self.count(&table::STATE_MISSES, &[&lookups.operator], lookups.misses);
        }
    }

    fn checkpoints(&mut self, status: &JobStatus) {
        self.count(&table::CHECKPOINTS_COMPLETED, &[], status.completed);
        self.count(&table::CHECKPOINTS_FAILED, &[], status.failed);
        self.count(&table::CHECKPOINTS_SKIPPED, &[], status.skipped);
        let running = status.checkpoints.iter().find(|checkpoint| checkpoint.outcome == CheckpointOutcome::Running);
        self.time(&table::CHECKPOINT_RUNNING, &[], running.map_or(Duration::ZERO, |checkpoint| checkpoint.took()));
        let is_completed = |outcome: &CheckpointOutcome| *outcome == CheckpointOutcome::Completed;
        let last = status.checkpoints.iter().rev().find(|checkpoint| is_completed(&checkpoint.outcome));
        if let Some(last) = last {
            let took = i64::try_from(last.took().as_millis()).unwrap_or(i64::MAX);
            let age = self.now.0.saturating_sub(last.started.0.saturating_add(took)).max(0);
            self.put(&table::CHECKPOINT_AGE, &[], age as f64 / 1_000.0);
            self.put(&table::CHECKPOINT_STATE_BYTES, &[], last.state_bytes as f64);
            self.put(&table::CHECKPOINT_OUTPUT_BYTES, &[], last.output_bytes as f64);
        }
    }

    fn observe(&mut self, status: &JobStatus, timed: &mut CheckpointId) {
        let is_new = |id: CheckpointId| id > *timed;
        let completed = status.checkpoints.iter().filter(|one| one.outcome == CheckpointOutcome::Completed);
        let new: Vec<_> = completed.filter(|checkpoint| is_new(checkpoint.id)).collect();
        for checkpoint in new {
            *timed = (*timed).max(checkpoint.id);
            self.time(&table::CHECKPOINT_DURATION, &[], checkpoint.took());
            for (phase, took) in &checkpoint.phases {
                self.time(&table::CHECKPOINT_PHASE, &[phase.as_str()], *took);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bottleneck::{Bottleneck, Limit};
    use crate::job::status::{
        LookupStatus, OperatorStatus, RecoveryReport, SinkStatus, SplitStatus, StateStatus, WorkerStatus,
    };
    use crate::job::{CheckpointPhase, CheckpointStatus, METRICS, PublishStatus};
    use mailer_core::{ErrorKind, Watermark};
    use std::collections::BTreeSet;

    const SECOND: Duration = Duration::from_secs(1);

    fn checkpoint(id: u64) -> CheckpointStatus {
        CheckpointStatus {
            id: CheckpointId(id),
            kind: "periodic",
            started: Timestamp(10_000),
            phases: vec![(CheckpointPhase::Aligning, SECOND), (CheckpointPhase::Snapshot, SECOND * 2)],
            outcome: CheckpointOutcome::Completed,
            state_bytes: 5,
            output_bytes: 6,
            output_records: 7,
            waits_for: Vec::new(),
        }
    }

    /// A job that has something to say of everything.
    fn everything() -> JobStatus {
        let name = || "x".to_owned();
        let mut status = JobStatus::new("job");
        let (time, records) = (Some(Timestamp(1_000)), 3);
        let by_worker = vec![WorkerStatus { records, batches: 1, busy: SECOND, ..WorkerStatus::default() }];
        let (workers, watermark, is_keyed, flushing) = (1, time, true, SECOND);
        status.stages = vec![StageStatus { name: name(), workers, records, watermark, is_keyed, flushing, by_worker }];
        status.edges = vec![EdgeStatus {
            name: name(),
            from: name(),
            to: name(),
            batches: 1,
            capacity_batches: 8,
            bytes: 1,
            capacity_bytes: 100,
            records,
            refused: 0,
            blocked: SECOND,
        }];
        let (split, watermark) = (name(), time.map(Watermark));
        let split =
            SplitStatus { split, worker: 0, watermark, idle: true, paused: false, lag: Some(9), position: Some(5) };
        status.sources = vec![SourceStatus { name: name(), splits: vec![split] }];
        status.sinks = vec![SinkStatus { name: name(), records }];
        status.operators = vec![OperatorStatus { name: name(), counts: "late", count: 2 }];
        status.state_sizes = vec![StateStatus { operator: None, entries: 1, bytes: 2 }];
        status.lookups = vec![LookupStatus { operator: name(), hits: 1, misses: 1 }];
        status.publishes = vec![PublishStatus { target: name(), ..PublishStatus::default() }];
        status.error_counts = vec![(ErrorKind::Unavailable, 1)];
        status.recovery = Some(RecoveryReport::default());
        let (stage, limit, full_for, skew) = (name(), Limit::Work, None, None);
        status.bottleneck = Some(Bottleneck { stage, limit, busy: 1.0, full_for, workers: 1, skew });
        status.checkpoints = vec![checkpoint(1), checkpoint(2)];
        status
    }

    /// Names and values that are told of it, twenty seconds after the epoch.
    fn told(memory: &mut Memory) -> Vec<(&'static Metric, Vec<String>, f64)> {
        let mut told = Vec::new();
        of(&everything(), Timestamp(20_000), memory, &mut |metric, labels, value| {
            told.push((metric, labels.iter().map(|label| (*label).to_owned()).collect(), value));
        });
        told
    }

    #[test]
    fn every_metric_of_the_table_has_its_labels_and_a_value() {
        let told = told(&mut Memory::default());
        let names: BTreeSet<_> = told.iter().map(|(metric, ..)| metric.name).collect();
        assert_eq!(names, METRICS.iter().map(|metric| metric.name).collect());
        for (metric, labels, _) in told {
            assert_eq!((labels.len(), labels[0].as_str()), (metric.labels.len(), "job"), "{}", metric.name);
        }
    }

    fn value(metric: &Metric) -> f64 {
        told(&mut Memory::default()).iter().find(|(told, ..)| told.name == metric.name).unwrap().2
    }

    #[test]
    fn ages_and_lags_are_seconds_behind_the_clock() {
        assert!((value(&table::STAGE_WATERMARK_LAG) - 19.0).abs() < 1e-9);
        assert!((value(&table::CHECKPOINT_AGE) - 7.0).abs() < 1e-9);
        assert!((value(&table::STAGE_BOTTLENECK) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_checkpoint_is_observed_once() {
        let mut memory = Memory { timed: CheckpointId(1), ..Memory::default() };
        let mut durations =
            || told(&mut memory).iter().filter(|(metric, ..)| metric.name == table::CHECKPOINT_DURATION.name).count();
        assert_eq!([durations(), durations()], [1, 0]);
    }
}
