//! A chain of YAML steps against the same chain in Rust, in the same run: on records that are decoded already, and from
//! JSON.
//!
//! `cargo bench -p mailer-workflow --bench steps`; in the tests every case runs once with few records.
//!
//! What is timed is what becomes of records behind their source: the steps, the way to the sink, and the end of the
//! record there. The clock (CPU time of the worker's thread) stands while the source makes records, so neither the start of
//! a job nor where records come from is in the figures. Records belong to nobody else and are still in the cache, as
//! behind any decoder; a source that keeps its records and hands out copies would make the copy part of the steps: a deep
//! one for the structs of Rust, a shallow one for values. Both sides have the whole record, since the sink gets it.
//!
//! Cases take turns, so that what else the machine does meets all of them; figures are medians over the rounds.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

use mailer_core::{Batch, Polled, Record, Source, SourceFactory, SplitId, StartAt, Timestamp, WorkerContext};
use mailer_runtime::{Blackhole, Env, Result, Stream};
use mailer_workflow::{Decoder, Fields, Loader, Registry, Section, SinkConnector, SourceConnector, Value};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Records in one batch: as many of these as a source hands out at once (`MAX_BATCH_BYTES`).
const BATCH: usize = 320;

fn json(n: usize) -> String {
    let status = if n.is_multiple_of(3) { "open" } else { "completed" };
    format!(
        r#"{{"id":{n},"status":"{status}","customer":{{"id":"customer-{}","name":"Ada Lovelace"}},"amount":{}.5,"items":[{{"sku":"a","count":1}},{{"sku":"b","count":2}}],"note":"please ring twice"}}"#,
        n % 1_000,
        n % 100
    )
}

const FIVE_STEPS: &str = "
  - {type: filter, filter: {field: status, value: completed}}
  - {type: filter, filter: {field: amount, operator: gt, value: 1}}
  - {type: set, set: {field: seen, value: true}}
  - {type: rename, rename: {from: customer.id, to: who}}
  - {type: filter, filter: {field: who, operator: startsWith, value: customer-}}";

/// The same by expressions, as far as there are any.
const BY_EXPRESSION: &str = "
  - {type: filter, filter: {expr: 'record.status == \"completed\"'}}
  - {type: filter, filter: {expr: 'record.amount > 1.0'}}
  - {type: set, set: {field: seen, expr: 'true'}}
  - {type: rename, rename: {from: customer.id, to: who}}
  - {type: filter, filter: {expr: 'record.who.startsWith(\"customer-\")'}}";

/// Sums, every update put out.
const SUMS: &str = "
  - {type: keyBy, keyBy: {field: customer.id}}
  - {id: sum, type: reduce, reduce: {function: sum, field: amount}}";

#[derive(Deserialize)]
#[expect(dead_code, reason = "a sink would write all of it")]
struct Order {
    id: u64,
    status: String,
    customer: Customer,
    amount: f64,
    items: Vec<Item>,
    note: String,
    #[serde(default)]
    seen: bool,
    #[serde(default)]
    who: String,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a sink would write all of it")]
struct Customer {
    id: String,
    name: String,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "a sink would write all of it")]
struct Item {
    sku: String,
    count: u64,
}

/// The same without what no step reads: for who wants to know what a program pays that keeps less than the workflow does.
#[derive(Deserialize)]
#[expect(dead_code, reason = "a sink would write all of it")]
struct Lean {
    id: u64,
    status: String,
    customer: LeanCustomer,
    amount: f64,
    #[serde(default)]
    seen: bool,
    #[serde(default)]
    who: String,
}

#[derive(Deserialize)]
struct LeanCustomer {
    id: String,
}

/// The five steps over a struct.
macro_rules! five_steps {
    ($name:ident, $record:ty) => {
        fn $name(stream: Stream<$record>) {
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
                .filter(|order| order.who.starts_with("customer-"))
                .sink("sink", Blackhole);
        }
    };
}

five_steps!(in_rust, Order);
five_steps!(in_rust_lean, Lean);

/// What a reduce puts out.
#[expect(dead_code, reason = "a sink would write all of it")]
struct Total {
    key: String,
    sum: f64,
}

fn sums_in_rust(stream: Stream<Order>) {
    let add = |sum: &mut f64, order: Order| *sum += order.amount;
    let total = |key: &String, sum: &f64| Total { key: key.clone(), sum: *sum };
    let keyed = stream.key_by(|order| order.customer.id.clone());
    keyed.aggregate("sum", || 0.0, add, total).sink("sink", Blackhole);
}

/// Makes records when they are asked for, and times what is done between.
struct Timed<F> {
    lines: Arc<[Arc<str>]>,
    maker: F,
    nanoseconds: Arc<AtomicU64>,
}

struct Reader<M> {
    lines: Arc<[Arc<str>]>,
    make: M,
    nanoseconds: Arc<AtomicU64>,
    next: usize,
    /// When the records of the last batch were handed out.
    since: Option<u64>,
}

/// CPU time of this thread, in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl<T, M, F> SourceFactory for Timed<F>
where
    T: Send + 'static,
    M: FnMut(&Arc<str>) -> T + Send + 'static,
    F: Fn() -> M + Send + Sync + 'static,
{
    type Source = Reader<M>;

    fn build(&self, _: &WorkerContext) -> Result<Reader<M>> {
        let (lines, nanoseconds) = (self.lines.clone(), self.nanoseconds.clone());
        Ok(Reader { lines, make: (self.maker)(), nanoseconds, next: 0, since: None })
    }

    fn describe(&self) -> String {
        "records made when they are asked for".into()
    }
}

impl<T: Send + 'static, M: FnMut(&Arc<str>) -> T + Send + 'static> Source for Reader<M> {
    type Item = T;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok(vec![SplitId::new("all", 0)])
    }

    fn assign(&mut self, _: &SplitId, _: StartAt<u64>) -> Result<u64> {
        Ok(0)
    }

    fn poll(&mut self, out: &mut Batch<T>) -> Result<Polled> {
        if let Some(since) = self.since.take() {
            self.nanoseconds.fetch_add(now() - since, Relaxed);
        }
        let end = (self.next + BATCH).min(self.lines.len());
        let records = self.lines[self.next..end].iter().map(&mut self.make);
        out.extend(records.map(|value| Record::new(Timestamp(0), value)));
        self.next = end;
        if out.is_empty() {
            return Ok(Polled::Ended);
        }
        self.since = Some(now());
        Ok(Polled::Records { split: SplitId::new("all", 0), bytes: 0 })
    }

    fn position(&self, _: &SplitId) -> u64 {
        self.next as u64
    }
}

const LINES: Section = Section { name: "lines", summary: "", keys: &[], rules: &[], example: "{}" };
const BLACKHOLE: Section = Section { name: "blackhole", summary: "", keys: &[], rules: &[], example: "{}" };

/// Records for a workflow, decoded as it asks for: before the clock runs, or while.
struct Lines {
    lines: Arc<[Arc<str>]>,
    decoded: bool,
    nanoseconds: Arc<AtomicU64>,
}

impl SourceConnector for Lines {
    fn section(&self) -> &'static Section {
        &LINES
    }

    fn build(&self, env: &Env, id: &str, _: Fields<'_>, decoder: Decoder) -> Result<Stream<Value>> {
        let (lines, nanoseconds) = (self.lines.clone(), self.nanoseconds.clone());
        let decode = move || {
            let mut decoder = decoder.clone();
            move |line: &Arc<str>| decoder.json(line.as_bytes()).unwrap().unwrap()
        };
        if self.decoded {
            return Ok(env.source(id, Timed { lines, maker: decode, nanoseconds }));
        }
        let mut decode = decode();
        Ok(env.source(id, Timed { lines, maker: || Arc::clone, nanoseconds }).map(move |line| decode(&line)).branch())
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

/// What one subject takes for all records, in nanoseconds.
type Subject = Box<dyn Fn() -> u64>;

fn yaml(lines: &Arc<[Arc<str>]>, steps: &str, decoded: bool) -> Subject {
    let nanoseconds = Arc::new(AtomicU64::new(0));
    let source = Lines { lines: lines.clone(), decoded, nanoseconds: nanoseconds.clone() };
    let registry = Registry::new().source(source).sink(Nowhere);
    let pipeline = if steps.is_empty() { " []" } else { steps };
    let text =
        format!("name: chain\nworkers: 1\nsource: {{type: lines}}\npipeline:{pipeline}\nsink: {{type: blackhole}}");
    let workflow = Loader::new(&registry).load(&text, "chain").unwrap();
    Box::new(move || {
        let env = workflow.env();
        workflow.compile(&env, &registry).unwrap();
        env.execute().unwrap();
        nanoseconds.swap(0, Relaxed)
    })
}

fn read<T: DeserializeOwned>(line: &Arc<str>) -> T {
    serde_json::from_str(line).unwrap()
}

fn rust<T>(lines: &Arc<[Arc<str>]>, steps: fn(Stream<T>), decoded: bool) -> Subject
where
    T: DeserializeOwned + Send + 'static,
{
    let lines = lines.clone();
    Box::new(move || {
        let nanoseconds = Arc::new(AtomicU64::new(0));
        let env = Env::new("chain").workers(1);
        let (lines, spent) = (lines.clone(), nanoseconds.clone());
        steps(if decoded {
            env.source("source", Timed { lines, maker: || read, nanoseconds: spent })
        } else {
            let lines = Timed { lines, maker: || Arc::clone, nanoseconds: spent };
            env.source("source", lines).map(|line| read(&line)).branch()
        });
        env.execute().unwrap();
        nanoseconds.load(Relaxed)
    })
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    let (records, rounds) =
        if std::env::args().any(|argument| argument == "--bench") { (100_000, 11) } else { (700, 1) };
    let lines: Arc<[Arc<str>]> = (0..records).map(|n| json(n).into()).collect();
    let nothing: fn(Stream<Order>) = |stream| stream.sink("sink", Blackhole);
    let cases = [
        ("decoded, no steps", yaml(&lines, "", true), rust(&lines, nothing, true)),
        ("decoded, five steps", yaml(&lines, FIVE_STEPS, true), rust(&lines, in_rust, true)),
        ("  beside a lean struct", yaml(&lines, FIVE_STEPS, true), rust(&lines, in_rust_lean, true)),
        ("decoded, keyed sums", yaml(&lines, SUMS, true), rust(&lines, sums_in_rust, true)),
        ("decoded, by expr", yaml(&lines, BY_EXPRESSION, true), rust(&lines, in_rust, true)),
        ("from JSON, five steps", yaml(&lines, FIVE_STEPS, false), rust(&lines, in_rust, false)),
        ("  beside a lean struct", yaml(&lines, FIVE_STEPS, false), rust(&lines, in_rust_lean, false)),
    ];
    let mut taken = vec![Vec::new(); cases.len()];
    for _ in 0..rounds {
        for ((_, yaml, rust), taken) in cases.iter().zip(&mut taken) {
            taken.push((yaml() as f64 / records as f64, rust() as f64 / records as f64));
        }
    }
    println!("{:<22} {:>9} {:>9}   YAML / Rust: median (least to most)", "CPU ns a record", "YAML", "Rust");
    for ((name, ..), taken) in cases.iter().zip(taken) {
        let ratios: Vec<_> = taken.iter().map(|(yaml, rust)| yaml / rust).collect();
        let (least, most) =
            ratios.iter().fold((f64::MAX, 0f64), |(least, most), ratio| (least.min(*ratio), most.max(*ratio)));
        let (yaml, rust): (Vec<_>, Vec<_>) = taken.into_iter().unzip();
        let (yaml, rust, ratio) = (median(yaml), median(rust), median(ratios));
        println!("{name:<22} {yaml:>9.1} {rust:>9.1}   {ratio:.2} ({least:.2} to {most:.2})");
    }
}
