//! A chain of YAML steps against the same chain in Rust, in the same run: on records that are decoded already, and from
//! JSON.
//!
//! `cargo bench -p mailer-workflow --bench steps`; in the tests every case runs once with few records.
#![allow(missing_docs, clippy::unwrap_used, reason = "criterion's macros make undocumented items")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mailer_runtime::{Blackhole, Env, Result, SliceSource, Stream};
use mailer_workflow::{Decoder, Fields, Loader, Registry, Section, SinkConnector, SourceConnector, Value, Workflow};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

fn records(full: usize) -> usize {
    if std::env::args().any(|argument| argument == "--bench") { full } else { 2_000 }
}

fn json(n: usize) -> String {
    let status = if n.is_multiple_of(3) { "open" } else { "completed" };
    format!(
        r#"{{"id":{n},"status":"{status}","customer":{{"id":"customer-{}","name":"Ada Lovelace"}},"amount":{}.5,"items":[{{"sku":"a","count":1}},{{"sku":"b","count":2}}],"note":"please ring twice"}}"#,
        n % 1_000,
        n % 100
    )
}

const YAML: &str = "
name: chain
workers: 1
source: {type: lines}
pipeline:
  - {type: filter, filter: {field: status, value: completed}}
  - {type: filter, filter: {field: amount, operator: gt, value: 1}}
  - {type: set, set: {field: seen, value: true}}
  - {type: rename, rename: {from: customer.id, to: who}}
  - {type: filter, filter: {field: who, operator: startsWith, value: customer-}}
sink: {type: blackhole}
";

#[derive(Clone, Deserialize)]
struct Order {
    id: u64,
    status: String,
    customer: Customer,
    amount: f64,
    note: String,
    #[serde(default)]
    seen: bool,
    #[serde(default)]
    who: String,
}

#[derive(Clone, Deserialize)]
struct Customer {
    #[serde(default)]
    id: String,
}

/// The same steps over a struct, with the fields a program would declare.
fn in_rust(stream: Stream<Order>) {
    stream
        .filter(|order| order.status == "completed")
        .filter(|order| order.amount > 1.0)
        .map(|mut order| {
            order.seen = true;
            order
        })
        .map(|mut order| {
            order.who = std::mem::take(&mut order.customer.id);
            order
        })
        .filter(|order| order.who.starts_with("customer-") && order.id < u64::MAX && !order.note.is_empty())
        .sink("sink", Blackhole);
}

const LINES: Section = Section { name: "lines", summary: "", keys: &[], rules: &[], example: "{}" };
const BLACKHOLE: Section = Section { name: "blackhole", summary: "", keys: &[], rules: &[], example: "{}" };

/// Records in memory: values, or JSON to be decoded.
enum Lines {
    Values(SliceSource<Value>),
    Json(SliceSource<Arc<str>>),
}

impl SourceConnector for Lines {
    fn section(&self) -> &'static Section {
        &LINES
    }

    fn build(&self, env: &Env, id: &str, _: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        Ok(match self {
            Lines::Values(values) => env.source(id, values.clone()),
            Lines::Json(lines) => {
                let mut decoder = decoder;
                env.source(id, lines.clone()).map(move |line| decoder.json(line.as_bytes()).unwrap().unwrap()).branch()
            }
        })
    }
}

struct Nowhere;

impl SinkConnector for Nowhere {
    fn section(&self) -> &'static Section {
        &BLACKHOLE
    }

    fn build(&self, stream: Stream<Value>, id: &str, _: Fields<'_>) -> Result<()> {
        stream.sink(id, Blackhole);
        Ok(())
    }
}

fn run(workflow: &Workflow, registry: &Registry) {
    let env = workflow.env();
    workflow.compile(&env, registry).unwrap();
    env.execute().unwrap();
}

fn chain(c: &mut Criterion) {
    let n = records(500_000);
    let lines: Vec<Arc<str>> = (0..n).map(|i| json(i).into()).collect();
    let mut group = c.benchmark_group("chain of five steps");
    group.throughput(Throughput::Elements(n as u64)).sample_size(10).measurement_time(Duration::from_secs(5));

    // So few that they stay in the cache: of many, memory would be measured, and not the steps.
    let few = &lines[..n.min(20_000)];
    group.throughput(Throughput::Elements(few.len() as u64));
    let values = few.iter().map(|line| Value::from_json(line.as_bytes()).unwrap());
    let registry = Registry::new().source(Lines::Values(SliceSource::new(values))).sink(Nowhere);
    let workflow = Loader::new(&registry).load(YAML, "chain").unwrap();
    group.bench_function("decoded, YAML", |b| b.iter(|| run(&workflow, &registry)));
    let orders = SliceSource::new(few.iter().map(|line| serde_json::from_str::<Order>(line).unwrap()));
    group.bench_function("decoded, Rust", |b| {
        b.iter(|| {
            let env = Env::new("chain").workers(1);
            in_rust(env.source("source", orders.clone()));
            env.execute().unwrap();
        });
    });

    group.throughput(Throughput::Elements(n as u64));
    let source = SliceSource::new(lines);
    let registry = Registry::new().source(Lines::Json(source.clone())).sink(Nowhere);
    let workflow = Loader::new(&registry).load(YAML, "chain").unwrap();
    group.bench_function("from JSON, YAML", |b| b.iter(|| run(&workflow, &registry)));
    group.bench_function("from JSON, Rust", |b| {
        b.iter(|| {
            let env = Env::new("chain").workers(1);
            in_rust(env.source("source", source.clone()).map(|line| serde_json::from_str(&line).unwrap()).branch());
            env.execute().unwrap();
        });
    });
    group.finish();
}

criterion_group!(benches, chain);
criterion_main!(benches);
