//! A parallel consumer with dead letters of its own.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    BoxError, Context, DeadLetter, Failure, HandlerError, ParallelConsumer, Partition, Record, handler_fn,
};

// ANCHOR: dead_letter
struct Table; // a connection, in a real program

impl DeadLetter for Table {
    async fn put(&self, record: &Record, failure: &Failure) -> Result<(), BoxError> {
        // Everything that is needed to handle it again later: where it was, what it was, why it is here.
        println!("put away: {}@{} {failure}", record.partition, record.offset);
        Ok(())
    }
}
// ANCHOR_END: dead_letter

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let broker = Broker::with_topic("orders", 1);
    for value in ["1", "2", "three", "4"] {
        broker.produce("orders", 0, Some(value), value);
    }
    let handler = handler_fn(async |record: &Record, _: &Context<'_>| {
        let text = std::str::from_utf8(record.value.as_deref().unwrap_or_default()).map_err(HandlerError::reject)?;
        text.parse::<u64>().map_err(HandlerError::reject)?;
        Ok(())
    });
    let consumer = ParallelConsumer::from_source(broker.join()).handler(handler).dead_letter(Table).build().await?;
    let control = consumer.control();
    let running = tokio::spawn(consumer.run());
    broker.until_committed(&Partition::new("orders", 0), 4).await;
    control.stop();
    println!("{}", running.await??);
    Ok(())
}
