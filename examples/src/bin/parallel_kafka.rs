//! A parallel consumer on Kafka: `parallel_kafka PREFIX COUNT` consumes `PREFIX-payments` of the cluster that
//! `MAILER_KAFKA` names, until COUNT records are complete. What is no payment goes to `PREFIX-dead`.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_parallel_consumer::{
    BoxError, Context, DeadLetterTopic, Endpoint, GroupProtocol, HandlerError, ParallelConsumer, Record, handler_fn,
};
use std::env::{args, var};
use std::time::Duration;
use tokio::time::sleep;

async fn charge(record: &Record, _: &Context<'_>) -> Result<(), HandlerError> {
    let text = std::str::from_utf8(record.value.as_deref().unwrap_or_default()).map_err(HandlerError::reject)?;
    let _cents: u64 = text.parse().map_err(HandlerError::reject)?; // no second attempt makes it a number
    sleep(Duration::from_millis(5)).await; // a call to somebody
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let brokers = var("MAILER_KAFKA")?;
    let prefix = args().nth(1).ok_or("usage: parallel_kafka PREFIX COUNT")?;
    let count: u64 = args().nth(2).ok_or("usage: parallel_kafka PREFIX COUNT")?.parse()?;
    // ANCHOR: consumer
    let consumer = ParallelConsumer::builder(brokers, format!("{prefix}-charging"))
        .topics([format!("{prefix}-payments")])
        .group_protocol(GroupProtocol::Consumer { assignor: None }) // KIP-848; the default is classic
        .handler(handler_fn(charge))
        .dead_letter(DeadLetterTopic::new(format!("{prefix}-dead")))
        .labels("charging", "payments")
        .build()
        .await?;
    let control = consumer.control();
    let endpoint = Endpoint::bind("127.0.0.1:0", control.clone()).await?; // /metrics /snapshot /ready /live
    let running = tokio::spawn(consumer.run());
    // ANCHOR_END: consumer
    println!("watch http://{}/snapshot", endpoint.address());
    while control.snapshot().await.is_some_and(|s| s.counters.succeeded + s.counters.dead_lettered < count) {
        sleep(Duration::from_millis(50)).await;
    }
    control.stop();
    println!("{}", running.await??);
    Ok(())
}
