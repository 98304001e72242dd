//! From a loop of poll, handle and commit to a parallel consumer, and the same for what llingr_kafka calls its options.
//! Both sides do the same work on the same records; the loop one after the other.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_parallel_consumer::testing::Broker;
use mailer_parallel_consumer::{
    BoxError, Commit, Context, HandlerError, LogDeadLetters, Ordering, ParallelConsumer, Record, Stopped, handler_with,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What the service does with a record: it is the same before and after.
#[derive(Default)]
struct Ledger(Mutex<BTreeMap<String, Vec<u64>>>);

impl Ledger {
    async fn book(&self, key: &str, cents: u64) {
        sleep(Duration::from_millis(2)).await; // a statement
        if let Ok(mut booked) = self.0.lock() {
            booked.entry(key.to_owned()).or_default().push(cents);
        }
    }
}

/// As much of a plain client as the loop needs.
struct Plain {
    records: std::vec::IntoIter<(String, String)>,
    committed: usize,
}

impl Plain {
    fn poll(&mut self) -> Vec<(String, String)> {
        self.records.by_ref().take(50).collect()
    }

    fn commit(&mut self, records: usize) {
        self.committed += records;
    }
}

// ANCHOR: before
/// One record at a time; a slow one keeps all waiting, and a bad one stops everything.
async fn before(consumer: &mut Plain, ledger: &Ledger) -> Result<(), BoxError> {
    loop {
        let records = consumer.poll();
        if records.is_empty() {
            return Ok(());
        }
        for (key, value) in &records {
            ledger.book(key, value.parse()?).await;
        }
        consumer.commit(records.len());
    }
}
// ANCHOR_END: before

// ANCHOR: after
/// The body of the loop has become the handler; polling, committing and waiting have gone.
async fn handle(ledger: &Arc<Ledger>, record: &Record, _: &Context<'_>) -> Result<(), HandlerError> {
    let text = |bytes: Option<&[u8]>| std::str::from_utf8(bytes.unwrap_or_default()).map(str::to_owned);
    let key = text(record.key.as_deref()).map_err(HandlerError::reject)?;
    let value = text(record.value.as_deref()).map_err(HandlerError::reject)?;
    ledger.book(&key, value.parse().map_err(HandlerError::reject)?).await;
    Ok(())
}
// ANCHOR_END: after

/// Runs `consumer` until it has handled so many records; returns how it stopped, and how long they took.
async fn run(consumer: ParallelConsumer, records: u64) -> Result<(Stopped, Duration), BoxError> {
    let (control, begin) = (consumer.control(), Instant::now());
    let running = tokio::spawn(consumer.run());
    while control.snapshot().await.is_some_and(|snapshot| snapshot.counters.succeeded < records) {
        sleep(Duration::from_millis(1)).await;
    }
    let took = begin.elapsed();
    control.stop();
    Ok((running.await??, took))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let records: Vec<(String, String)> =
        (0..500).map(|n| (format!("customer-{}", n % 40), (n * 5).to_string())).collect();

    let (ledger, begin) = (Ledger::default(), Instant::now());
    let mut plain = Plain { records: records.clone().into_iter(), committed: 0 };
    before(&mut plain, &ledger).await?;
    println!("the loop: {} records in {:.1?}", plain.committed, begin.elapsed());

    let parallel = Arc::new(Ledger::default());
    let broker = Broker::with_topic("payments", 1); // in memory; ParallelConsumer::builder(brokers, group) for Kafka
    for (key, value) in &records {
        broker.produce("payments", 0, Some(key), value.clone());
    }
    // ANCHOR: llingr
    let consumer = ParallelConsumer::from_source(broker.join()) // brokers and group: builder(brokers, group)
        .handler(handler_with(Arc::clone(&parallel), handle)) // the processor
        .dead_letter(LogDeadLetters) // dead letters: mandatory there, mandatory here
        .ordering(Ordering::Key) // the only one there
        .max_in_flight(250) // concurrent keys, 250 there too
        .key_queue(16) // per-key buffer: here it only marks, and holds back nothing
        .poll_timeout(Duration::from_millis(100)) // the same
        .commit(Commit { interval: Duration::from_secs(5), offset_map: true }) // the same interval, and no repetition
        .drain_timeout(Duration::from_secs(20)) // the same
        .assignment_timeout(Duration::from_secs(50)) // the same
        .stall_limit(Duration::from_secs(60)) // worker stall
        .poll_error_bail(Duration::from_secs(600)) // the same; zero is off
        .labels("payments-svc", "payments") // service and team
        .build()
        .await?;
    // ANCHOR_END: llingr
    let (stopped, took) = run(consumer, 500).await?;
    println!("in parallel: {took:.1?}, {stopped}");

    let (one, other) = (ledger.0.lock().map_err(|_| "poisoned")?, parallel.0.lock().map_err(|_| "poisoned")?);
    println!("{} customers, booked in the same order: {}", one.len(), *one == *other);
    Ok(())
}
