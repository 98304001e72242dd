//! The table for people, and the lines for machines.
#![expect(clippy::print_stdout, reason = "a program that is asked for figures")]

use super::{Options, Round};
use crate::queries::Query;
use mailer_measure::meter::Spent;
use serde_json::json;
use std::collections::BTreeMap;

/// Thousands of events per second and core of Flink, as its authors published them for the benchmark's standard run.
const FLINK: [(Query, f64); 14] = [
    (Query::Q0, 155.0),
    (Query::Q1, 158.0),
    (Query::Q2, 175.0),
    (Query::Q3, 152.0),
    (Query::Q4, 34.0),
    (Query::Q5, 22.0),
    (Query::Q7, 12.0),
    (Query::Q8, 146.0),
    (Query::Q9, 14.0),
    (Query::Q11, 40.0),
    (Query::Q12, 76.0),
    (Query::Q17, 117.0),
    (Query::Q18, 54.0),
    (Query::Q19, 44.0),
];

/// All rounds of all queries.
pub(super) struct Report {
    json: bool,
    heading: String,
    events: u64,
    rounds: BTreeMap<Query, Vec<Round>>,
}

impl Report {
    pub(super) fn new(options: &Options, queries: &[Query], events: u64) -> Self {
        let (rate, workers, rounds) = (options.rate, options.workers, options.rounds());
        let heading =
            format!("{events} events at {rate} a second of event time, {workers} workers, {rounds} rounds, medians");
        let rounds = queries.iter().map(|query| (*query, Vec::new())).collect();
        Self { json: options.json, heading, events, rounds }
    }

    pub(super) fn add(&mut self, query: Query, round: Round) {
        self.rounds.entry(query).or_default().push(round);
    }

    pub(super) fn print(&self) {
        if !self.json {
            println!("nexmark: {}; load {}", self.heading, load());
            println!(
                "query    events/s   CPU ns/event   × Flink's published, per core   by hand, events/s   ours/by hand, by CPU time"
            );
        }
        for (query, rounds) in &self.rounds {
            let figures = Figures::of(rounds, self.events);
            if self.json { figures.lines(*query) } else { figures.row(*query) }
        }
    }
}

/// What the rounds of one query say.
struct Figures {
    rate: f64,
    cpu_ns: f64,
    /// Rate and CPU time of the loop, and ratios of CPU time in order: loop by ours.
    by_hand: Option<(f64, f64, Vec<f64>)>,
}

impl Figures {
    fn of(rounds: &[Round], events: u64) -> Self {
        let events = events as f64;
        let over = |figure: &dyn Fn(&Spent) -> f64, all: &[Spent]| median(all.iter().map(figure).collect());
        let rate = |spent: &Spent| events / spent.seconds;
        let cpu_ns = |spent: &Spent| spent.cpu_seconds * 1e9 / events;
        let ours: Vec<Spent> = rounds.iter().map(|round| round.ours).collect();
        let loops: Vec<Spent> = rounds.iter().filter_map(|round| round.by_hand).collect();
        let mut ratios: Vec<f64> =
            loops.iter().zip(&ours).map(|(hand, ours)| hand.cpu_seconds / ours.cpu_seconds).collect();
        ratios.sort_by(f64::total_cmp);
        let by_hand = (!loops.is_empty()).then(|| (over(&rate, &loops), over(&cpu_ns, &loops), ratios));
        Self { rate: over(&rate, &ours), cpu_ns: over(&cpu_ns, &ours), by_hand }
    }

    fn row(&self, query: Query) {
        let flink = FLINK.iter().find(|(known, _)| *known == query);
        let flink = flink.map_or("–".to_owned(), |(_, known)| format!("{:.0}", 1e6 / self.cpu_ns / known));
        let by_hand = self.by_hand.as_ref().map_or(String::new(), |(rate, _, ratios)| {
            let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
            format!("{rate:>12.0}   {:.2} ({least:.2}..{most:.2})", median(ratios.clone()))
        });
        let (name, rate, cpu_ns) = (query.name(), self.rate, self.cpu_ns);
        println!("{name:<5}{rate:>12.0}   {cpu_ns:>12.1}   {flink:>29}   {by_hand}");
    }

    fn lines(&self, query: Query) {
        let line = |subject: &str, metric: &str, value: f64, unit: &str| {
            let case = query.name();
            println!(
                "{}",
                json!({ "area": "nexmark", "case": case, "subject": subject, "metric": metric, "value": value, "unit": unit })
            );
        };
        let subject = |name: &str, rate: f64, cpu_ns: f64| {
            line(name, "records_per_second", rate, "1/s");
            line(name, "cpu_ns_per_record", cpu_ns, "ns");
        };
        subject("ours", self.rate, self.cpu_ns);
        if let Some((rate, cpu_ns, _)) = &self.by_hand {
            subject("limit", *rate, *cpu_ns);
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Of the last minute: others who use the machine spoil the figures.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}
