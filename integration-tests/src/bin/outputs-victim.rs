//! The process that the tests of files and databases kill: sums per key of a generator, into a folder and into a table.
//!
//! Says what happens as JSON lines on standard output, and dies where it is told to, as `victim` does.
#![allow(clippy::print_stdout, reason = "standard output is how it reports")]

use clap::Parser;
use mailer_core::{Record, Result};
use mailer_files::LineFolder;
use mailer_integration_tests::failpoints::Failpoints;
use mailer_integration_tests::outputs::{KEYS, NUMBERS};
use mailer_postgres::{Cell, PostgresSink};
use mailer_runtime::{Env, FileStorage, Generator, JobEvent};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
struct Arguments {
    /// The job.
    #[arg(long)]
    job: String,
    /// Where checkpoints go.
    #[arg(long)]
    checkpoints: PathBuf,
    /// The folder that is written.
    #[arg(long)]
    folder: PathBuf,
    /// The database, where there is one.
    #[arg(long)]
    postgres: Option<String>,
    /// The table that is written.
    #[arg(long, default_value = "sums")]
    table: String,
    #[arg(long)]
    take_over: bool,
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
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let storage = FileStorage::new(&arguments.checkpoints);
    let env = Env::new(&arguments.job)
        .workers(2)
        .checkpointing(Duration::from_millis(50), storage)
        .take_over(arguments.take_over)
        .listener(report);
    let numbers = Generator::new(|n| n).count(NUMBERS).rate(NUMBERS as f64);
    let sums = env
        .source("numbers", numbers)
        .key_by(|n| n % KEYS)
        .partitions(2)
        .aggregate("sums", || 0_u64, |sum, n| *sum += n, |key, sum| (*key, *sum))
        .branch();
    let lines = LineFolder::new(&arguments.folder, |(key, sum): &(u64, u64), out: &mut Vec<u8>| {
        out.extend_from_slice(format!("{key},{sum}").as_bytes());
        Ok(())
    });
    if let Some(url) = &arguments.postgres {
        let rows = PostgresSink::new(url, &arguments.table).columns(["key", "total"]);
        let rows = rows.encode(|record: &Record<(u64, u64)>| {
            let (key, sum) = record.value;
            Ok(vec![Cell::Integer(key.cast_signed()), Cell::Integer(sum.cast_signed())])
        });
        sums.clone().sink("rows", rows);
    }
    sums.sink("lines", lines);
    env.execute()
}

fn report(event: &JobEvent) {
    let line = match event {
        JobEvent::Recovered(report) => json!({
            "event": "recovered",
            "from": report.from.map(|id| id.0),
            "rolled_forward": report.rolled_forward,
        }),
        JobEvent::Running => json!({ "event": "running" }),
        other => json!({ "event": "other", "text": format!("{other:?}") }),
    };
    println!("{line}");
}
