//! Work that waits: fsync, writing snapshots, publishing. It runs beside the workers and reports back by message.

use mailer_core::Result;
use mailer_operators::Spawner;
use std::sync::Arc;

/// One piece of work; it reports its own outcome.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Where such work runs: threads in production, the seeded driver's own queue in a simulation.
pub(crate) trait Beside: Send + Sync + 'static {
    fn spawn(&self, job: Job);

    /// Who runs the futures of asynchronous operators.
    fn spawner(&self) -> Result<Arc<dyn Spawner>>;

    /// Whether a job may wait for time to pass. Under a seed there is one thread, and nobody to move the clock meanwhile.
    fn may_wait(&self) -> bool;
}
