//! What a job tells its host while it runs.

use super::status::RecoveryReport;
use mailer_core::CheckpointId;
use std::time::Duration;

/// One thing that happened; given to the listener of [`crate::Env::listener`] on a thread of the job, which it must not
/// hold up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum JobEvent {
    /// State, positions and targets are as the newest checkpoint says.
    Recovered(RecoveryReport),
    /// Sources read.
    Running,
    /// A checkpoint is published and completed.
    Completed {
        /// Its id.
        id: CheckpointId,
        /// Taken before the first record, because a source starts that no checkpoint knows yet.
        initial: bool,
        /// Records that became visible with it.
        records: u64,
        /// From the first task's snapshot to completed.
        took: Duration,
        /// The publish alone.
        publish: Duration,
    },
    /// The run failed and will be started again.
    Restarting {
        /// Why.
        error: String,
        /// When.
        delay: Duration,
    },
}
