//! The process that the crash test and the demo kill: order totals, Kafka to Kafka.
//!
//! Says what happens as JSON lines on standard output. `--fail-at POINT:N` aborts the process when a failpoint is passed
//! for the N-th time; `--pause-at` says so and waits until the file named by `--go-on` exists; `--error-at` lets an
//! injected error happen once.
#![allow(clippy::print_stdout, reason = "standard output is how it reports")]

use clap::{Parser, ValueEnum};
use mailer_core::{ErrorKind, Result};
use mailer_integration_tests::events::{Order, Seen, Total};
use mailer_integration_tests::failpoints::Failpoints;
use mailer_integration_tests::paced::Paced;
use mailer_integration_tests::visits::{self, Topics};
use mailer_kafka::{KafkaRecord, KafkaSink, KafkaSource, Start, TransactionalKafkaSink};
use mailer_runtime::testing::Mutations;
use mailer_runtime::{Env, FileStorage, JobEvent, MemoryBackend, RestartPolicy};
use mailer_state_rocksdb::RocksDbBackend;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Backend {
    Memory,
    Rocksdb,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Guarantee {
    None,
    AtLeastOnce,
    ExactlyOnce,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Pipeline {
    /// Order totals.
    Totals,
    /// Windows, sessions and timers over visits.
    Windows,
}

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    bootstrap: String,
    /// The job, and the prefix of every key it writes.
    #[arg(long)]
    job: String,
    #[arg(long, value_enum, default_value = "totals")]
    pipeline: Pipeline,
    #[arg(long, default_value = "orders")]
    input: String,
    #[arg(long, default_value = "totals")]
    totals: String,
    #[arg(long, default_value = "seen")]
    seen: String,
    #[arg(long)]
    checkpoints: PathBuf,
    #[arg(long)]
    state: PathBuf,
    #[arg(long, value_enum, default_value = "memory")]
    backend: Backend,
    #[arg(long, value_enum, default_value = "exactly-once")]
    guarantee: Guarantee,
    /// Default: the job's name.
    #[arg(long)]
    transactional_id: Option<String>,
    #[arg(long, default_value_t = 60_000)]
    transaction_timeout_ms: u64,
    #[arg(long, default_value_t = 100)]
    interval_ms: u64,
    #[arg(long, default_value_t = 2)]
    workers: u16,
    /// Records a second and worker.
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    #[arg(long)]
    from_latest: bool,
    /// Do not end at the end of the input.
    #[arg(long)]
    endless: bool,
    #[arg(long)]
    take_over: bool,
    /// Leave the sink "seen" out.
    #[arg(long)]
    without_seen: bool,
    #[arg(long, default_value_t = 0)]
    restarts: u32,
    #[arg(long, default_value_t = 0)]
    tolerable_failures: u32,
    #[arg(long)]
    skip_marker: bool,
    #[arg(long)]
    publish_early: bool,
    #[command(flatten)]
    failpoints: Failpoints,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    arguments.failpoints.arm();
    match run(&arguments) {
        Ok(()) => {
            println!("{}", json!({ "event": "finished" }));
            ExitCode::SUCCESS
        }
        Err(error) => {
            let kind = error.kind().to_string();
            println!("{}", json!({ "event": "failed", "kind": kind, "message": error.to_string() }));
            ExitCode::from(if error.kind() == ErrorKind::Fenced { 3 } else { 2 })
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let env = environment(arguments);
    let start = if arguments.from_latest { Start::Latest } else { Start::Earliest };
    let mut source = KafkaSource::new(&*arguments.bootstrap, &*arguments.input).start(start);
    source = source.group_offsets(format!("{}-lag", arguments.job));
    if !arguments.endless {
        source = source.until_end();
    }
    let source = Paced::new(source, arguments.rate);
    match arguments.pipeline {
        Pipeline::Totals => pipeline(&env, source, arguments),
        Pipeline::Windows => visits::write_down(&env, source, &topics(arguments), arguments.workers),
    }
    env.execute()
}

fn environment(arguments: &Arguments) -> Env {
    let mut env = Env::new(&arguments.job)
        .workers(arguments.workers)
        .take_over(arguments.take_over)
        .tolerable_failures(arguments.tolerable_failures)
        .restart(RestartPolicy::FixedDelay { delay: Duration::from_millis(50), attempts: arguments.restarts })
        .plant(Mutations {
            skip_marker: arguments.skip_marker,
            publish_early: arguments.publish_early,
            ..Mutations::default()
        })
        .listener(report);
    if arguments.guarantee != Guarantee::None {
        let interval = Duration::from_millis(arguments.interval_ms);
        env = env.checkpointing(interval, FileStorage::new(&arguments.checkpoints));
    }
    match arguments.backend {
        Backend::Memory => env.state_backend(MemoryBackend),
        Backend::Rocksdb => env.state_backend(RocksDbBackend::new(&arguments.state)),
    }
}

/// Where the windows go.
fn topics(arguments: &Arguments) -> Topics<'_> {
    Topics {
        bootstrap: &arguments.bootstrap,
        job: &arguments.job,
        transactional_id: arguments.transactional_id.as_ref().unwrap_or(&arguments.job),
        results: "windows",
        late: "late",
    }
}

/// Totals per customer, and a branch that copies the number of every order: two sinks, one transaction.
fn pipeline(env: &Env, source: Paced, arguments: &Arguments) {
    let orders = env.source("orders", source).try_map(parse).named("parse").branch();
    let totals = orders.clone().key_by(|order| order.customer.clone()).partitions(arguments.workers).aggregate(
        "totals",
        Total::default,
        add,
        |customer, total: &Total| Total { customer: customer.clone(), ..total.clone() },
    );
    let job = arguments.job.clone();
    let total_key = move |total: &Total| format!("{job}/{}", total.customer);
    let job = arguments.job.clone();
    let seen_key = move |seen: &Seen| format!("{job}/{}", seen.id);
    let (bootstrap, id) = (&*arguments.bootstrap, arguments.transactional_id.as_ref().unwrap_or(&arguments.job));
    if arguments.guarantee == Guarantee::ExactlyOnce {
        let timeout = Duration::from_millis(arguments.transaction_timeout_ms);
        let sink = |topic: &str| TransactionalKafkaSink::new(bootstrap, topic, &**id).transaction_timeout(timeout);
        totals.sink("totals-out", sink(&arguments.totals).json().key(total_key));
        if !arguments.without_seen {
            let seen = orders.map(|order| Seen { id: order.id });
            seen.sink("seen-out", sink(&arguments.seen).json().key(seen_key));
        }
    } else {
        totals.sink("totals-out", KafkaSink::new(bootstrap, &*arguments.totals).json().key(total_key));
        let seen = orders.map(|order| Seen { id: order.id });
        seen.sink("seen-out", KafkaSink::new(bootstrap, &*arguments.seen).json().key(seen_key));
    }
}

fn parse(record: KafkaRecord) -> serde_json::Result<Order> {
    serde_json::from_slice(record.value.as_deref().unwrap_or_default())
}

fn add(total: &mut Total, order: Order) {
    total.orders += 1;
    total.amount += order.amount;
}

fn report(event: &JobEvent) {
    let line = match event {
        JobEvent::Recovered(report) => json!({
            "event": "recovered",
            "from": report.from.map(|id| id.0),
            "rolled_forward": report.rolled_forward,
            "took_ms": report.took.as_secs_f64() * 1_000.0,
        }),
        JobEvent::Running => json!({ "event": "running" }),
        JobEvent::Completed { id, initial, records, took, publish } => json!({
            "event": "completed",
            "id": id.0,
            "initial": initial,
            "records": records,
            "took_ms": took.as_secs_f64() * 1_000.0,
            "publish_ms": publish.as_secs_f64() * 1_000.0,
        }),
        JobEvent::Restarting { error, .. } => json!({ "event": "restarting", "error": error }),
        other => json!({ "event": "other", "text": format!("{other:?}") }),
    };
    println!("{line}");
}
