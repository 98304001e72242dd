//! `cargo xtask browser-test`: the dashboard's page in a real Chromium, against a real job.
//!
//! The tests are JavaScript, because what drives browsers speaks it: `crates/mailer-dashboard/browser`. Two packages from
//! npm, pinned by their hashes, are installed below `target/`; the browser is the system's.

use crate::process;
use crate::setup::{self, Need};
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names of the browser, best first.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Says which browser to take.
const BROWSER_VARIABLE: &str = "MAILER_CHROMIUM";

const FILES: [&str; 3] = ["package.json", "package-lock.json", "test.mjs"];

/// Tests that passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cases {
    /// So many passed.
    pub passed: usize,
    /// So many did not.
    pub failed: usize,
}

/// Builds the job, brings the tools, runs the tests. Screenshots are left in `target/browser/shots`.
pub fn run() -> Result<Cases> {
    setup::ensure(&Need::PAGE)?;
    Need::PAGE.into_iter().try_for_each(setup::require)?;
    let browser = browser().context("no browser: set MAILER_CHROMIUM to a Chromium")?;
    let mut cargo = workspace::cargo();
    process::run(cargo.args(["build", "--package", "mailer-dashboard", "--example", "scenario"]))?;
    let folder = workspace::root().join("target/browser");
    bring(&folder)?;
    let shots = folder.join("shots");
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=tap", "test.mjs"]).current_dir(&folder);
    node.env("MAILER_SCENARIO", scenario()?).env(BROWSER_VARIABLE, browser).env("MAILER_SHOTS", &shots);
    let cases = show_and_count(&mut node)?;
    println!("screenshots: {}", shots.display());
    Ok(cases)
}

/// The browser on this machine.
pub(crate) fn browser() -> Option<String> {
    let given = std::env::var(BROWSER_VARIABLE).ok().filter(|name| !name.is_empty());
    let found = || BROWSERS.into_iter().find(|name| setup::answers(name)).map(str::to_owned);
    let name = given.or_else(found)?;
    // Playwright asks for a path, not for a name.
    if name.contains('/') {
        return Some(name);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(&name))
        .find(|file| file.is_file())?
        .to_str()
        .map(str::to_owned)
}

fn scenario() -> Result<PathBuf> {
    let target = workspace::members()?.target_directory;
    Ok(target.join("debug/examples/scenario").into_std_path_buf())
}

/// Copies the tests and installs what they need, when that is not there yet.
fn bring(folder: &Path) -> Result<()> {
    let source = workspace::root().join("crates/mailer-dashboard/browser");
    fs::create_dir_all(folder)?;
    let lock = folder.join("package-lock.json");
    let is_there = folder.join("node_modules").is_dir() && fs::read(&lock).ok() == fs::read(source.join(FILES[1])).ok();
    for file in FILES {
        fs::copy(source.join(file), folder.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    if is_there {
        return Ok(());
    }
    // Nothing of a package is run while it is installed.
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder);
    process::run(&mut npm).context("npm could not install the test tools: is a registry within reach?")
}

fn show_and_count(command: &mut Command) -> Result<Cases> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", process::describe(command)))?;
    let mut cases = Cases::default();
    for line in child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
        let line = line?;
        println!("{line}");
        count(&mut cases, &line);
    }
    let status = child.wait()?;
    if !status.success() && cases.failed == 0 {
        bail!("{} failed ({status})", process::describe(command));
    }
    Ok(cases)
}

/// `# pass 7`, `# fail 0`
fn count(cases: &mut Cases, line: &str) {
    let number = |word: &str| line.strip_prefix(word).and_then(|number| number.trim().parse().ok());
    if let Some(passed) = number("# pass ") {
        cases.passed = passed;
    }
    if let Some(failed) = number("# fail ") {
        cases.failed = failed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_of_node_are_counted() {
        let mut cases = Cases::default();
        ["ok 1 - # pass 9", "# tests 7", "# pass 6", "# fail 1"].iter().for_each(|line| count(&mut cases, line));
        assert_eq!(cases, Cases { passed: 6, failed: 1 });
    }
}
