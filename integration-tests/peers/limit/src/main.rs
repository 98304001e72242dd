//! The subject `limit`: the least that a client can do for the same records, written by hand.
//!
//! One blocking connection for each direction, messages of fixed versions ([`wire`]), batches walked in place ([`walk`])
//! and built in place ([`write`]). It knows one broker, four partitions and no failure but "give up": what a client needs
//! besides (metadata, retries, back-pressure, rebalancing, aborted transactions) is what ours may cost more.

mod cases;
mod codec;
mod walk;
mod wire;
mod write;

use anyhow::{Result, bail};
use mailer_measure::{Measured, Task, Workload};

fn main() -> Result<()> {
    mailer_measure::main(run)
}

fn run(task: &Task) -> Result<Measured> {
    match task.workload {
        Workload::Consume => cases::consume(task),
        Workload::Produce => cases::produce(task),
        Workload::ExactlyOnce => cases::exactly_once(task),
        Workload::Publish => cases::publish(task),
        Workload::KeyedCount => bail!("it holds no state"),
    }
}
