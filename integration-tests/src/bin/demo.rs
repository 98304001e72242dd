//! `cargo xtask demo`: shows exactly-once output surviving two deaths, and proves it.
#![allow(clippy::print_stdout, reason = "this program talks to a person")]

use anyhow::{Context, Result, ensure};
use clap::{ArgGroup, Parser};
use mailer_integration_tests::crash::case::Backend;
use mailer_integration_tests::demo::cluster::Cluster;
use mailer_integration_tests::demo::in_process::InProcess;
use mailer_integration_tests::demo::play::{Options, play};
use mailer_integration_tests::demo::real::RealKafka;
use std::process::ExitCode;

/// Order totals from Kafka to Kafka, exactly once: killed twice, then compared with what must come out.
///
/// `cargo xtask demo` needs no arguments: it starts a broker of its own, or runs in process where Java or Maven is
/// missing.
#[derive(Parser)]
#[command(name = "cargo xtask demo", bin_name = "cargo xtask demo")]
#[command(group(ArgGroup::new("cluster").required(true).args(["bootstrap", "in_process"])))]
struct Arguments {
    /// A broker that runs already: host:port.
    #[arg(long)]
    bootstrap: Option<String>,
    /// No broker: a fake one inside of this process, which proves nothing about Kafka.
    #[arg(long)]
    in_process: bool,
    /// Where the engine keeps its state.
    #[arg(long, value_enum, default_value = "rocksdb")]
    backend: Backend,
    /// How many orders.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    orders: u64,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => {
            println!("demo: nothing lost, nothing doubled");
            ExitCode::SUCCESS
        }
        Ok(false) => {
            println!("demo: FAILED, the output is not what it must be");
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("demo: FAILED: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<bool> {
    let programs = std::env::current_exe()?.parent().context("this program lies in no folder")?.to_owned();
    let victim = programs.join("victim");
    ensure!(
        victim.exists(),
        "{} is missing: `cargo xtask demo` builds it, and so does `cargo build -p mailer-integration-tests --bins`",
        victim.display()
    );
    let cluster: Box<dyn Cluster> = match &arguments.bootstrap {
        Some(bootstrap) => Box::new(RealKafka::at(bootstrap)?),
        None => Box::new(InProcess::start()?),
    };
    let Arguments { backend, orders, .. } = arguments;
    play(&*cluster, Options { victim, folder: programs.join("demo-runs"), backend, orders })
}
