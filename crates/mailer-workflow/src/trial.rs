//! Tests in the file: the whole pipeline, under a seed, with its ends in memory.
//!
//! A test is driven by hand: each thing that happens has its effect before the next one does. After a crash the job
//! recovers from the newest checkpoint in a folder of its own. At the end the input ends.

mod compare;
mod ends;
mod simulate;
mod source;
mod target;

use crate::connector::Registry;
use crate::model::{Happening, TestModel};
use crate::{Code, Finding, Workflow};
use ends::Ends;
use mailer_runtime::testing::{Seed, TestDriver};
use mailer_runtime::{Env, Error, FileStorage, Result};
use std::path::Path;
use std::time::Duration;

/// How long the end of a test waits for lookups that are tried again, in steps of a second of its clock.
const PATIENCE: u32 = 600;

/// What came of one test.
#[derive(Clone, Debug)]
pub struct Tested {
    /// Its name.
    pub name: String,
    /// What did not come out as it says; empty when the test has passed.
    pub findings: Vec<Finding>,
}

impl Workflow {
    /// Runs the tests in the file. Checkpoints are written below `folder`, which is empty; `registry` is the one the
    /// workflow was loaded with, of which nothing is opened.
    pub fn test(&self, registry: &Registry, folder: &Path) -> Result<Vec<Tested>> {
        let tests = self.model.tests.iter().enumerate();
        tests.map(|(number, test)| self.run_test(test, registry, &folder.join(number.to_string()))).collect()
    }

    fn run_test(&self, test: &TestModel, registry: &Registry, folder: &Path) -> Result<Tested> {
        let ends = Ends::new(&self.model, test);
        let env = self.trial(registry, &ends, folder, true)?;
        let findings = match self.drive(test, &ends, env) {
            Ok(()) => compare::compare(test, &ends.shown(&self.model)),
            Err(error) => vec![failed(test, &error.to_string())],
        };
        Ok(Tested { name: test.name.value.clone(), findings })
    }

    /// The pipeline between ends in memory. `probing`: late records are looked at as well.
    fn trial(&self, registry: &Registry, ends: &Ends, folder: &Path, probing: bool) -> Result<Env> {
        let env = self.env().checkpointing(Duration::from_secs(1), FileStorage::new(folder));
        let probes = self.compile_with(&env, &ends.registry(registry), probing)?;
        if let Some(late) = probes.into_iter().reduce(mailer_runtime::Stream::union) {
            late.sink("late records", ends.late.clone());
        }
        Ok(env)
    }

    /// Lets everything happen, in order, and then the input end.
    fn drive(&self, test: &TestModel, ends: &Ends, env: Env) -> Result<()> {
        let mut chance = Seed::new(test.seed);
        let mut driver = TestDriver::seeded(env, test.seed)?;
        for step in &test.steps {
            match step {
                Happening::Send { source, records } => {
                    let script = ends.script(self.source_id(*source));
                    // One by one: event time moves with every record, and what is late is late on every run.
                    for record in records {
                        script.give(std::slice::from_ref(record));
                        driver.run()?;
                    }
                    // What is in the checkpoint at a crash, and what is read again, the seed decides.
                    if chance.below(2) == 0 {
                        driver.checkpoint()?;
                    }
                }
                Happening::Watermark { source, time } => driver.watermark_of(self.source_id(*source), *time)?,
                Happening::Advance(by) => driver.advance(*by)?,
                Happening::At(at) => driver.advance(left(&driver, at.value)?)?,
                Happening::Checkpoint => driver.checkpoint().map(drop)?,
                Happening::Crash => driver.restore()?,
                Happening::Expect { .. } => {}
            }
        }
        finish(&mut driver)
    }

    fn source_id(&self, place: usize) -> &str {
        &self.model.sources[place].id.value
    }
}

fn failed(test: &TestModel, error: &str) -> Finding {
    let help = "repair the pipeline, or the records that the test sends";
    Finding::new(Code::Unexpected, test.name.span, format!("the job fails: {error}"), help)
}

/// How far it is to a time after the start.
fn left(driver: &TestDriver, at: Duration) -> Result<Duration> {
    let passed = Duration::from_millis(driver.now().0.unsigned_abs());
    at.checked_sub(passed).ok_or_else(|| {
        Error::refused(format!(
            "a step of the test is at {at:?}, and {passed:?} have passed: times go up, step by step"
        ))
    })
}

/// Ends the input. Lookups that wait for the clock get their time.
fn finish(driver: &mut TestDriver) -> Result<()> {
    for _ in 0..PATIENCE {
        match driver.finish() {
            Err(_) if !driver.is_finished() => driver.advance(Duration::from_secs(1))?,
            outcome => return outcome,
        }
    }
    driver.finish()
}
