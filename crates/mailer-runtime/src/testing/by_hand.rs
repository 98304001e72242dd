//! A whole pipeline on the thread of a test, fed by hand.

use super::folder::Folder;
use super::input::{TestInput, record};
use crate::attempt::{Plan, Standing, Start};
use crate::driver::{SeededDriver, Turns};
use crate::env::Env;
use crate::job::JobStatus;
use crate::job::control::JobControl;
use crate::panics;
use crate::shared::SourceCommand;
use mailer_checkpoint::FileStorage;
use mailer_checkpoint::manifest::Kind;
use mailer_core::{CheckpointId, Clock, Error, Result, Timestamp, Watermark};
use std::sync::Arc;
use std::time::Duration;

/// [`TestDriver::advance`] moves the clock in so many steps: whoever looks at it sees time pass, and not one leap.
const STEPS: u32 = 64;

/// Runs a pipeline on the thread of a test: the real tasks, operators, coordinator and recovery, without threads, without
/// a clock that moves by itself, without a broker. Every call returns when the pipeline has nothing left to do.
///
/// The pipeline is written as ever, with [`TestInput`]s as sources and [`Collect`](crate::Collect)s as sinks. Each call
/// that feeds it runs it, so the next line of the test can look at what came out.
///
/// - Without [`Env::workers`] every stage that says nothing else has one worker, so that a test gives the same order on
///   every machine. With more workers the order between keys depends on [`TestDriver::seeded`] alone.
/// - Event time moves as the pipeline's own `watermarks` say, and by [`TestDriver::watermark`].
/// - Processing time begins at 0 and moves by [`TestDriver::advance`] only.
/// - Checkpoints go where [`Env::checkpointing`] says; without it, to a temporary folder that goes with the driver, and
///   only when the test asks for one.
///
/// ```
/// use mailer_runtime::testing::{TestDriver, TestInput};
/// use mailer_runtime::{Collect, Env, SideTag, Tumbling};
/// use std::time::Duration;
/// let (visits, out, late) = (TestInput::new(), Collect::new(), Collect::new());
/// let late_tag = SideTag::new("late");
/// let env = Env::new("visits");
/// let counts = env
///     .source("visits", visits.clone())
///     .key_by(|user: &&str| user.to_string())
///     .window(Tumbling::of(Duration::from_secs(60)))
///     .late_to(&late_tag)
///     .count("per-minute");
/// let (counts, too_late) = counts.side_output(&late_tag);
/// counts.map(|result| (result.key, result.value)).sink("out", out.clone());
/// too_late.sink("late", late.clone());
///
/// let mut test = TestDriver::new(env)?;
/// test.send(&visits, 5_000, "alice")?;
/// test.checkpoint()?;
/// test.restore()?; // a crash: the open window comes back
/// test.send(&visits, 59_999, "alice")?;
/// assert!(out.is_empty());
/// test.watermark(&visits, 60_000)?;
/// assert_eq!(out.take(), [("alice".to_string(), 2)]);
/// test.send(&visits, 59_999, "bob")?;
/// assert_eq!(late.take(), ["bob"]);
/// test.finish()?;
/// # Ok::<(), mailer_runtime::Error>(())
/// ```
pub struct TestDriver {
    running: Option<Turns>,
    plan: Plan,
    driver: SeededDriver,
    control: Arc<JobControl>,
    _folder: Folder,
}

impl TestDriver {
    /// Starts the pipeline. Errors: what [`Env::start`] refuses, and what a source or sink refuses.
    pub fn new(env: Env) -> Result<Self> {
        Self::seeded(env, 0)
    }

    /// The same in another order of the steps of its tasks. Whatever the seed, equal calls give equal runs.
    pub fn seeded(mut env: Env, seed: u64) -> Result<Self> {
        let folder = Folder::new();
        env.settings.workers.get_or_insert(1);
        env.settings.storage.get_or_insert_with(|| Arc::new(FileStorage::new(folder.path())));
        let (plan, audience) = env.into_plan()?;
        let workers = plan.physical.stages.iter().map(|stage| stage.parallelism).max().unwrap_or(1);
        let control = JobControl::new(&plan.settings.job, audience);
        let driver = SeededDriver::new(seed, workers, None);
        let mut test = Self { running: None, plan, driver, control, _folder: folder };
        test.start(Start::First)?;
        Ok(test)
    }

    /// Gives `value` with its event time, in ms since the Unix epoch, to the first split of `input`. The pipeline's own
    /// `timestamps` set another time, where it has them.
    pub fn send<T: Clone + Send + 'static>(&mut self, input: &TestInput<T>, time: i64, value: T) -> Result<()> {
        self.send_to(input, 0, [(time, value)])
    }

    /// Gives several values to the first split of `input`; they may reach the pipeline as one batch.
    pub fn send_all<T: Clone + Send + 'static>(
        &mut self,
        input: &TestInput<T>,
        records: impl IntoIterator<Item = (i64, T)>,
    ) -> Result<()> {
        self.send_to(input, 0, records)
    }

    /// Gives values to one split of `input`, which are numbered from 0.
    pub fn send_to<T: Clone + Send + 'static>(
        &mut self,
        input: &TestInput<T>,
        split: u32,
        records: impl IntoIterator<Item = (i64, T)>,
    ) -> Result<()> {
        self.slots(input)?;
        records.into_iter().try_for_each(|(time, value)| input.push(split, record(time, value)))?;
        self.settle()
    }

    /// Says that event time has come to `time`, in ms since the Unix epoch, in every split of `input`: as if a watermark
    /// came from the outside. One that lies behind what was said before changes nothing. A pipeline with several inputs
    /// follows the slowest.
    pub fn watermark<T>(&mut self, input: &TestInput<T>, time: i64) -> Result<()> {
        self.command(input, SourceCommand::Watermark(Watermark(Timestamp(time))))
    }

    /// Runs the pipeline until it has nothing left to do: for sources of the test's own, when they were given something.
    pub fn run(&mut self) -> Result<()> {
        self.settle()
    }

    /// [`TestDriver::watermark`] for a source that is no [`TestInput`], by its name.
    pub fn watermark_of(&mut self, source: &str, time: i64) -> Result<()> {
        let names = self.plan.source_names().enumerate();
        let slots: Vec<_> = names.filter(|(_, name)| *name == source).map(|(slot, _)| slot).collect();
        if slots.is_empty() {
            return Err(Error::refused(format!("no source of the pipeline is called \"{source}\"")));
        }
        for slot in slots {
            self.turns()?.shared.command_source(slot, SourceCommand::Watermark(Watermark(Timestamp(time))));
        }
        self.settle()
    }

    /// Moves the clock forward, in 64 steps: timers and windows over processing time fire, idle splits are noticed,
    /// delays of retries end, checkpoints become due.
    pub fn advance(&mut self, by: Duration) -> Result<()> {
        let step = by / STEPS;
        for _ in 1..STEPS {
            self.driver.manual_clock().advance(step);
            self.settle()?;
        }
        self.driver.manual_clock().advance(by - step * (STEPS - 1));
        self.settle()
    }

    /// Processing time.
    pub fn now(&self) -> Timestamp {
        self.driver.manual_clock().wall()
    }

    /// Takes a checkpoint, publishes it, and returns its id.
    pub fn checkpoint(&mut self) -> Result<CheckpointId> {
        let ticket = self.control.request(Kind::Periodic)?;
        self.settle()?;
        self.control.take_answer(ticket).unwrap_or_else(|| {
            Err(Error::unavailable("the checkpoint waits for something outside the pipeline: is a sink still writing?"))
        })
    }

    /// A crash, and a start from the newest checkpoint: everything in memory is gone, and inputs are read again from where
    /// the checkpoint stands. What plain sinks such as [`Collect`](crate::Collect) were given since is given to them again.
    /// Also brings back a pipeline that has failed.
    pub fn restore(&mut self) -> Result<()> {
        self.crash();
        self.start(Start::Again)
    }

    /// The same with another version of the program: it must know, or be allowed to drop, what the checkpoint holds. Its
    /// own storage is ignored.
    pub fn restore_as(&mut self, mut env: Env) -> Result<()> {
        env.settings.workers.get_or_insert(1);
        env.settings.storage.clone_from(&self.plan.settings.storage);
        let plan = env.into_plan()?.0;
        self.crash();
        self.plan = plan;
        self.start(Start::Again)
    }

    /// Ends `input`: when all have ended, open windows close and the pipeline finishes.
    pub fn end<T>(&mut self, input: &TestInput<T>) -> Result<()> {
        self.command(input, SourceCommand::EndWhenCaughtUp)
    }

    /// Ends all inputs and runs the pipeline to its end: windows close, timers fire, everything is published.
    pub fn finish(&mut self) -> Result<()> {
        if self.running.is_none() {
            return Ok(());
        }
        for slot in 0..self.plan.source_names().count() {
            self.turns()?.shared.command_source(slot, SourceCommand::EndWhenCaughtUp);
        }
        self.settle()?;
        match &self.running {
            None => Ok(()),
            Some(turns) => Err(Error::unavailable(format!(
                "the pipeline has not finished, {:?} still run: a lookup may wait for an answer, or for the clock \
                 (`advance`)",
                turns.running()
            ))),
        }
    }

    /// Whether it has finished: all inputs have ended and everything is published.
    pub fn is_finished(&self) -> bool {
        self.running.is_none()
    }

    /// What the job says of itself: records, watermarks, idle splits, counters such as `late`.
    pub fn status(&self) -> JobStatus {
        self.control.status.snapshot()
    }

    fn start(&mut self, start: Start) -> Result<()> {
        let (shared, inbox) = self.plan.attach(&self.driver, &self.control);
        let (plan, driver, control) = (&self.plan, &self.driver, &self.control);
        let standing = panics::caught("the start of the job", || plan.stand(driver, control, &shared, inbox, start));
        match standing {
            Ok(Standing { tasks, executor, .. }) => self.running = Some(Turns::new(tasks, executor, shared)),
            Err(error) => {
                self.control.detach(&error.to_string());
                return Err(error);
            }
        }
        self.settle()
    }

    fn crash(&mut self) {
        if let Some(turns) = self.running.take() {
            turns.shared.halt();
            self.driver.forget();
            self.control.detach("the test has ended it");
        }
    }

    fn settle(&mut self) -> Result<()> {
        let outcome = match &mut self.running {
            Some(turns) => self.driver.settle(turns),
            None => return Err(over()),
        };
        match outcome {
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                self.crash();
                Ok(())
            }
            Err(error) => {
                self.crash();
                Err(error)
            }
        }
    }

    fn turns(&self) -> Result<&Turns> {
        self.running.as_ref().ok_or_else(over)
    }

    fn command<T>(&mut self, input: &TestInput<T>, command: SourceCommand) -> Result<()> {
        for slot in self.slots(input)? {
            self.turns()?.shared.command_source(slot, command);
        }
        self.settle()
    }

    /// The mailboxes of the tasks that read `input`.
    fn slots<T>(&self, input: &TestInput<T>) -> Result<Vec<usize>> {
        let sources = input.sources();
        let names = self.plan.source_names().enumerate();
        let slots: Vec<_> = names.filter(|(_, name)| sources.contains(*name)).map(|(slot, _)| slot).collect();
        if slots.is_empty() {
            return Err(Error::refused("this input is no source of the pipeline: give a clone of it to `Env::source`"));
        }
        Ok(slots)
    }
}

impl Drop for TestDriver {
    /// The checkpoints are let go of before their folder is deleted.
    fn drop(&mut self) {
        self.crash();
    }
}

fn over() -> Error {
    Error::refused("the pipeline has ended or failed: `restore` starts it again from its newest checkpoint")
}
