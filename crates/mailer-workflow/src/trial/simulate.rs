//! The same input under many seeds, with crashes anywhere: the output must not know of it.

use super::ends::Ends;
use super::{Tested, failed};
use crate::connector::Registry;
use crate::model::{Happening, TestModel};
use crate::value::Text;
use crate::{Code, Finding, Value, Workflow};
use mailer_runtime::testing::{Outcome, Seed, SeededRun, run_seeded};
use mailer_runtime::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Starts that may be killed; later ones run in peace.
const KILLED: u32 = 6;
/// The latest step of a start at which it is killed.
const LATEST: u64 = 2_500;
/// Differences that are shown of one test.
const SHOWN: usize = 5;

/// What a sink shows, in the order of each key.
type ByKey = BTreeMap<String, Vec<String>>;

impl Workflow {
    /// Runs what the tests in the file send under `seeds` seeds, killing the job at steps that the seed draws, and compares
    /// the output of every sink with that of a run in peace: the same records, for each key in the same order. What the
    /// tests expect, where they crash, and how they move time, does not matter here.
    ///
    /// Checkpoints are written below `folder`, which is empty.
    pub fn simulate(&self, registry: &Registry, folder: &Path, seeds: u64) -> Result<Vec<Tested>> {
        let tests = self.model.tests.iter().enumerate();
        tests
            .map(|(number, test)| self.simulate_test(test, registry, &folder.join(number.to_string()), seeds))
            .collect()
    }

    fn simulate_test(&self, test: &TestModel, registry: &Registry, folder: &Path, seeds: u64) -> Result<Tested> {
        let peace = self.everything(test);
        let run = self.start(registry, &peace, &folder.join("peace"), test.seed, None)?;
        if let Err(error) = run.outcome {
            return Ok(Tested { name: test.name.value.clone(), findings: vec![failed(test, &error)] });
        }
        let undisturbed: Vec<ByKey> = peace.shown(&self.model).sinks.iter().map(|output| by_key(output)).collect();
        let mut findings = Vec::new();
        for seed in 1..=seeds {
            let shown = self.disturbed(test, registry, &folder.join(seed.to_string()), seed)?;
            let differs = shown.iter().zip(&undisturbed).position(|(output, expected)| by_key(output) != *expected);
            if let Some(sink) = differs {
                let id = &self.model.sinks[sink].id.value;
                let message = format!("with crashes of seed {seed}, the sink `{id}` shows something else than without");
                let help =
                    "late records and processing time depend on speed; otherwise this is a bug in Mailer: report it";
                findings.push(Finding::new(Code::Unexpected, test.name.span, message, help));
            }
            if findings.len() == SHOWN {
                break;
            }
        }
        Ok(Tested { name: test.name.value.clone(), findings })
    }

    /// What all sinks show at the end of a life with crashes.
    fn disturbed(&self, test: &TestModel, registry: &Registry, folder: &Path, seed: u64) -> Result<Vec<Vec<Value>>> {
        let ends = self.everything(test);
        let mut chance = Seed::new(seed);
        for start in 0..=KILLED {
            let crash = (start < KILLED && chance.below(4) > 0).then(|| chance.below(LATEST));
            let run = self.start(registry, &ends, folder, chance.draw(), crash)?;
            match run.outcome {
                Ok(Outcome::Finished) => break,
                Ok(Outcome::Crashed) => {}
                Err(error) => return Err(Error::internal(format!("seed {seed}: {error}"))),
            }
        }
        // Thousands of folders of checkpoints are of no use to anybody; one that stays does no harm.
        let _ = std::fs::remove_dir_all(folder);
        Ok(ends.shown(&self.model).sinks)
    }

    /// One start of the job, until it ends or is dropped.
    fn start(
        &self,
        registry: &Registry,
        ends: &Ends,
        folder: &Path,
        seed: u64,
        crash: Option<u64>,
    ) -> Result<SeededRun> {
        run_seeded(self.trial(registry, ends, folder, false)?, seed, crash)
    }

    /// All that a test sends, to its end.
    fn everything(&self, test: &TestModel) -> Ends {
        let ends = Ends::ending(&self.model, test);
        for step in &test.steps {
            if let Happening::Send { source, records } = step {
                ends.script(&self.model.sources[*source].id.value).give(records);
            }
        }
        ends
    }
}

fn by_key(output: &[Value]) -> ByKey {
    let name = Text::from("key");
    let mut sorted = ByKey::new();
    for record in output {
        match record.field(&name) {
            Some(key) => sorted.entry(key.to_string()).or_default().push(record.to_string()),
            // Without a key there is no order to keep.
            None => sorted.entry(record.to_string()).or_default().push(String::new()),
        }
    }
    sorted
}
