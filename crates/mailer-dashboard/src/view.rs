//! The JSON of the API. Names are camelCase, times are milliseconds since the Unix epoch, durations are seconds, shares go
//! from 0 to 1; what is not known is `null`. New fields may be added; what is here keeps its meaning.

use crate::rates::Rates;
use mailer_core::Timestamp;
use mailer_runtime::{
    CheckpointOutcome, CheckpointStatus, EdgeStatus, JobPlan, JobStatus, PlannedStage, RecoveryReport, SourceStatus,
    SplitStatus, StageStatus, Watermark,
};
use serde_json::{Value, json};

/// `/api/status`.
pub(crate) fn status(status: &JobStatus, rates: &Rates, now: Timestamp, has_actions: bool) -> Value {
    let sinks = status
        .sinks
        .iter()
        .map(|sink| json!({"name": sink.name, "records": sink.records, "rate": rates.sink(&sink.name, sink.records)}));
    let operators = status
        .operators
        .iter()
        .map(|operator| json!({"name": operator.name, "event": operator.counts, "count": operator.count}));
    let state = status
        .state_sizes
        .iter()
        .map(|state| json!({"operator": state.operator, "entries": state.entries, "bytes": state.bytes}));
    let lookups =
        status.lookups.iter().map(|it| json!({"operator": it.operator, "hits": it.hits, "misses": it.misses}));
    json!({
        "version": 1,
        "job": status.job,
        "now": now.0,
        "state": status.state.as_str(),
        "actions": has_actions,
        "restarts": status.restarts,
        "bottleneck": status.bottleneck.as_ref().map(|it| json!({"stage": it.stage, "sentence": it.to_string()})),
        "stages": list(status.stages.iter().map(|one| stage(one, rates))),
        "edges": list(status.edges.iter().map(|one| edge(one, rates))),
        "sources": list(status.sources.iter().map(|one| source(one, status))),
        "sinks": list(sinks),
        "operators": list(operators),
        "keyedState": list(state),
        "lookups": list(lookups),
        "staging": {"bytes": status.staged_bytes, "budget": status.staging_budget},
        "checkpoint": {
            "phase": status.phase,
            "publishing": status.publishing.map(|id| id.0),
            "lastCompleted": status.last_completed.map(|id| id.0),
            "completed": status.completed,
            "failed": status.failed,
            "skipped": status.skipped,
        },
        "publishes": list(status.publishes.iter().map(|target| json!({
            "target": target.target, "transactions": target.transactions, "retries": target.retries,
            "fenced": target.fenced, "records": target.records, "bytes": target.bytes,
        }))),
        "recoveries": list(status.recoveries.iter().map(recovery)),
        "errors": list(status.errors.iter().map(|error| json!({
            "at": error.at.0, "of": error.of, "kind": error.kind.to_string(), "message": error.message,
        }))),
    })
}

fn list(values: impl Iterator<Item = Value>) -> Value {
    Value::Array(values.collect())
}

/// Nothing before the first watermark, and nothing at true end of input.
fn event_time(time: Option<Timestamp>) -> Option<i64> {
    time.map(|time| time.0).filter(|time| *time > i64::MIN && *time < i64::MAX)
}

fn stage(stage: &StageStatus, rates: &Rates) -> Value {
    let workers = stage.by_worker.iter().enumerate().map(|(number, worker)| {
        let shares = rates.shares(stage, number);
        json!({
            "records": worker.records,
            "rate": rates.worker(stage, number),
            "busy": shares.map(|shares| shares.busy),
            "waiting": shares.map(|shares| shares.waiting),
            "blocked": shares.map(|shares| shares.blocked),
            "watermark": event_time(worker.watermark),
        })
    });
    json!({
        "name": stage.name,
        "records": stage.records,
        "rate": rates.stage(stage),
        "watermark": event_time(stage.watermark),
        "keyed": stage.is_keyed,
        "flushing": stage.flushing.as_secs_f64(),
        "workers": list(workers),
    })
}

fn edge(edge: &EdgeStatus, rates: &Rates) -> Value {
    json!({
        "name": edge.name,
        "from": edge.from,
        "to": edge.to,
        "records": edge.records,
        "rate": rates.edge(edge),
        "batches": edge.batches,
        "capacityBatches": edge.capacity_batches,
        "bytes": edge.bytes,
        "capacityBytes": edge.capacity_bytes,
        "fullness": edge.fullness(),
        "pressure": rates.pressure(edge),
        "refused": edge.refused,
        "blocked": edge.blocked.as_secs_f64(),
    })
}

fn source(source: &SourceStatus, status: &JobStatus) -> Value {
    let standing = status.standing.iter().find(|standing| standing.source == source.name);
    json!({
        "name": source.name,
        "standing": standing.map(|it| json!({"seconds": it.standing.as_secs_f64(), "waitsFor": it.waits_for})),
        "splits": list(source.splits.iter().map(split)),
    })
}

fn split(split: &SplitStatus) -> Value {
    json!({
        "name": split.split,
        "worker": split.worker,
        "watermark": event_time(split.watermark.map(|Watermark(time)| time)),
        "idle": split.idle,
        "paused": split.paused,
        "lag": split.lag,
        "position": split.position,
    })
}

fn recovery(report: &RecoveryReport) -> Value {
    json!({
        "at": report.at.0,
        "after": report.after,
        "from": report.from.map(|id| id.0),
        "rolledForward": report.rolled_forward,
        "restored": report.restored,
        "new": report.new,
        "dropped": report.dropped,
        "seconds": report.took.as_secs_f64(),
    })
}

/// `/api/checkpoints`, oldest first.
pub(crate) fn checkpoints(status: &JobStatus) -> Value {
    list(status.checkpoints.iter().map(checkpoint))
}

fn checkpoint(checkpoint: &CheckpointStatus) -> Value {
    let (outcome, error) = match &checkpoint.outcome {
        CheckpointOutcome::Running => ("running", None),
        CheckpointOutcome::Completed => ("completed", None),
        CheckpointOutcome::Failed(why) => ("failed", Some(why)),
    };
    let phases = checkpoint.phases.iter();
    json!({
        "id": checkpoint.id.0,
        "kind": checkpoint.kind,
        "started": checkpoint.started.0,
        "outcome": outcome,
        "error": error,
        "seconds": checkpoint.took().as_secs_f64(),
        "phases": list(phases.map(|(phase, took)| json!({"phase": phase.as_str(), "seconds": took.as_secs_f64()}))),
        "stateBytes": checkpoint.state_bytes,
        "outputBytes": checkpoint.output_bytes,
        "outputRecords": checkpoint.output_records,
        "waitsFor": checkpoint.waits_for,
    })
}

/// `/api/plan`.
pub(crate) fn plan(plan: &JobPlan) -> Value {
    let edges = plan
        .edges
        .iter()
        .map(|edge| json!({"name": edge.name, "from": edge.from, "to": edge.to, "routing": edge.routing}));
    json!({
        "job": plan.job,
        "guarantee": plan.guarantee,
        "stages": list(plan.stages.iter().map(planned)),
        "edges": list(edges),
    })
}

fn planned(stage: &PlannedStage) -> Value {
    let steps = stage
        .steps
        .iter()
        .map(|step| json!({"kind": step.kind, "name": step.name, "detail": step.detail, "stateful": step.stateful}));
    json!({"name": stage.name, "workers": stage.workers, "steps": list(steps)})
}
