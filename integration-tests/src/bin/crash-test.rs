//! `cargo xtask crash-test`: kills the engine at every step, on real brokers, in folders, on a real database.
#![allow(clippy::print_stdout, reason = "this program talks to a person")]

use anyhow::{Context, Result};
use clap::Parser;
use mailer_integration_tests::crash::case::{Backend, Case, Output, Target};
use mailer_integration_tests::crash::plan::{Wanted, cases};
use mailer_integration_tests::crash::run::{Setup, Verdict, on_target};
use mailer_integration_tests::crash::scenarios::Played;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::kafka::TransactionVersion;
use xtask::wait::Stopwatch;

/// A real process, really killed, that writes to a real broker, a folder or a real database; its output is read by Kafka's own
/// console consumer, by psql, and as any program reads files.
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
    /// Only this kind of output.
    #[arg(long, value_enum)]
    output: Option<Output>,
    /// Only Kafka, on this transaction version.
    #[arg(long)]
    txn: Option<TransactionVersion>,
    /// Decides the times of random kills.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kill at random times for so many minutes, instead of everything else.
    #[arg(long)]
    minutes: Option<u64>,
    /// SIGKILLs at random times, for each kind of output.
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
    let programs = programs()?;
    let folder = programs.join("crash-test-cases");
    let watch = Stopwatch::start();
    let mut verdicts = Vec::new();
    let mut seed = arguments.seed;
    loop {
        let setup = Setup { programs: programs.clone(), folder: folder.clone(), seed };
        let all = cases(&wanted(arguments));
        for target in Target::ALL {
            let cases: Vec<_> = all.iter().filter(|case| case.target == target).cloned().collect();
            if !cases.is_empty() {
                println!("{} cases with {target}, seed {seed}", cases.len());
                verdicts.extend(on_target(&setup, target, cases, progress)?);
            }
        }
        seed += 1;
        let goes_on = arguments.minutes.is_some_and(|minutes| watch.elapsed().as_secs() < minutes * 60);
        if !goes_on {
            break;
        }
    }
    Ok(print_table(&verdicts))
}

fn wanted(arguments: &Arguments) -> Wanted {
    let point = arguments.point.clone().or(arguments.minutes.map(|_| "5-random-kills".to_owned()));
    let random_kills = arguments.kills.unwrap_or(if arguments.quick { 5 } else { 100 });
    let Arguments { quick, backend, output, txn: transactions, .. } = *arguments;
    Wanted { quick, point, backend, output, transactions, random_kills }
}

/// The victims lie beside this program; cargo builds all programs of the package together.
fn programs() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    for victim in ["victim", "outputs-victim"] {
        if !this.with_file_name(victim).exists() {
            let mut cargo = xtask::workspace::cargo();
            cargo.args(["build", "--quiet", "--package", "mailer-integration-tests", "--bin", victim]);
            xtask::process::run(&mut cargo)?;
        }
    }
    Ok(this.parent().context("the program lies in no folder")?.to_owned())
}

fn progress(case: &Case, result: &Result<Played>, seconds: f64) {
    match result {
        Ok(played) => println!("  {:<52} {} starts  {seconds:.1} s", case.name, played.starts),
        Err(error) => println!("  {:<52} FAILED  {error:#}", case.name),
    }
}

fn print_table(verdicts: &[Verdict]) -> bool {
    println!(
        "\n{:<40} {:<8} {:<8} {:>6} {:>6} {:>10}  verdict",
        "point", "backend", "output", "starts", "deaths", "recoveries"
    );
    for Verdict { case, seed, played, broken } in verdicts {
        let (starts, deaths, recoveries) = played.map_or((0, 0, 0), |p| (p.starts, p.deaths, p.recoveries));
        let verdict = if broken.is_empty() { "ok" } else { "FAILED" };
        let (point, backend, target) = (case.scenario.to_string(), case.backend.to_string(), case.target.to_string());
        println!("{point:<40} {backend:<8} {target:<8} {starts:>6} {deaths:>6} {recoveries:>10}  {verdict}");
        for finding in broken {
            println!("    {finding}");
        }
        if !broken.is_empty() {
            let output = case.target.arguments();
            println!("    again: cargo xtask crash-test {output} --point {point} --backend {backend} --seed {seed}");
        }
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.passed()).count();
    println!("\n{}", summary(verdicts));
    println!("crash-test: {} passed, {failed} failed", verdicts.len() - failed);
    failed == 0 && !verdicts.is_empty()
}

/// How many died, and who read their output.
fn summary(verdicts: &[Verdict]) -> String {
    let deaths = |output| {
        let of_output = verdicts.iter().filter(|verdict| verdict.case.target.output() == output);
        of_output.filter_map(|verdict| verdict.played).map(|played| played.deaths).sum::<u32>()
    };
    let line = |(output, reader): &(Output, &str)| match deaths(*output) {
        0 => None,
        deaths => Some(format!("{deaths} processes killed; output read {reader}")),
    };
    let readers = [
        (Output::Kafka, "by Kafka's console consumer under read_committed"),
        (Output::Files, "from the files of a folder"),
        (Output::Postgres, "by psql, and from the files of a folder"),
    ];
    readers.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
