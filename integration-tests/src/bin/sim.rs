//! `cargo xtask sim`: the engine under many seeds.
#![allow(clippy::print_stdout, reason = "this program talks to a person")]

use clap::Parser;
use mailer_integration_tests::crash::case::Backend;
use mailer_integration_tests::pipelines::run::Way;
use mailer_integration_tests::pipelines::shrink::{check, smaller};
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
    /// So many random pipelines of the operators of event time, instead.
    #[arg(long)]
    pipelines: Option<u64>,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// One of them; if it fails, the smallest case that does.
    #[arg(long, conflicts_with = "pipelines")]
    pipeline: Option<u64>,
    /// Where all of them keep their state; in memory but for every 24th run when not said.
    #[arg(long, value_enum)]
    backend: Option<Backend>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(count) = arguments.pipelines {
        return pipelines(arguments.first..arguments.first + count, arguments.backend);
    }
    if let Some(seed) = arguments.pipeline {
        return pipelines(seed..seed + 1, arguments.backend);
    }
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

/// Every seed, each in several ways; the first few failures are made smaller.
fn pipelines(seeds: std::ops::Range<u64>, backend: Option<Backend>) -> ExitCode {
    const SHOWN: u64 = 3;
    const EVERY: u64 = 500;
    let keep = |way: &mut Way| way.rocksdb = backend.map_or(way.rocksdb, |backend| backend == Backend::Rocksdb);
    let (mut passed, mut failed, mut crashes) = (0u64, 0, 0u64);
    for seed in seeds {
        match check(seed, keep) {
            Ok(died) => {
                passed += 1;
                crashes += u64::from(died);
                if passed.is_multiple_of(EVERY) {
                    println!("{passed} passed, up to seed {seed}");
                }
            }
            Err(finding) => {
                failed += 1;
                println!("pipeline {seed}: {}\n  again: cargo xtask sim --pipeline {seed}", finding.why);
                if failed <= SHOWN {
                    println!("{:#?}", smaller(*finding));
                }
            }
        }
    }
    println!("{crashes} crashes");
    println!("sim: {passed} pipelines passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
