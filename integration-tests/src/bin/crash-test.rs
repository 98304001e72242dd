//! `cargo xtask crash-test`: kills the engine at every step, on real brokers.
#![allow(clippy::print_stdout, reason = "this program talks to a person")]

use anyhow::{Context, Result};
use clap::Parser;
use mailer_integration_tests::crash::case::{Backend, Case};
use mailer_integration_tests::crash::plan::{Wanted, cases};
use mailer_integration_tests::crash::run::{Setup, Verdict, on_broker};
use mailer_integration_tests::crash::scenarios::Played;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::kafka::TransactionVersion;
use xtask::wait::Stopwatch;

/// A real process, really killed, on a real broker; its output is read by Kafka's own console consumer.
#[derive(Parser)]
#[command(name = "cargo xtask crash-test")]
struct Arguments {
    /// A selection that passes every point once, in a few minutes.
    #[arg(long)]
    quick: bool,
    /// Only scenarios whose name begins with this.
    #[arg(long)]
    point: Option<String>,
    /// Only this state backend.
    #[arg(long, value_enum)]
    backend: Option<Backend>,
    /// Only this transaction version.
    #[arg(long)]
    txn: Option<TransactionVersion>,
    /// Decides the times of random kills.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kill at random times for so many minutes, instead of everything else.
    #[arg(long)]
    minutes: Option<u64>,
    /// SIGKILLs at random times.
    #[arg(long)]
    kills: Option<u32>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("error: {error:#}");
            println!("crash-test: 0 passed, 1 failed");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let program = victim()?;
    let folder = program.parent().context("the program lies in no folder")?.join("crash-test-cases");
    let watch = Stopwatch::start();
    let mut verdicts = Vec::new();
    let mut seed = arguments.seed;
    loop {
        let setup = Setup { program: program.clone(), folder: folder.clone(), seed };
        let all = cases(&wanted(arguments));
        for transactions in [TransactionVersion::V2, TransactionVersion::V1] {
            let cases: Vec<_> = all.iter().filter(|case| case.transactions == transactions).cloned().collect();
            if !cases.is_empty() {
                println!("{} cases on transaction version {transactions}, seed {seed}", cases.len());
                verdicts.extend(on_broker(&setup, transactions, cases, progress)?);
            }
        }
        seed += 1;
        let goes_on = arguments.minutes.is_some_and(|minutes| watch.elapsed().as_secs() < minutes * 60);
        if !goes_on {
            break;
        }
    }
    Ok(print_table(&verdicts, arguments.seed))
}

fn wanted(arguments: &Arguments) -> Wanted {
    let point = arguments.point.clone().or(arguments.minutes.map(|_| "5-random-kills".to_owned()));
    let random_kills = arguments.kills.unwrap_or(if arguments.quick { 5 } else { 100 });
    Wanted { quick: arguments.quick, point, backend: arguments.backend, transactions: arguments.txn, random_kills }
}

/// The victim lies beside this program; cargo builds all programs of the package together.
fn victim() -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("victim");
    if !program.exists() {
        let mut cargo = xtask::workspace::cargo();
        cargo.args(["build", "--quiet", "--package", "mailer-integration-tests", "--bin", "victim"]);
        xtask::process::run(&mut cargo)?;
    }
    Ok(program)
}

fn progress(case: &Case, result: &Result<Played>, seconds: f64) {
    match result {
        Ok(played) => println!("  {:<52} {} starts  {seconds:.1} s", case.name, played.starts),
        Err(error) => println!("  {:<52} FAILED  {error:#}", case.name),
    }
}

fn print_table(verdicts: &[Verdict], seed: u64) -> bool {
    println!(
        "\n{:<36} {:<8} {:<4} {:>6} {:>6} {:>10}  verdict",
        "point", "backend", "txn", "starts", "deaths", "recoveries"
    );
    for Verdict { case, played, broken } in verdicts {
        let (starts, deaths, recoveries) = played.map_or((0, 0, 0), |p| (p.starts, p.deaths, p.recoveries));
        let verdict = if broken.is_empty() { "ok" } else { "FAILED" };
        let (point, backend, txn) = (case.scenario.to_string(), case.backend.to_string(), case.transactions);
        println!("{point:<36} {backend:<8} {txn:<4} {starts:>6} {deaths:>6} {recoveries:>10}  {verdict}");
        for finding in broken {
            println!("    {finding}");
            println!("    again: cargo xtask crash-test --point {point} --backend {backend} --txn {txn} --seed {seed}");
        }
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.passed()).count();
    let deaths: u32 = verdicts.iter().filter_map(|verdict| verdict.played).map(|played| played.deaths).sum();
    println!("\n{deaths} processes killed; output read by Kafka's console consumer under read_committed");
    println!("crash-test: {} passed, {failed} failed", verdicts.len() - failed);
    failed == 0 && !verdicts.is_empty()
}
