//! For tests of pipelines: a whole one fed by hand ([`TestDriver`]), a single operator fed by hand ([`harness`]), and
//! runs under a seed with crashes ([`run_seeded`]).

mod by_hand;
mod counting;
mod folder;
mod input;
mod staged;

pub use by_hand::TestDriver;
pub use counting::Counting;
pub use input::{TestInput, TestReader};
pub use staged::{MemoryStager, staged};

pub use crate::driver::Seed;
pub use crate::shared::Mutations;
pub use mailer_operators::harness;

use crate::attempt::Start;
use crate::driver::SeededDriver;
use crate::env::Env;
use crate::executor::Ended;
use crate::job::JobStatus;
use crate::job::control::JobControl;
use mailer_core::Result;

/// How a run under a seed ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// To its end.
    Finished,
    /// Killed by the driver; nothing was cleaned up.
    Crashed,
}

/// A run under a seed.
#[derive(Clone, Debug)]
pub struct SeededRun {
    /// How it ended, or the error it ended with.
    pub outcome: Result<Outcome, String>,
    /// Steps made.
    pub steps: u64,
    /// A hash of every choice made: equal for equal seeds.
    pub digest: u64,
    /// The job's last status.
    pub status: JobStatus,
}

/// Runs `env` on one thread: the real tasks, operators, coordinator and recovery, in an order drawn from `seed`, with a
/// clock that moves only when it is drawn. With `crash_after`, everything is dropped after that many steps, as it is.
///
/// ```
/// use mailer_runtime::testing::{Outcome, run_seeded};
/// use mailer_runtime::{Collect, Env, SliceSource};
/// let out = Collect::new();
/// let env = Env::new("seeded").workers(2);
/// env.source("numbers", SliceSource::new(0..100)).map(|x| x + 1).sink("out", out.clone());
/// assert_eq!(run_seeded(env, 7, None).unwrap().outcome, Ok(Outcome::Finished));
/// assert_eq!(out.take().len(), 100);
/// ```
pub fn run_seeded(env: Env, seed: u64, crash_after: Option<u64>) -> Result<SeededRun> {
    let (plan, audience) = env.into_plan()?;
    let control = JobControl::new(&plan.settings.job, audience);
    let workers = plan.physical.stages.iter().map(|stage| stage.parallelism).max().unwrap_or(1);
    let mut driver = SeededDriver::new(seed, workers, crash_after);
    let outcome = match plan.run(&mut driver, &control, Start::First) {
        Ok(Ended::Crashed) => Ok(Outcome::Crashed),
        Ok(Ended::Finished | Ended::Stopped) => Ok(Outcome::Finished),
        Err(error) => Err(format!("{error:?}")),
    };
    let status = control.status.snapshot();
    Ok(SeededRun { outcome, steps: driver.steps(), digest: driver.digest(), status })
}
