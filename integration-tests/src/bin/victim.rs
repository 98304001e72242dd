//! The process that the crash test and the demo kill: order totals, Kafka to Kafka. See `engine` for how it is told to die.

use clap::{Parser, ValueEnum};
use mailer_core::Result;
use mailer_integration_tests::engine::Engine;
use mailer_integration_tests::events::{Order, Seen, Total};
use mailer_integration_tests::paced::Paced;
use mailer_integration_tests::visits::{self, Topics};
use mailer_kafka::{KafkaRecord, KafkaSink, KafkaSource, Start, TransactionalKafkaSink};
use mailer_runtime::Env;
use std::process::ExitCode;
use std::time::Duration;

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
    /// The job's name is the prefix of every key it writes.
    #[command(flatten)]
    engine: Engine,
    #[arg(long, value_enum, default_value = "totals")]
    pipeline: Pipeline,
    #[arg(long, default_value = "orders")]
    input: String,
    #[arg(long, default_value = "totals")]
    totals: String,
    #[arg(long, default_value = "seen")]
    seen: String,
    #[arg(long, value_enum, default_value = "exactly-once")]
    guarantee: Guarantee,
    /// Default: the job's name.
    #[arg(long)]
    transactional_id: Option<String>,
    #[arg(long, default_value_t = 60_000)]
    transaction_timeout_ms: u64,
    #[arg(long)]
    from_latest: bool,
    /// Do not end at the end of the input.
    #[arg(long)]
    endless: bool,
    /// Leave the sink "seen" out.
    #[arg(long)]
    without_seen: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    arguments.engine.run(|| run(&arguments))
}

fn run(arguments: &Arguments) -> Result<()> {
    let engine = &arguments.engine;
    let env = match arguments.guarantee {
        Guarantee::None => engine.environment(),
        Guarantee::AtLeastOnce | Guarantee::ExactlyOnce => engine.checkpointed(),
    };
    let start = if arguments.from_latest { Start::Latest } else { Start::Earliest };
    let mut source = KafkaSource::new(&*arguments.bootstrap, &*arguments.input).start(start);
    source = source.group_offsets(format!("{}-lag", engine.job));
    if !arguments.endless {
        source = source.until_end();
    }
    let source = Paced::new(source, engine.rate);
    match arguments.pipeline {
        Pipeline::Totals => pipeline(&env, source, arguments),
        Pipeline::Windows => visits::write_down(&env, source, &topics(arguments), engine.workers),
    }
    env.execute()
}

impl Arguments {
    fn transactional_id(&self) -> &str {
        self.transactional_id.as_ref().unwrap_or(&self.engine.job)
    }
}

/// Where the windows go.
fn topics(arguments: &Arguments) -> Topics<'_> {
    Topics {
        bootstrap: &arguments.bootstrap,
        job: &arguments.engine.job,
        transactional_id: arguments.transactional_id(),
        results: "windows",
        late: "late",
    }
}

/// Totals per customer, and a branch that copies the number of every order: two sinks, one transaction.
fn pipeline(env: &Env, source: Paced, arguments: &Arguments) {
    let engine = &arguments.engine;
    let orders = env.source("orders", source).try_map(parse).named("parse").branch();
    let totals = orders.clone().key_by(|order| order.customer.clone()).partitions(engine.workers).aggregate(
        "totals",
        Total::default,
        |total, order: Order| total.add(&order),
        |_, total: &Total| total.clone(),
    );
    let job = engine.job.clone();
    let total_key = move |total: &Total| format!("{job}/{}", total.customer);
    let job = engine.job.clone();
    let seen_key = move |seen: &Seen| format!("{job}/{}", seen.id);
    let (bootstrap, id) = (&*arguments.bootstrap, arguments.transactional_id());
    if arguments.guarantee == Guarantee::ExactlyOnce {
        let timeout = Duration::from_millis(arguments.transaction_timeout_ms);
        let sink = |topic: &str| TransactionalKafkaSink::new(bootstrap, topic, id).transaction_timeout(timeout);
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
