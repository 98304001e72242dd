//! A running job: the handle, the supervisor that restarts it, and what it tells its host.

mod board;
pub(crate) mod control;
pub(crate) mod counters;
mod errors;
pub(crate) mod event;
pub(crate) mod metrics;
pub(crate) mod publishes;
mod restart;
pub(crate) mod status;
pub(crate) mod timeline;
mod watch;

pub use self::metrics::{METRICS, Metric, MetricKind};
pub use errors::ErrorStatus;
pub use event::JobEvent;
pub use publishes::PublishStatus;
pub use restart::RestartPolicy;
pub use status::{
    EdgeStatus, JobState, JobStatus, LookupStatus, OperatorStatus, RecoveryReport, SinkStatus, SourceStatus,
    SplitStatus, StageStatus, StandingSource, StateStatus, WorkerStatus,
};
pub use timeline::{CheckpointOutcome, CheckpointPhase, CheckpointStatus};
pub use watch::JobWatch;

use crate::attempt::{Plan, Start};
use crate::driver::ThreadDriver;
use crate::executor::Ended;
use crate::report::Report;
use control::JobControl;
use mailer_checkpoint::manifest::Kind;
use mailer_core::{CheckpointId, Error, ErrorKind, Result};
use std::sync::Arc;
use std::thread::JoinHandle;

/// How [`Job::stop`] stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Stop reading, take a last checkpoint, publish it, finish. Open windows are kept, not fired.
    Drain,
    /// Like [`Stop::Drain`], and the last checkpoint is kept until a person deletes it.
    Savepoint,
    /// At once. What came after the newest checkpoint is read again at the next start.
    Now,
}

/// The handle of a started job. Dropping it does not stop the job.
pub struct Job {
    control: Arc<JobControl>,
    thread: JoinHandle<Result<()>>,
}

impl Job {
    /// Starts the supervisor on a thread of its own.
    pub(crate) fn start(plan: Plan, control: Arc<JobControl>) -> Result<Self> {
        let name = format!("mailer-{}", plan.settings.job);
        let supervised = control.clone();
        #[expect(clippy::disallowed_methods, reason = "the job handle owns the supervisor's thread")]
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || supervise(&plan, &supervised))
            .map_err(|e| Error::unavailable("the supervisor's thread could not be started").caused_by(e))?;
        Ok(Self { control, thread })
    }

    /// Where the job stands now.
    pub fn status(&self) -> JobStatus {
        self.control.status.snapshot()
    }

    /// Takes a checkpoint now and waits until it is completed.
    pub fn checkpoint(&self) -> Result<CheckpointId> {
        self.control.trigger(Kind::Periodic)
    }

    /// Takes a savepoint (a checkpoint that is kept) and waits until it is completed. The job goes on.
    pub fn savepoint(&self) -> Result<CheckpointId> {
        self.control.trigger(Kind::Savepoint)
    }

    /// Asks the job to stop; [`Job::wait`] says when it has.
    pub fn stop(&self, how: Stop) -> Result<()> {
        self.control.stop(match how {
            Stop::Drain => Report::Stop { kind: Kind::Final },
            Stop::Savepoint => Report::Stop { kind: Kind::Savepoint },
            Stop::Now => Report::StopNow,
        });
        Ok(())
    }

    /// Whether [`Job::wait`] would return at once.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end. `Ok` after end of input or a drain only when the last checkpoint is published.
    pub fn wait(self) -> Result<()> {
        self.thread.join().unwrap_or_else(|_| Err(Error::internal("the supervisor panicked")))
    }
}

/// Runs the job, and again after every failure the restart policy allows.
fn supervise(plan: &Plan, control: &Arc<JobControl>) -> Result<()> {
    let _span = tracing::info_span!("job", job = plan.settings.job).entered();
    let (mut restarts, mut start) = (0, Start::First);
    loop {
        control.export_now();
        let completed = control.status.completed();
        let outcome = ThreadDriver::new(plan.threads(), plan.settings.tokio.clone())
            .and_then(|mut driver| plan.run(&mut driver, control, start));
        start = Start::Again;
        let error = match outcome {
            Ok(ended) => {
                control.finish(if ended == Ended::Stopped { JobState::Stopped } else { JobState::Finished }, None);
                return Ok(());
            }
            Err(error) => error,
        };
        if control.status.completed() > completed {
            restarts = 0; // it had got going: this is a new failure, not the old one again
        }
        let delay = if error.kind().is_restartable() { plan.settings.restart.delay(restarts) } else { None };
        let Some(delay) = delay.filter(|_| !control.is_stopping()) else {
            let state = if error.kind() == ErrorKind::Blocked { JobState::Blocked } else { JobState::Failed };
            control.finish(state, Some(&error));
            return Err(error);
        };
        restarts += 1;
        tracing::warn!(job = plan.settings.job, %error, ?delay, restarts, "restarting from the newest checkpoint: nothing to do unless it comes back");
        control.status.note_restart(&error);
        control.export_now();
        control.emit(JobEvent::Restarting { error: error.to_string(), delay });
        if !control.wait_for_restart(delay) {
            control.finish(JobState::Stopped, Some(&error));
            return Err(error);
        }
    }
}
