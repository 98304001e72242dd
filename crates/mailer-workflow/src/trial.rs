//! Tests in the file: the whole pipeline, under a seed, with its ends in memory.
//!
//! Between two crashes the sources hand out what was sent so far and then wait, until the driver drops everything as it
//! is. The next start recovers from the newest checkpoint in a folder of its own. At the end the input ends.

mod compare;
mod simulate;
mod source;
mod target;

use crate::connector::{Registry, SinkConnector, SourceConnector};
use crate::decoder::Decoder;
use crate::fields::Fields;
use crate::model::{Happening, TestModel};
use crate::schema::Section;
use crate::{Code, Finding, Value, Workflow};
use mailer_runtime::testing::{Outcome, SeededRun, run_seeded};
use mailer_runtime::{Env, Error, FileStorage, Result, Stream};
use source::Script;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use target::Kept;

/// Steps of the driver between a start and a crash: enough to read what was sent, and for some checkpoints.
const STEPS: u64 = 4_000;

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
        let kept = self.kept();
        let mut findings = Vec::new();
        let crashes = test.steps.iter().filter(|step| matches!(step, Happening::Crash)).count();
        for stretch in 0..=crashes {
            let scripts = self.scripts(test, stretch, crashes);
            let crash = (stretch < crashes).then_some(STEPS);
            let seed = test.seed.wrapping_add(stretch as u64);
            let run = self.start(registry, &scripts, &kept, folder, seed, crash)?;
            match run.outcome {
                Ok(Outcome::Finished | Outcome::Crashed) => {}
                Err(error) => {
                    let help = "repair the pipeline, or the records that the test sends";
                    findings.push(Finding::new(
                        Code::Unexpected,
                        test.name.span,
                        format!("the job fails: {error}"),
                        help,
                    ));
                    break;
                }
            }
        }
        if findings.is_empty() {
            let outputs = self.shown(&kept);
            findings = compare::compare(test, &outputs);
        }
        Ok(Tested { name: test.name.value.clone(), findings })
    }

    /// One start of the job, until it ends or is dropped.
    fn start(
        &self,
        registry: &Registry,
        scripts: &HashMap<String, Script>,
        kept: &HashMap<String, Kept>,
        folder: &Path,
        seed: u64,
        crash: Option<u64>,
    ) -> Result<SeededRun> {
        let ends = replaced(registry, scripts, kept);
        let env = self.env().checkpointing(Duration::from_secs(1), FileStorage::new(folder));
        self.compile(&env, &ends)?;
        run_seeded(env, seed, crash)
    }

    fn kept(&self) -> HashMap<String, Kept> {
        self.model.sinks.iter().map(|sink| (sink.id.value.clone(), Kept::new(&sink.id.value))).collect()
    }

    /// What every sink shows, in the order of the file.
    fn shown(&self, kept: &HashMap<String, Kept>) -> Vec<Vec<Value>> {
        self.model.sinks.iter().map(|sink| kept.get(&sink.id.value).map(Kept::shown).unwrap_or_default()).collect()
    }

    /// What every source hands out up to the crash of that number, or to the end.
    fn scripts(&self, test: &TestModel, stretch: usize, crashes: usize) -> HashMap<String, Script> {
        let mut scripts: HashMap<String, Script> = self
            .model
            .sources
            .iter()
            .map(|source| (source.id.value.clone(), Script::new(stretch == crashes)))
            .collect();
        let mut seen = 0;
        for step in &test.steps {
            match step {
                Happening::Crash if seen == stretch => break,
                Happening::Crash => seen += 1,
                Happening::Send { source, records } => {
                    let id = &self.model.sources[*source].id.value;
                    if let Some(script) = scripts.get_mut(id) {
                        script.extend(records);
                    }
                }
                Happening::Expect { .. } => {}
            }
        }
        scripts
    }
}

/// A registry of the same types whose sources read scripts and whose sinks keep what comes.
fn replaced(registry: &Registry, scripts: &HashMap<String, Script>, kept: &HashMap<String, Kept>) -> Registry {
    let mut ends = Registry::new();
    for source in &registry.sources {
        ends = ends.source(Scripted { section: source.section(), scripts: scripts.clone() });
    }
    for sink in &registry.sinks {
        ends = ends.sink(Keeping { section: sink.section(), kept: kept.clone() });
    }
    ends
}

struct Scripted {
    section: &'static Section,
    scripts: HashMap<String, Script>,
}

impl SourceConnector for Scripted {
    fn section(&self) -> &'static Section {
        self.section
    }

    fn build(&self, env: &Env, id: &str, _: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        let script =
            self.scripts.get(id).ok_or_else(|| Error::internal(format!("no script for the source \"{id}\"")))?;
        Ok(env.source(id, script.clone().decoded_by(decoder)).partitions(1))
    }
}

struct Keeping {
    section: &'static Section,
    kept: HashMap<String, Kept>,
}

impl SinkConnector for Keeping {
    fn section(&self) -> &'static Section {
        self.section
    }

    fn build(&self, stream: Stream<Value>, id: &str, _: Fields<'_>) -> Result<()> {
        let kept = self.kept.get(id).ok_or_else(|| Error::internal(format!("nothing is kept of the sink \"{id}\"")))?;
        stream.sink(id, kept.clone());
        Ok(())
    }
}
