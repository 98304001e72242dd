//! `mailer test` and `mailer simulate`: the tests in workflows.

use super::{Outcome, find, read, report, say};
use crate::cli::{SimulateOptions, TestOptions};
use crate::connectors::registry;
use crate::exit::{Code, Exit};
use mailer_workflow::{Finding, Report, Tested, Workflow};
use std::fs;
use std::path::{Path, PathBuf};

/// `mailer test`
pub(crate) fn test(options: &TestOptions) -> Outcome {
    tried(&options.files, |workflow, folder| workflow.test(&registry(), folder))
}

/// `mailer simulate`
pub(crate) fn simulate(options: &SimulateOptions) -> Outcome {
    tried(std::slice::from_ref(&options.file), |workflow, folder| workflow.simulate(&registry(), folder, options.seeds))
}

/// Tries the tests of all files, and says what came of each.
fn tried(files: &[PathBuf], run: impl Fn(&Workflow, &Path) -> mailer_core::Result<Vec<Tested>>) -> Outcome {
    let (mut tests, mut failed) = (0, 0);
    for file in files {
        let text = read(file)?;
        let workflow = find(file, &text, false);
        let workflow = workflow.map_err(|found| Exit::new(Code::Invalid, report(file, &text, &found)))?;
        let folder = Scratch::new()?;
        for tested in run(&workflow, &folder.0)? {
            tests += 1;
            failed += usize::from(!tested.findings.is_empty());
            say(&line(file, &text, &tested))?;
        }
    }
    say(&format!("{} passed, {failed} failed\n", tests - failed))?;
    if tests == 0 {
        let hint =
            "there are no tests: add `tests:`, with what to send and what to expect; `mailer init` writes an example";
        return Err(Exit::new(Code::Done, hint));
    }
    Ok(if failed == 0 { Code::Done } else { Code::Unexpected })
}

fn line(file: &Path, text: &str, tested: &Tested) -> String {
    let Tested { name, findings } = tested;
    let file = file.display().to_string();
    let differs = |findings: &[Finding]| format!("{}\n", Report::new(&file, text, findings));
    match findings.as_slice() {
        [] => format!("ok      {file}: {name}\n"),
        findings => format!("failed  {file}: {name}\n\n{}", differs(findings)),
    }
}

/// A folder for the checkpoints of tests; it goes when they are over.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Exit> {
        let folder = std::env::temp_dir().join(format!("mailer-test-{}", std::process::id()));
        let failed =
            |e: std::io::Error| Exit::new(Code::File, format!("error: {} cannot be made: {e}", folder.display()));
        fs::create_dir_all(&folder).map_err(failed)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever empties the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
