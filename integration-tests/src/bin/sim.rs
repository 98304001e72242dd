//! `cargo xtask sim`: the engine under many seeds.
#![allow(clippy::print_stdout, reason = "this program talks to a person")]

use clap::Parser;
use mailer_integration_tests::simulation::run::{Report, run};
use mailer_runtime::testing::Mutations;
use std::process::ExitCode;

/// Runs the real tasks, operators, coordinator and recovery under a seed, with crashes at arbitrary steps.
#[derive(Parser)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// One seed, with everything it says.
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seeds = arguments.seed.map_or(1..arguments.seeds + 1, |seed| seed..seed + 1);
    let mut failed = 0u64;
    let (mut steps, mut crashes, mut failures, mut passed) = (0, 0, 0, 0u64);
    for seed in seeds {
        let report = run(seed, Mutations::default());
        steps += report.steps;
        crashes += report.crashes;
        failures += report.failures;
        if report.broken.is_empty() {
            passed += 1;
        } else {
            failed += 1;
            print_failure(&report);
        }
        if arguments.seed.is_some() {
            println!("{report:#?}");
        }
    }
    println!("{crashes} crashes, {failures} failed runs recovered, {steps} steps");
    println!("sim: {passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_failure(report: &Report) {
    println!("seed {} after {} starts:", report.seed, report.starts);
    report.broken.iter().for_each(|finding| println!("  {finding}"));
    println!("  again: cargo xtask sim --seed {}", report.seed);
}
