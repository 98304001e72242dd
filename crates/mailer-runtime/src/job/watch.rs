//! A second handle of a job, for those who watch it: any number of them, from any thread, also after its end.

use super::control::JobControl;
use super::status::JobStatus;
use crate::plan_view::JobPlan;
use crate::report::Report;
use mailer_checkpoint::manifest::Kind;
use mailer_core::Result;
use std::fmt;
use std::sync::Arc;

/// Watches a job, and asks it for a few things without waiting for them. Given to [`crate::Env::observer`].
///
/// ```
/// use mailer_runtime::{Blackhole, Env, JobState, SliceSource};
/// use std::sync::mpsc::channel;
/// let (sender, watches) = channel();
/// let env = Env::new("watched").observer(move |watch| sender.send(watch).unwrap());
/// env.source("numbers", SliceSource::new(0..10)).sink("out", Blackhole);
/// env.execute()?;
/// let watch = watches.recv().unwrap();
/// assert_eq!(watch.status().state, JobState::Finished);
/// assert_eq!(watch.plan().stages[0].name, "numbers");
/// # Ok::<(), mailer_runtime::Error>(())
/// ```
#[derive(Clone)]
pub struct JobWatch {
    control: Arc<JobControl>,
    plan: Arc<JobPlan>,
}

impl fmt::Debug for JobWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JobWatch").field(&self.plan.job).finish()
    }
}

impl JobWatch {
    pub(crate) fn new(control: Arc<JobControl>, plan: JobPlan) -> Self {
        Self { control, plan: Arc::new(plan) }
    }

    /// Where the job stands now.
    pub fn status(&self) -> JobStatus {
        self.control.status.snapshot()
    }

    /// What runs.
    pub fn plan(&self) -> &JobPlan {
        &self.plan
    }

    /// Asks for a checkpoint; the status shows what comes of it. An error when the job does not run at the moment.
    pub fn request_checkpoint(&self) -> Result<()> {
        self.control.poke(Kind::Periodic)
    }

    /// Asks for a savepoint, as [`JobWatch::request_checkpoint`] does for a checkpoint.
    pub fn request_savepoint(&self) -> Result<()> {
        self.control.poke(Kind::Savepoint)
    }

    /// Asks the job to stop reading, to take and publish a last checkpoint, and to finish.
    pub fn drain(&self) {
        self.control.stop(Report::Stop { kind: Kind::Final });
    }
}
