//! A member that is killed: its handlers take 1 to 20 ms and then write down that they have ended.

use crate::WORKERS;
use crate::journal::{Journal, number};
use crate::play::INTERVAL;
use clap::Args;
use mailer_parallel_consumer::{
    Balance, BoxError, Commit, Context, GroupProtocol, LogDeadLetters, ParallelConsumer, Record, Stopped, handler_with,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::sleep;

#[derive(Args)]
pub(crate) struct Orders {
    #[arg(long)]
    bootstrap: String,
    #[arg(long)]
    group: String,
    #[arg(long)]
    topic: String,
    #[arg(long)]
    journal: PathBuf,
    /// A static member of a classic group under this id; without it, a member of a KIP-848 group
    #[arg(long)]
    instance: Option<String>,
}

/// How long a frozen member does nothing at all: longer than its session.
pub(crate) const FROZEN: Duration = Duration::from_secs(9);

/// Consumes until its standard input ends, and then stops gracefully. Each byte of it freezes the process.
pub(crate) async fn run(orders: Orders) -> Result<(), BoxError> {
    let journal = Arc::new(Journal::append(&orders.journal)?);
    let handler = handler_with(journal, async |journal: &Arc<Journal>, record: &Record, _: &Context<'_>| {
        sleep(Duration::from_millis(1 + number(&record.value) * 7_919 % 20)).await;
        journal.note(record)?;
        Ok(())
    });
    let builder = ParallelConsumer::builder(&orders.bootstrap, &orders.group)
        .topics([&orders.topic])
        .commit(Commit { interval: INTERVAL, offset_map: true })
        .session_timeout(Duration::from_secs(6))
        .heartbeat_interval(Duration::from_secs(1))
        .max_in_flight(100);
    let builder = match orders.instance {
        Some(id) => builder.group_protocol(GroupProtocol::Classic(Balance::CooperativeSticky)).instance_id(id),
        None => builder.group_protocol(GroupProtocol::Consumer { assignor: None }),
    };
    let consumer = builder.handler(handler).dead_letter(LogDeadLetters).build().await?;
    let control = consumer.control();
    tokio::spawn(async move {
        // An error ends it like the end does.
        while tokio::io::stdin().read_u8().await.is_ok() {
            (0..WORKERS).for_each(|_| drop(tokio::spawn(freeze())));
        }
        control.stop();
    });
    match consumer.run().await? {
        Stopped::Graceful => Ok(()),
        Stopped::Aborted { reason } => Err(reason.to_string().into()),
    }
}

/// Takes a thread of the runtime away. With all of them gone there are no heartbeats: the group takes the member for dead.
#[expect(clippy::disallowed_methods, reason = "to block is what it is for")]
async fn freeze() {
    std::thread::sleep(FROZEN);
}
