//! The programs of `mailer-integration-tests` that a person starts through xtask: `demo`, `crash-test`, `sim`, `bench`.
//!
//! xtask brings what they need (RocksDB's library, a broker) and passes every argument on as it is.

use crate::kafka::{Broker, BrokerOptions, bootstrap_from_environment};
use crate::setup::{self, Need};
use crate::{process, rocksdb, workspace};
use anyhow::{Result, bail};
use std::ffi::OsString;

const PACKAGE: &str = "mailer-integration-tests";

/// Kills the engine at every step, on real brokers, and lets Kafka's own consumer judge.
pub fn crash_test(arguments: &[OsString]) -> Result<()> {
    let missing = prepare()?;
    if !missing.is_empty() {
        bail!("the crash test needs a real broker: see what is missing above");
    }
    run("crash-test", Profile::Dev, arguments)
}

/// Runs the engine under seeds, with simulated crashes.
pub fn sim(arguments: &[OsString]) -> Result<()> {
    prepare()?;
    run("sim", Profile::Dev, arguments)
}

/// Measures one area. Prints nothing of its own to standard output: with `--json` that is data.
pub fn bench(arguments: &[OsString]) -> Result<()> {
    run("bench", Profile::Release, arguments)
}

/// Shows exactly-once output surviving a crash: on a real broker where one can be had, else in process.
pub fn demo(arguments: &[OsString]) -> Result<()> {
    let missing = prepare()?;
    if let Some(bootstrap) = bootstrap_from_environment() {
        return run("demo", Profile::Dev, &with(arguments, &["--bootstrap", &bootstrap]));
    }
    if missing.contains(&Need::Java) || missing.contains(&Need::Maven) {
        println!("demo: no broker without Java and Maven (see above), so it runs in this process, without Kafka");
        return run("demo", Profile::Dev, &with(arguments, &["--in-process"]));
    }
    let broker = Broker::start(BrokerOptions::named("demo"))?;
    println!("demo: a real Kafka broker listens at {}", broker.bootstrap());
    run("demo", Profile::Dev, &with(arguments, &["--bootstrap", broker.bootstrap()]))
}

#[derive(Debug, Clone, Copy)]
enum Profile {
    /// That of the tests, so that nothing is compiled twice.
    Dev,
    Release,
}

fn run(program: &str, profile: Profile, arguments: &[OsString]) -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--package", PACKAGE, "--bin", program]);
    if matches!(profile, Profile::Release) {
        cargo.arg("--release");
    }
    process::run(cargo.arg("--").args(arguments))
}

/// What is missing on this machine after an attempt to install it. RocksDB's library is compiled if it can be.
fn prepare() -> Result<Vec<Need>> {
    let missing = setup::ensure()?;
    if !missing.contains(&Need::Compiler) && !missing.contains(&Need::Libclang) {
        rocksdb::ensure()?;
    }
    Ok(missing)
}

fn with(arguments: &[OsString], more: &[&str]) -> Vec<OsString> {
    arguments.iter().cloned().chain(more.iter().map(OsString::from)).collect()
}
