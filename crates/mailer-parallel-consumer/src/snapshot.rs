//! What is known about a consumer at one moment: as a value, as JSON, and as OpenMetrics text.

mod histogram;
mod open_metrics;

pub use histogram::Histogram;

use crate::Phase;
use serde::Serialize;
use std::collections::BTreeMap;

/// The content type of [`Snapshot::open_metrics`].
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A consumer at one moment.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The label `service`.
    pub service: String,
    /// The label `team`.
    pub team: String,
    /// How far it has come.
    pub phase: Phase,
    /// A member of the group without partitions.
    pub is_standby: bool,
    /// Seconds since it was built.
    pub uptime_seconds: f64,
    /// Why polls fail now; `None` when they do not.
    pub poll_error: Option<String>,
    /// Sums since the beginning.
    pub counters: Counters,
    /// What runs and what waits.
    pub concurrency: Concurrency,
    /// The last 15 whole seconds, the newest first.
    pub throughput: Vec<Second>,
    /// The partitions that this member has.
    pub partitions: Vec<PartitionSnapshot>,
    /// Records by the name of their trait bit.
    pub traits: BTreeMap<String, u64>,
    /// Attempts that run longer than the stall limit.
    pub stalled: Vec<Stalled>,
    /// Bytes received, by the id of the broker.
    pub broker_bytes: BTreeMap<i32, u64>,
    /// Durations.
    pub histograms: Histograms,
}

/// Sums since a consumer began. They add up: `fetched = succeeded + dead_lettered + restored + duplicates + dropped +`
/// what is incomplete now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Records that the source delivered.
    pub fetched: u64,
    /// Their bytes.
    pub fetched_bytes: u64,
    /// Attempts that were started.
    pub attempts: u64,
    /// Records that a handler completed.
    pub succeeded: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Of these, panics.
    pub panics: u64,
    /// Of these, timeouts.
    pub timeouts: u64,
    /// Records that were put away as dead letters.
    pub dead_lettered: u64,
    /// Dead letters that could not be put away; the record stayed incomplete.
    pub dead_letters_failed: u64,
    /// Records that the offset map knew to be complete.
    pub restored: u64,
    /// Records that were delivered twice to one assignment.
    pub duplicates: u64,
    /// Records that went back to the group unfinished, by revoke, loss, reset or stop.
    pub dropped: u64,
    /// Results that came after their partition had gone, and changed nothing.
    pub orphaned: u64,
    /// Commits that the broker has.
    pub commits: u64,
    /// Commits that failed.
    pub commits_failed: u64,
    /// Commits without their offset map, because the broker did not take it.
    pub maps_refused: u64,
    /// Offset maps at an assignment that were not believed.
    pub maps_ignored: u64,
    /// Offset maps that were written.
    pub maps_written: u64,
    /// Rebalances in which partitions came or went.
    pub rebalances: u64,
    /// Polls that failed.
    pub polls_failed: u64,
}

/// What runs and what waits.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Concurrency {
    /// Handlers that may run at once.
    pub limit: usize,
    /// Handlers that run.
    pub in_flight: usize,
    /// Dead letters that are being put away.
    pub dead_letters_in_flight: usize,
    /// Records that wait for a backoff.
    pub backing_off: usize,
    /// Keys with records that wait or run.
    pub keys: usize,
    /// Records in memory.
    pub buffered_records: usize,
    /// Their bytes.
    pub buffered_bytes: usize,
    /// Bytes on the heap for what is complete but not committed.
    pub ledger_bytes: usize,
}

/// One second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Second {
    /// Records fetched.
    pub fetched: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records completed, by handlers and as dead letters.
    pub completed: u64,
}

/// A partition that this member has.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PartitionSnapshot {
    /// Its topic.
    pub topic: String,
    /// Its number.
    pub partition: i32,
    /// `active`, `draining`, or why it is paused: `user`, `buffer`, `window`.
    pub state: &'static str,
    /// What could be committed now.
    pub position: i64,
    /// What the broker has.
    pub committed: Option<i64>,
    /// What will be fetched next.
    pub next_fetch: i64,
    /// The end of the log, as far as known.
    pub log_end: Option<i64>,
    /// Records from `position` to the end of the log.
    pub lag: Option<i64>,
    /// Records that were fetched and are not complete.
    pub incomplete: u64,
    /// Records that are complete behind one that is not.
    pub completed_ahead: u64,
    /// The first ranges of offsets, 20 at most, that are complete behind `position`: what lies between them is missing.
    pub completed_ranges: Vec<(i64, i64)>,
    /// How long ago the record at `position` was fetched.
    pub oldest_uncommitted_seconds: Option<f64>,
    /// Records in memory.
    pub buffered_records: usize,
    /// Their bytes.
    pub buffered_bytes: usize,
    /// Bytes received in all.
    pub received_bytes: u64,
    /// The broker that sends them.
    pub broker: Option<i32>,
    /// A commit is under way.
    pub is_committing: bool,
}

/// An attempt that runs longer than the stall limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stalled {
    /// Topic of its record.
    pub topic: String,
    /// Partition of its record.
    pub partition: i32,
    /// Offset of its record.
    pub offset: i64,
    /// How long it has run.
    pub seconds: f64,
}

/// Durations, in buckets.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Histograms {
    /// One attempt: buckets of 1 ms × 2ⁿ, 15 of them.
    pub handler: Histogram<15>,
    /// Putting away one dead letter: the same buckets.
    pub dead_letter: Histogram<15>,
    /// From fetch to first start: buckets of 0.1 ms × 2ⁿ, 18 of them.
    pub queue_wait: Histogram<18>,
}

impl Snapshot {
    /// As JSON.
    pub fn to_json(&self) -> String {
        // Numbers, strings and maps with string keys: nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    }

    /// As OpenMetrics text, to be served as [`OPEN_METRICS`].
    pub fn open_metrics(&self) -> String {
        open_metrics::text(self)
    }
}
