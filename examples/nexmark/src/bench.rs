//! `cargo xtask bench nexmark`: events per second and CPU time per event of every query, beside loops by hand where there
//! are some.
//!
//! Events are made before the clock starts ([`Replay`]) and copied out of memory on it; q0 is the price of that. Results
//! are dropped. Rounds go through all queries in turn, ours and by hand; figures are medians, and ratios are taken within a
//! round.

mod report;

use crate::by_hand;
use crate::generator::Model;
use crate::queries::Query;
use crate::replay::Replay;
use anyhow::Result;
use clap::{Parser, ValueEnum};
use mailer_measure::meter::{Moment, Spent};
use mailer_runtime::Env;
use report::Report;
use std::hint::black_box;

/// Events that are made; more are the same again, later.
const BLOCK: u64 = 1_000_000;

/// Events per second and CPU time per event of Nexmark's queries.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench nexmark", bin_name = "cargo xtask bench nexmark")]
pub struct Options {
    /// Only these queries: q0,q5
    #[arg(long, value_delimiter = ',')]
    query: Vec<Query>,
    /// Events of a run; 10,000,000 unless said
    #[arg(long)]
    events: Option<u64>,
    /// Events in a second of event time. The benchmark's standard run is 100,000,000 events at 10,000,000 a second; this
    /// is the same ten seconds with a tenth of the events
    #[arg(long, default_value_t = 1_000_000)]
    rate: u64,
    /// Workers of every stage
    #[arg(long, default_value_t = 1)]
    workers: u16,
    /// Rounds; 5 unless said
    #[arg(long)]
    rounds: Option<usize>,
    /// One JSON object a line on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// One round of few events, for the tests
    #[arg(long)]
    smoke: bool,
}

impl Options {
    fn queries(&self) -> Vec<Query> {
        if self.query.is_empty() { Query::value_variants().to_vec() } else { self.query.clone() }
    }

    fn events(&self) -> u64 {
        self.events.unwrap_or(if self.smoke { 20_000 } else { 10_000_000 }).max(1)
    }

    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.smoke { 1 } else { 5 }).max(1)
    }
}

/// What one run of a query has cost.
#[derive(Clone, Copy, Debug)]
struct Round {
    ours: Spent,
    by_hand: Option<Spent>,
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<()> {
    let (queries, events) = (options.queries(), options.events());
    let model = Model { rate: options.rate.max(1), ..Model::default() };
    let replay = Replay::new(&model, events.min(BLOCK));
    let mut report = Report::new(options, &queries, events);
    for _ in 0..options.rounds() {
        for query in &queries {
            let (done, ours) = spent(|| ours(*query, &replay, options.workers, events));
            done?;
            let (is_one, by_hand) = spent(|| by_hand::discard(*query, &replay, events));
            report.add(*query, Round { ours, by_hand: is_one.then_some(by_hand) });
        }
    }
    report.print();
    Ok(())
}

fn spent<T>(run: impl FnOnce() -> T) -> (T, Spent) {
    let begin = Moment::now();
    let done = black_box(run());
    (done, begin.spent())
}

fn ours(query: Query, replay: &Replay, workers: u16, events: u64) -> Result<()> {
    let env = Env::new(&query.name()).workers(workers);
    query.discard(replay.source(&env, workers, events));
    Ok(env.execute()?)
}
