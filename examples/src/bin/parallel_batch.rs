//! A parallel consumer that handles what waits for a key in one call.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    BatchError, BatchHandler, BoxError, Context, LogDeadLetters, ParallelConsumer, Partition, Record,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

// ANCHOR: handler
#[derive(Clone, Default)]
struct Insert {
    statements: Arc<AtomicUsize>,
    rows: Arc<AtomicUsize>,
}

impl BatchHandler for Insert {
    async fn handle(&self, records: &[Record], _: &Context<'_>) -> Result<(), BatchError> {
        tokio::time::sleep(Duration::from_millis(5)).await; // one statement for all of them
        self.statements.fetch_add(1, Relaxed);
        self.rows.fetch_add(records.len(), Relaxed);
        Ok(())
    }
}
// ANCHOR_END: handler

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let broker = Broker::with_topic("orders", 1);
    (0..60).for_each(|n| {
        broker.produce("orders", 0, Some(&format!("table-{}", n % 3)), "row");
    });
    let insert = Insert::default();
    let consumer = ParallelConsumer::from_source(broker.join())
        .batch_handler(100, insert.clone())
        .dead_letter(LogDeadLetters)
        .build()
        .await?;
    let control = consumer.control();
    let running = tokio::spawn(consumer.run());
    broker.until_committed(&Partition::new("orders", 0), 60).await;
    control.stop();
    println!("{} rows in {} statements", insert.rows.load(Relaxed), insert.statements.load(Relaxed));
    println!("{}", running.await??);
    Ok(())
}
