//! What it costs to be watched, in three figures that do not share their errors:
//!
//! - **together**: the same pipeline without anything, and with a dashboard that is asked once a second, many short runs in
//!   turn, by the CPU time of the whole process. What the watching does to the workers is in it; so is noise, and the
//!   interval says how much.
//! - **the watching threads**: what they take by themselves, by the system's account of each thread. Hardly any noise.
//! - **the counters**: what the engine counts per batch, which it does whether anybody looks or not.
//!
//! `cargo xtask bench metrics [--json] [--rounds N]`; among the tests it runs once with few records.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench talks to its terminal, and ends when it cannot go on"
)]

#[path = "overhead/direct.rs"]
mod direct;
#[path = "overhead/estimate.rs"]
mod estimate;
#[path = "overhead/jobs.rs"]
mod jobs;

use direct::Direct;
use estimate::{Estimate, difference, median};
use jobs::{Scraper, run, watched};
use mailer_runtime::Env;
use mailer_runtime::testing::Counting;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::sync::mpsc::channel;

/// Enough for an interval of about a percent on a machine that does nothing else.
const ROUNDS: usize = 60;
/// A run of a bit more than a second: it is asked once.
const RECORDS: u64 = 80_000_000;
/// Of each of the two runs whose threads are looked at.
const SECONDS: u32 = 8;

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU nanoseconds a record.
fn without(records: u64) -> f64 {
    let began = cpu();
    run(Env::new("plain"), records);
    (cpu() - began) * 1e9 / records as f64
}

fn with(records: u64) -> f64 {
    let (env, address) = watched();
    let began = cpu();
    let scraper = Scraper::start(address);
    run(env, records);
    let spent = cpu() - began;
    scraper.stop();
    spent * 1e9 / records as f64
}

/// Plain and watched in turn. Who comes first changes: what drifts meets both alike.
fn pairs(rounds: usize, records: u64) -> Vec<(f64, f64)> {
    let pair = |round| match round % 2 {
        0 => (without(records), with(records)),
        _ => {
            let watched = with(records);
            (without(records), watched)
        }
    };
    (0..rounds).map(pair).collect()
}

/// What is counted for a batch, in nanoseconds, and how many records a batch has when the pipeline runs.
fn counters(batches: u64, records: u64) -> (f64, f64) {
    let counting = Counting::default();
    let began = cpu();
    (0..batches).for_each(|_| counting.batch(black_box(1_000), black_box(64_000)));
    let each = (cpu() - began) * 1e9 / batches as f64;
    let (sender, watches) = channel();
    run(Env::new("counted").observer(move |watch| sender.send(watch).unwrap()), records);
    let status = watches.recv().unwrap().status();
    let stage = status.stages.last().unwrap();
    let taken: u64 = stage.by_worker.iter().map(|worker| worker.batches).sum();
    (each, stage.records as f64 / taken as f64)
}

struct Outcome {
    plain: f64,
    watched: f64,
    together: Estimate,
    direct: Option<Direct>,
    /// Nanoseconds a batch, and records in one.
    counters: (f64, f64),
}

impl Outcome {
    fn counted(&self) -> f64 {
        let (each, records) = self.counters;
        each / records / self.plain
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let after = |name: &str| arguments.iter().skip_while(|argument| *argument != name).nth(1);
    // Among the tests, where cargo says nothing, it runs once so that it does not rot.
    let is_bench = has("--bench");
    let rounds = after("--rounds").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let (records, rounds) = if is_bench { (RECORDS, rounds) } else { (100_000, 1) };
    estimate::check();
    without(records.min(2_000_000)); // warms up
    let pairs = pairs(rounds, records);
    let outcome = Outcome {
        plain: median(pairs.iter().map(|pair| pair.0).collect()),
        watched: median(pairs.iter().map(|pair| pair.1).collect()),
        together: difference(&pairs),
        direct: direct::measure(if is_bench { SECONDS } else { 1 }),
        counters: counters(if is_bench { 10_000_000 } else { 1_000 }, records),
    };
    if has("--json") { json(&outcome) } else { report(&outcome, rounds) }
}

fn json(outcome: &Outcome) {
    for (subject, value) in [("limit", outcome.plain), ("ours", outcome.watched)] {
        println!(
            "{{\"area\": \"metrics\", \"case\": \"keyed\", \"subject\": \"{subject}\", \"metric\": \
             \"cpu_ns_per_record\", \"value\": {value:.2}, \"unit\": \"ns\"}}"
        );
    }
    let Estimate { value, low, high } = outcome.together;
    let mut shares = vec![("together", value), ("together_low", low), ("together_high", high)];
    shares.extend(outcome.direct.as_ref().map(|direct| ("watching_threads", direct.sum())));
    shares.push(("counters", outcome.counted()));
    for (metric, share) in shares {
        println!(
            "{{\"area\": \"metrics\", \"case\": \"keyed\", \"subject\": \"ours\", \"metric\": \"{metric}\", \"value\": \
             {:.4}, \"unit\": \"percent\"}}",
            share * 100.0
        );
    }
}

fn report(outcome: &Outcome, rounds: usize) {
    let percent = |share: f64| share * 100.0;
    let Estimate { value, low, high } = outcome.together;
    println!("keyed reduce, 2 workers, CPU of the whole process, medians of {rounds} pairs");
    println!("without            {:8.2} ns a record", outcome.plain);
    println!("with a dashboard   {:8.2} ns a record, asked once a second", outcome.watched);
    println!("together           {:+8.2} % (95 %: {:+.2} … {:+.2} %)", percent(value), percent(low), percent(high));
    match &outcome.direct {
        Some(direct) => println!(
            "watching threads   {:+8.3} % (dashboard {:.3}, publishing {:.3}, who asks {:.3}; of {:.2} CPUs)",
            percent(direct.sum()),
            percent(direct.dashboard),
            percent(direct.coordinator),
            percent(direct.scraper),
            direct.process
        ),
        None => println!("watching threads   not known: this system keeps no account of threads"),
    }
    let (each, records) = outcome.counters;
    println!(
        "counters           {:+8.3} % ({each:.0} ns for a batch of {records:.0} records)",
        percent(outcome.counted())
    );
}
