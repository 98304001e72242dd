//! The subject `ours`: the connectors, without the engine.

use anyhow::{Result, bail};
use mailer_bench::connectors;
use mailer_measure::{Measured, Task, Workload};

fn main() -> Result<()> {
    mailer_measure::main(run)
}

fn run(task: &Task) -> Result<Measured> {
    match task.workload {
        Workload::Consume => connectors::consume(task),
        Workload::Produce => connectors::produce(task),
        Workload::ExactlyOnce => connectors::exactly_once(task),
        Workload::Publish => connectors::publish(task),
        Workload::KeyedCount => bail!("connectors hold no state: that is the engine's case"),
    }
}
