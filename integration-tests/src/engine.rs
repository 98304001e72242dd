//! What the processes that are killed have in common: how their engine is set up, and how they say what happens.
//!
//! They report as JSON lines on standard output. `--fail-at POINT:N` aborts the process when a failpoint is passed for the
//! N-th time; `--pause-at` says so and waits until the file named by `--go-on` exists; `--error-at` lets an injected error
//! happen once.

use crate::crash::case::Backend;
use crate::failpoints::Failpoints;
use clap::Args;
use mailer_core::{ErrorKind, Result};
use mailer_runtime::testing::Mutations;
use mailer_runtime::{Env, FileStorage, JobEvent, MemoryBackend, RestartPolicy};
use mailer_state_rocksdb::RocksDbBackend;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The arguments of every victim.
#[derive(Args, Clone, Debug)]
pub struct Engine {
    /// The job.
    #[arg(long)]
    pub job: String,
    /// Where checkpoints go.
    #[arg(long)]
    pub checkpoints: PathBuf,
    /// The working folder of RocksDB.
    #[arg(long)]
    pub state: PathBuf,
    /// Where state is.
    #[arg(long, value_enum, default_value = "memory")]
    pub backend: Backend,
    /// Between two checkpoints. Of several the last one counts.
    #[arg(long, default_value_t = 100, overrides_with = "interval_ms")]
    pub interval_ms: u64,
    /// How many workers.
    #[arg(long, default_value_t = 2)]
    pub workers: u16,
    /// Records a second and worker.
    #[arg(long, default_value_t = 1_000.0)]
    pub rate: f64,
    /// Take the job from an owner that may still run.
    #[arg(long)]
    pub take_over: bool,
    /// How often the job may start again in process.
    #[arg(long, default_value_t = 0)]
    pub restarts: u32,
    /// How many checkpoints may fail.
    #[arg(long, default_value_t = 0)]
    pub tolerable_failures: u32,
    /// A planted fault: recovery publishes without looking at the marker.
    #[arg(long)]
    pub skip_marker: bool,
    /// A planted fault: output is published before the manifest is durable.
    #[arg(long)]
    pub publish_early: bool,
    /// Where to die.
    #[command(flatten)]
    pub failpoints: Failpoints,
}

impl Engine {
    /// Arms the failpoints, runs the job, and says how it ended: 2 after an error, 3 when another owner has the job.
    pub fn run(&self, job: impl FnOnce() -> Result<()>) -> ExitCode {
        self.failpoints.arm();
        let Err(error) = job() else {
            println!("{}", json!({ "event": "finished" }));
            return ExitCode::SUCCESS;
        };
        let kind = error.kind().to_string();
        println!("{}", json!({ "event": "failed", "kind": kind, "message": error.to_string() }));
        ExitCode::from(if error.kind() == ErrorKind::Fenced { 3 } else { 2 })
    }

    /// The environment without checkpoints.
    pub fn environment(&self) -> Env {
        let env = Env::new(&self.job)
            .workers(self.workers)
            .take_over(self.take_over)
            .tolerable_failures(self.tolerable_failures)
            .restart(RestartPolicy::FixedDelay { delay: Duration::from_millis(50), attempts: self.restarts })
            .plant(Mutations {
                skip_marker: self.skip_marker,
                publish_early: self.publish_early,
                ..Mutations::default()
            })
            .listener(report);
        match self.backend {
            Backend::Memory => env.state_backend(MemoryBackend),
            Backend::Rocksdb => env.state_backend(RocksDbBackend::new(&self.state)),
        }
    }

    /// The environment with checkpoints.
    pub fn checkpointed(&self) -> Env {
        let interval = Duration::from_millis(self.interval_ms);
        self.environment().checkpointing(interval, FileStorage::new(&self.checkpoints))
    }
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
