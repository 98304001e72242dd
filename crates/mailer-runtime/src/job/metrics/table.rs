//! Everything that is exported, in one table. `docs/reference/metrics.md` shows it.

/// What kind of metric it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, while the process lives: restarts of the job take nothing back.
    Counter,
    /// Seconds that only grow, with fractions: a counter. Counters of the facade hold whole numbers, so recorders are told
    /// it as a gauge; `/metrics` of the dashboard says what it is.
    Time,
    /// How it stands now. Where there is nothing more to say (a partition has gone), it is set to NaN once; `/metrics` of
    /// the dashboard leaves it out.
    Gauge,
    /// One observation for each event.
    Histogram,
}

/// A metric as it is documented.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: MetricKind,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// Its unit, in the words of the `metrics` facade: `count`, `seconds`, `bytes` or `percent` (of 1).
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

/// The metrics of a job. A series appears with the first thing it can tell.
pub const METRICS: &[Metric] = &[
    JOB_STATE,
    JOB_RESTARTS,
    RECOVERY_DURATION,
    ERRORS,
    STAGE_RECORDS,
    STAGE_BATCHES,
    STAGE_BATCH,
    STAGE_BUSY,
    STAGE_WAITING,
    STAGE_BLOCKED,
    STAGE_WATERMARK_LAG,
    STAGE_BOTTLENECK,
    EDGE_RECORDS,
    EDGE_QUEUED_BATCHES,
    EDGE_CAPACITY_BATCHES,
    EDGE_QUEUED_BYTES,
    EDGE_CAPACITY_BYTES,
    EDGE_FULLNESS,
    EDGE_REFUSED,
    EDGE_BLOCKED,
    SOURCE_LAG,
    SOURCE_POSITION,
    SOURCE_WATERMARK_LAG,
    SOURCE_IDLE,
    SOURCE_PAUSED,
    SOURCE_STANDING,
    SINK_RECORDS,
    OPERATOR_EVENTS,
    STATE_ENTRIES,
    STATE_BYTES,
    STATE_HITS,
    STATE_MISSES,
    STATE_FLUSH,
    STAGING_BYTES,
    STAGING_BUDGET,
    CHECKPOINTS_COMPLETED,
    CHECKPOINTS_FAILED,
    CHECKPOINTS_SKIPPED,
    CHECKPOINT_AGE,
    CHECKPOINT_RUNNING,
    CHECKPOINT_STATE_BYTES,
    CHECKPOINT_OUTPUT_BYTES,
    CHECKPOINT_DURATION,
    CHECKPOINT_PHASE,
    PUBLISH_TRANSACTIONS,
    PUBLISH_RETRIES,
    PUBLISH_FENCED,
    PUBLISH_RECORDS,
    PUBLISH_BYTES,
];

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $unit:literal $meaning:literal;)*) => {
        $(pub(super) const $constant: Metric = Metric {
            name: $name, kind: MetricKind::$kind, labels: &["job", $($label),*], unit: $unit, meaning: $meaning,
        };)*
    };
}

metrics! {
    JOB_STATE = Gauge "mailer_job_state" ["state"] "count"
        "1 for what the job is doing, 0 for the other states.";
    JOB_RESTARTS = Counter "mailer_job_restarts_total" [] "count"
        "Starts after a failure.";
    RECOVERY_DURATION = Gauge "mailer_recovery_duration_seconds" [] "seconds"
        "How long the last start took, from the lock to tasks ready to run.";
    ERRORS = Counter "mailer_errors_total" ["class"] "count"
        "Errors that ended a run, a checkpoint or an attempt to publish.";
    STAGE_RECORDS = Counter "mailer_stage_records_total" ["stage"] "count"
        "Records a stage has taken in.";
    STAGE_BATCHES = Counter "mailer_stage_batches_total" ["stage"] "count"
        "Batches they came in.";
    STAGE_BATCH = Gauge "mailer_stage_batch_records" ["stage"] "count"
        "Records in a batch, on average over the last second.";
    STAGE_BUSY = Time "mailer_stage_busy_seconds_total" ["stage", "worker"] "seconds"
        "Time a worker has spent working.";
    STAGE_WAITING = Time "mailer_stage_waiting_seconds_total" ["stage", "worker"] "seconds"
        "Time a worker has spent without input.";
    STAGE_BLOCKED = Time "mailer_stage_blocked_seconds_total" ["stage", "worker"] "seconds"
        "Time a worker has spent with output that nobody takes.";
    STAGE_WATERMARK_LAG = Gauge "mailer_stage_watermark_lag_seconds" ["stage"] "seconds"
        "How far event time at the slowest worker is behind the clock.";
    STAGE_BOTTLENECK = Gauge "mailer_stage_is_bottleneck" ["stage"] "count"
        "1 for the stage that holds up the job, 0 for the others.";
    EDGE_RECORDS = Counter "mailer_edge_records_total" ["edge"] "count"
        "Records sent into an edge.";
    EDGE_QUEUED_BATCHES = Gauge "mailer_edge_queued_batches" ["edge"] "count"
        "Batches and markers in the queues of an edge.";
    EDGE_CAPACITY_BATCHES = Gauge "mailer_edge_capacity_batches" ["edge"] "count"
        "Most batches and markers it may hold.";
    EDGE_QUEUED_BYTES = Gauge "mailer_edge_queued_bytes" ["edge"] "bytes"
        "Bytes in the queues of an edge.";
    EDGE_CAPACITY_BYTES = Gauge "mailer_edge_capacity_bytes" ["edge"] "bytes"
        "Most bytes it may hold.";
    EDGE_FULLNESS = Gauge "mailer_edge_fullness_ratio" ["edge"] "percent"
        "How full it is, from 0 to 1, by the nearer of its two bounds.";
    EDGE_REFUSED = Counter "mailer_edge_refused_total" ["edge"] "count"
        "How often a sender found it full.";
    EDGE_BLOCKED = Time "mailer_edge_send_blocked_seconds_total" ["edge"] "seconds"
        "Time in which a sender had something that did not fit, all senders together.";
    SOURCE_LAG = Gauge "mailer_source_lag_records" ["source", "partition"] "count"
        "Records that wait to be read, where the source can tell.";
    SOURCE_POSITION = Gauge "mailer_source_position" ["source", "partition"] "count"
        "How far a split has been read, where that is a number: offsets, bytes or records.";
    SOURCE_WATERMARK_LAG = Gauge "mailer_source_watermark_lag_seconds" ["source", "partition"] "seconds"
        "How far event time in a split is behind the clock.";
    SOURCE_IDLE = Gauge "mailer_source_idle" ["source", "partition"] "count"
        "1 when a split has been silent for so long that it holds no watermark back.";
    SOURCE_PAUSED = Gauge "mailer_source_paused" ["source", "partition"] "count"
        "1 when a split is ahead of the others and waits for them.";
    SOURCE_STANDING = Gauge "mailer_source_standing_seconds" ["source"] "seconds"
        "How long a source has had records and has not moved; 0 while it moves.";
    SINK_RECORDS = Counter "mailer_sink_records_total" ["sink"] "count"
        "Records a sink has accepted; staged, for an exactly-once sink.";
    OPERATOR_EVENTS = Counter "mailer_operator_events_total" ["operator", "event"] "count"
        "What operators count: late, expired, dropped, dead-lettered records and the like.";
    STATE_ENTRIES = Gauge "mailer_state_entries" ["operator"] "count"
        "Entries of keyed state at the last barrier; an estimate where operator is all.";
    STATE_BYTES = Gauge "mailer_state_bytes" ["operator"] "bytes"
        "Bytes of keys and values of keyed state at the last barrier; an estimate where operator is all.";
    STATE_HITS = Counter "mailer_state_cache_hits_total" ["operator"] "count"
        "Look-ups of keyed state that found the entry decoded, up to the last barrier. Windows count none.";
    STATE_MISSES = Counter "mailer_state_cache_misses_total" ["operator"] "count"
        "Look-ups that had to ask the backend, up to the last barrier.";
    STATE_FLUSH = Time "mailer_state_flush_seconds_total" ["stage"] "seconds"
        "Time the workers have spent at barriers on writing keyed state back and freezing it.";
    STAGING_BYTES = Gauge "mailer_staging_bytes" [] "bytes"
        "Exactly-once output that waits in memory for the next barrier.";
    STAGING_BUDGET = Gauge "mailer_staging_budget_bytes" [] "bytes"
        "Most bytes that may wait; sources stop when they are used up.";
    CHECKPOINTS_COMPLETED = Counter "mailer_checkpoints_completed_total" [] "count"
        "Checkpoints published and completed.";
    CHECKPOINTS_FAILED = Counter "mailer_checkpoints_failed_total" [] "count"
        "Checkpoints given up.";
    CHECKPOINTS_SKIPPED = Counter "mailer_checkpoints_skipped_total" [] "count"
        "Intervals that passed while a checkpoint was under way.";
    CHECKPOINT_AGE = Gauge "mailer_checkpoint_last_completed_age_seconds" [] "seconds"
        "Time since a checkpoint was completed: what a crash now would do again.";
    CHECKPOINT_RUNNING = Gauge "mailer_checkpoint_running_seconds" [] "seconds"
        "How long the oldest unfinished checkpoint has been under way; 0 when there is none.";
    CHECKPOINT_STATE_BYTES = Gauge "mailer_checkpoint_state_bytes" [] "bytes"
        "Bytes of all state files of the last completed checkpoint.";
    CHECKPOINT_OUTPUT_BYTES = Gauge "mailer_checkpoint_output_bytes" [] "bytes"
        "Bytes of output that the last completed checkpoint made visible.";
    CHECKPOINT_DURATION = Histogram "mailer_checkpoint_duration_seconds" [] "seconds"
        "Checkpoints from their barrier to completed.";
    CHECKPOINT_PHASE = Histogram "mailer_checkpoint_phase_duration_seconds" ["phase"] "seconds"
        "Their phases: aligning, snapshot, linking, linked, preparing, publishing, completing.";
    PUBLISH_TRANSACTIONS = Counter "mailer_publish_transactions_total" ["target"] "count"
        "Transactions that made output visible.";
    PUBLISH_RETRIES = Counter "mailer_publish_retries_total" ["target"] "count"
        "Attempts to publish whose outcome was unknown, so that the target was asked.";
    PUBLISH_FENCED = Counter "mailer_publish_fenced_total" ["target"] "count"
        "Attempts that were refused because another owner has taken over.";
    PUBLISH_RECORDS = Counter "mailer_publish_records_total" ["target"] "count"
        "Records made visible.";
    PUBLISH_BYTES = Counter "mailer_publish_bytes_total" ["target"] "bytes"
        "Bytes made visible.";
}
