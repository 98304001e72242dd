//! The subject `ours-engine`: whole pipelines, with checkpoints in files.

use anyhow::{Result, bail};
use mailer_bench::engine;
use mailer_measure::{Measured, Task, Workload};

fn main() -> Result<()> {
    mailer_measure::main(run)
}

fn run(task: &Task) -> Result<Measured> {
    match task.workload {
        Workload::ExactlyOnce => engine::exactly_once(task),
        Workload::KeyedCount => engine::keyed_count(task),
        Workload::Consume | Workload::Produce | Workload::Publish => bail!("the connectors' case, not the engine's"),
    }
}
