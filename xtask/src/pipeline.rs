//! `cargo xtask test`: everything that a change has to pass, in the order in which it fails soonest.
//!
//! Every step runs, also after one has failed: one run tells everything. The last line counts test cases and steps.

mod report;

use crate::kafka::bootstrap_from_environment;
use crate::kafka::{BOOTSTRAP_VARIABLE, BOOTSTRAP_VARIABLE_V1, Broker, BrokerOptions, TransactionVersion};
use crate::postgres::{self, Server, ServerOptions};
use crate::{browser, layers, process, programs, setup, tidy, workspace};
use anyhow::{Context, Result, bail};
use report::{Count, Report};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// The test that every connector to Kafka has for a real broker.
const REAL_BROKER: &str = "real_broker";

/// How much of it to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All.
    Full,
    /// The everyday loop: style, rules and the tests of the default members; no RocksDB, no broker, no crash.
    Fast,
}

/// Runs the steps, prints the closing line last, and returns whether everything passed.
pub fn run(extent: Extent) -> bool {
    let mut report = Report::default();
    let workspace: &[&str] = if extent == Extent::Full { &["--workspace"] } else { &[] };
    if extent == Extent::Full {
        report.step("setup", || setup::run().map(|()| Count::STEP));
    }
    report.step("format", || cargo(&["fmt", "--all", "--check"], &[]));
    report.step("layers", || layers::run().map(|()| Count::STEP));
    report.step("tidy", || tidy::run().map(|()| Count::STEP));
    let lints = [&["clippy"], workspace, &["--all-targets", "--", "-D", "warnings"]].concat();
    report.step("clippy", || cargo(&lints, &[]));
    let build = [&["test"], workspace, &["--no-run"]].concat();
    report.step("build tests", || cargo(&build, &[]));
    if extent == Extent::Full {
        full(&mut report);
    } else {
        report.step("tests", || tests(&["test", "--no-fail-fast"], &[]));
    }
    report.finish()
}

fn full(report: &mut Report) {
    let mut brokers = Vec::new();
    report.step("brokers", || {
        brokers = start_brokers()?;
        Ok(Count::STEP)
    });
    let mut database = None;
    report.step("database", || {
        database = start_database()?;
        Ok(Count::STEP)
    });
    let url = database.as_ref().map(Server::url);
    let variables = brokers.iter().map(|(variable, broker)| (*variable, broker.bootstrap()));
    let variables: Vec<_> = variables.chain(url.as_deref().map(|url| (postgres::URL_VARIABLE, url))).collect();
    report.step("tests", || tests(&["test", "--workspace", "--no-fail-fast"], &variables));
    // The scenarios of the connector once more, on the older transaction version. `--workspace` keeps the features, and
    // so what is compiled already, as they were.
    let older = brokers.iter().find(|(variable, _)| *variable == BOOTSTRAP_VARIABLE_V1);
    let older: Vec<_> = older.map(|(_, broker)| (BOOTSTRAP_VARIABLE, broker.bootstrap())).into_iter().collect();
    report.step("tests, txn 1", || tests(&["test", "--workspace", "--no-fail-fast", "--test", REAL_BROKER], &older));
    drop((variables, older, database));
    drop(brokers); // the crash test starts its own
    report.step("browser-test", || browser::run().map(|cases| Count { passed: cases.passed, failed: cases.failed }));
    let strict = [("RUSTDOCFLAGS", "-D warnings")];
    report.step("documentation", || cargo(&["doc", "--workspace", "--no-deps"], &strict));
    let mut program = |name: &str, run: fn(&[OsString]) -> Result<()>, arguments: &[&str]| {
        let given: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        report.step(&[&[name], arguments].concat().join(" "), || run(&given).map(|()| Count::STEP));
    };
    program("sim", programs::sim, &["--seeds", "500"]);
    program("crash-test", programs::crash_test, &["--quick"]);
    program("crash-test", programs::crash_test, &["--parallel-consumer", "--kills", "4"]);
    program("bench", programs::bench, &["nexmark", "--smoke"]);
    program("bench", programs::bench, &["kafka", "--smoke"]);
}

/// One broker for each transaction version; for the current one, the broker that the environment names is preferred.
fn start_brokers() -> Result<Vec<(&'static str, Broker)>> {
    let mut wanted = vec![("test-txn1", TransactionVersion::V1, BOOTSTRAP_VARIABLE_V1)];
    match bootstrap_from_environment() {
        Some(bootstrap) => println!("{BOOTSTRAP_VARIABLE}={bootstrap} is set: the tests use that broker"),
        None => wanted.push(("test-txn2", TransactionVersion::V2, BOOTSTRAP_VARIABLE)),
    }
    let mut brokers = Vec::new();
    for (name, version, variable) in wanted {
        let broker = Broker::start(BrokerOptions::named(name).transactions(version))?;
        println!("{name}: {variable}={}", broker.bootstrap());
        brokers.push((variable, broker));
    }
    Ok(brokers)
}

/// A database server, unless the environment names one.
fn start_database() -> Result<Option<Server>> {
    if let Some(url) = postgres::url_from_environment() {
        println!("{}={url} is set: the tests use that server", postgres::URL_VARIABLE);
        return Ok(None);
    }
    let server = Server::start(ServerOptions::named("test"))?;
    println!("{}={}", postgres::URL_VARIABLE, server.url());
    Ok(Some(server))
}

fn cargo(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Count> {
    let mut cargo = workspace::cargo();
    process::run(cargo.args(arguments).envs(variables.iter().copied()))?;
    Ok(Count::STEP)
}

/// Runs cargo's tests, shows what they print, and counts their cases.
fn tests(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Count> {
    let mut cargo = workspace::cargo();
    cargo.args(arguments).envs(variables.iter().copied());
    let (count, failure) = show_and_count(&mut cargo)?;
    match failure {
        // Something ended before it could count: a test that does not compile, a process that aborted.
        Some(failure) if count.failed == 0 => bail!("{failure}"),
        _ => Ok(count),
    }
}

fn show_and_count(command: &mut Command) -> Result<(Count, Option<String>)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", process::describe(command)))?;
    let mut count = Count::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            count += Count::of_result_line(&line);
        }
    }
    let status = child.wait()?;
    let failure = (!status.success()).then(|| format!("{} failed ({status})", process::describe(command)));
    Ok((count, failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_counted_and_a_failure_is_kept() {
        let script = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'; echo other; exit 1";
        let (count, failure) = show_and_count(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(count, Count { passed: 3, failed: 0 });
        assert!(failure.unwrap().contains("exit status: 1"));
    }
}
