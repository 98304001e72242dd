//! A parallel consumer whose handler blocks: it writes files.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    BoxError, Context, HandlerError, LogDeadLetters, ParallelConsumer, Partition, Record, sync,
};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let folder = std::env::temp_dir().join(format!("mailer-parallel-sync-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let target = folder.clone();
    // ANCHOR: handler
    let handler = sync(8, move |record: &Record, cx: &Context<'_>| {
        if cx.is_cancelled() {
            return Err(HandlerError::retry("no longer wanted"));
        }
        std::fs::write(target.join(record.offset.to_string()), record.value.as_deref().unwrap_or_default())?;
        Ok(())
    });
    // ANCHOR_END: handler
    let broker = Broker::with_topic("orders", 1);
    (0..20).for_each(|n| {
        broker.produce("orders", 0, Some(&n.to_string()), "content");
    });
    let consumer = ParallelConsumer::from_source(broker.join()).handler(handler).dead_letter(LogDeadLetters);
    let consumer = consumer.build().await?;
    let control = consumer.control();
    let running = tokio::spawn(consumer.run());
    broker.until_committed(&Partition::new("orders", 0), 20).await;
    control.stop();
    let stopped = running.await??;
    println!("{} files", std::fs::read_dir(&folder)?.count());
    std::fs::remove_dir_all(&folder)?;
    println!("{stopped}");
    Ok(())
}
