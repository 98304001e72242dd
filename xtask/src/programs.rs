//! What a person starts through xtask: `demo`, `crash-test` and `sim` of `mailer-integration-tests`, and the benches.
//!
//! xtask brings what they need (RocksDB's library, a broker) and passes every argument on as it is.

use crate::kafka::{BOOTSTRAP_VARIABLE, Broker, BrokerOptions, bootstrap_from_environment};
use crate::setup::{self, Need};
use crate::{kafka_bench, process, rocksdb, workflow_bench, workspace};
use anyhow::{Result, bail};
use std::ffi::OsString;

const PACKAGE: &str = "mailer-integration-tests";

/// Instead of the engine, members of a consumer group are killed.
const PARALLEL_CONSUMER: &str = "--parallel-consumer";

/// Kills the engine at every step, on real brokers and a real database, and lets others judge what it wrote.
pub fn crash_test(arguments: &[OsString]) -> Result<()> {
    if arguments.iter().any(|argument| argument == PARALLEL_CONSUMER) {
        return kill_loop(arguments);
    }
    let missing = prepare()?;
    let output = named_output(arguments);
    let needed: Vec<_> = missing.into_iter().filter(|need| is_needed(*need, output.as_deref())).collect();
    if !needed.is_empty() {
        bail!(
            "the crash test needs {}: see above how to get that; `--output kafka`, `files` or `postgres` plays the cases of \
             one kind only, and `files` needs neither a broker nor a database",
            setup::names(&needed)
        );
    }
    build(&["crash-test", "victim", "outputs-victim"])?; // the victims lie beside it
    run("crash-test", arguments)
}

/// The kind of output that the caller wants to see, if he chose one. What it means is the program's business.
fn named_output(arguments: &[OsString]) -> Option<String> {
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let value = |name: &str| {
        let place = arguments.iter().position(|argument| argument.split('=').next() == Some(name))?;
        match arguments[place].split_once('=') {
            Some((_, value)) => Some(value.to_owned()),
            None => Some(arguments.get(place + 1)?.to_string()),
        }
    };
    // Versions of transactions are Kafka's.
    value("--output").or_else(|| value("--txn").map(|_| "kafka".to_owned()))
}

/// Whether cases with this output cannot be played without it.
fn is_needed(need: Need, output: Option<&str>) -> bool {
    match need {
        Need::Java | Need::Maven => !matches!(output, Some("files" | "postgres")),
        Need::Postgres => !matches!(output, Some("files" | "kafka")),
        _ => true,
    }
}

/// The parallel consumer's own crash test: it stands alone, so this needs nothing of the engine.
fn kill_loop(arguments: &[OsString]) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--package", "mailer-parallel-consumer", "--example", "kill_loop", "--"]);
    process::run(cargo.args(arguments.iter().filter(|argument| *argument != PARALLEL_CONSUMER)))
}

/// Runs the engine under seeds, with simulated crashes.
pub fn sim(arguments: &[OsString]) -> Result<()> {
    prepare()?;
    run("sim", arguments)
}

/// Ours beside other clients on a real broker, which is more than a bench of a crate.
const KAFKA: &str = "kafka";

/// A program of its own, with queries and their loops by hand.
const NEXMARK: &str = "nexmark";

/// A workflow beside a loop by hand and a peer, on one file.
const WORKFLOW: &str = "workflow";

/// The other areas that can be measured, each a bench of one crate that holds its own baseline.
const BENCHES: &[(&str, &str, &str)] = &[
    ("chain", "mailer-runtime", "pipelines"),
    ("steps", "mailer-workflow", "steps"),
    ("state", "mailer-state", "value_state"),
    ("window", "mailer-operators", "window"),
    ("window-memory", "mailer-operators", "window_memory"),
    ("session-memory", "mailer-runtime", "open_sessions"),
    ("checkpoint", "mailer-state-rocksdb", "checkpoint"),
    ("metrics", "mailer-dashboard", "overhead"),
    ("parallel-consumer", "mailer-parallel-consumer", "parallel_consumer"),
];

/// Measures one area; what follows its name goes to the bench.
pub fn bench(arguments: &[OsString]) -> Result<()> {
    let area = arguments.first().map(|area| area.to_string_lossy().into_owned()).unwrap_or_default();
    if area == KAFKA {
        return kafka_bench::run(&arguments[1..]);
    }
    if area == NEXMARK {
        return nexmark(&arguments[1..]);
    }
    if area == WORKFLOW {
        return workflow_bench::run(&arguments[1..]);
    }
    let Some((_, package, bench)) = BENCHES.iter().find(|(name, ..)| *name == area) else {
        let names: Vec<_> = BENCHES.iter().map(|(name, ..)| *name).chain([KAFKA, NEXMARK, WORKFLOW]).collect();
        bail!("no area {area:?} to measure: give one of {}", names.join(", "));
    };
    prepare()?;
    let mut cargo = workspace::cargo();
    cargo.args(["bench", "--package", package, "--bench", bench, "--"]);
    process::run(cargo.args(&arguments[1..]))
}

/// Nexmark's queries; the smoke test measures nothing, and has most of it compiled already by the tests.
fn nexmark(arguments: &[OsString]) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--package", "mailer-nexmark", "--bin", "nexmark"]);
    if !arguments.iter().any(|argument| argument == "--smoke") {
        cargo.arg("--release");
    }
    process::run(cargo.arg("--").args(arguments))
}

/// Shows exactly-once output surviving two deaths: on a real broker where one can be had, else in process.
pub fn demo(arguments: &[OsString]) -> Result<()> {
    let missing = prepare()?;
    build(&["demo", "victim"])?; // the demo kills the victim, which lies beside it
    if names_a_cluster(arguments) {
        return run("demo", arguments);
    }
    if let Some(bootstrap) = bootstrap_from_environment() {
        println!("demo: {BOOTSTRAP_VARIABLE}={bootstrap} is set, so it runs on that broker");
        return run("demo", &with(arguments, &["--bootstrap", &bootstrap]));
    }
    if missing.contains(&Need::Java) || missing.contains(&Need::Maven) {
        println!(
            "demo: there is no real Kafka without Java and Maven (see above for how to get them), so it runs on a"
        );
        println!(
            "      fake broker in its own process: the same engine and the same kills, but no proof about Kafka\n"
        );
        return run("demo", &with(arguments, &["--in-process"]));
    }
    println!("demo: starting a real Kafka broker");
    let broker = Broker::start(BrokerOptions::named("demo"))?;
    run("demo", &with(arguments, &["--bootstrap", broker.bootstrap()]))
}

/// The caller has chosen where the demo runs, or only asks how to use it.
fn names_a_cluster(arguments: &[OsString]) -> bool {
    let chosen = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        argument.starts_with("--bootstrap") || ["--in-process", "--help", "-h"].contains(&&*argument)
    };
    arguments.iter().any(chosen)
}

/// Builds programs, and shows how far that is: the first time takes minutes.
fn build(programs: &[&str]) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--package", PACKAGE]);
    process::run(cargo.args(programs.iter().flat_map(|program| ["--bin", program])))
}

/// In the profile of the tests, so that nothing is compiled twice.
fn run(program: &str, arguments: &[OsString]) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--package", PACKAGE, "--bin", program, "--"]);
    process::run(cargo.args(arguments))
}

/// What is missing on this machine after an attempt to install it. RocksDB's library is compiled if it can be.
fn prepare() -> Result<Vec<Need>> {
    let missing = setup::ensure(&Need::ENGINE)?;
    if !missing.contains(&Need::Compiler) && !missing.contains(&Need::Libclang) {
        rocksdb::ensure()?;
    }
    Ok(missing)
}

fn with(arguments: &[OsString], more: &[&str]) -> Vec<OsString> {
    arguments.iter().cloned().chain(more.iter().map(OsString::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_without_a_broker_need_no_broker() {
        let needs = |arguments: &[&str]| {
            let output = named_output(&with(&[], arguments));
            let needed = Need::ENGINE.into_iter().filter(|need| is_needed(*need, output.as_deref()));
            needed.filter(|need| ![Need::Compiler, Need::Libclang].contains(need)).collect::<Vec<_>>()
        };
        assert_eq!(needs(&["--quick"]), [Need::Java, Need::Maven, Need::Postgres]);
        assert_eq!(needs(&["--quick", "--output", "postgres"]), [Need::Postgres]);
        assert_eq!(needs(&["--output=kafka", "--quick"]), [Need::Java, Need::Maven]);
        assert!(needs(&["--output", "files"]).is_empty());
    }

    #[test]
    fn a_broker_is_started_only_when_none_is_named() {
        let names = |arguments: &[&str]| names_a_cluster(&with(&[], arguments));
        assert!(!names(&[]) && !names(&["--backend", "memory", "--orders", "5000"]));
        assert!(names(&["--in-process"]) && names(&["--help"]) && names(&["--bootstrap=127.0.0.1:9092"]));
    }
}
