//! Orders that do not parse go to a topic of their own, with where they came from and why, in the transaction in which the
//! output of the others is published. The broker is in `MAILER_KAFKA`; the first argument is a prefix for the names of the
//! topics, which must exist; the second one is a folder for checkpoints.

use mailer_core::Error;
use mailer_kafka::{KafkaSource, TransactionalKafkaSink};
use mailer_runtime::{Env, FileStorage, Result};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Deserialize, Serialize)]
struct Order {
    customer: String,
    amount: u64,
}

fn main() -> Result<()> {
    let broker = std::env::var("MAILER_KAFKA").unwrap_or_else(|_| "localhost:9092".into());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [shop, folder] = arguments.as_slice() else {
        return Err(Error::invalid_plan("name a prefix and a folder for checkpoints"));
    };

    let env = Env::new(&format!("{shop}-billing")).checkpointing(Duration::from_secs(1), FileStorage::new(folder));
    // ANCHOR: dead_letters
    let transactions = format!("{shop}-billing-1");
    let sink = |topic: &str| TransactionalKafkaSink::new(&broker, format!("{shop}-{topic}"), &transactions);

    let orders = KafkaSource::new(&broker, format!("{shop}-orders")).until_end().json::<Order>().dead_letters();
    let orders = env.source("orders", orders); // of Result<Order, DeadLetter>
    orders
        .clone()
        .flat_map(|order| order.ok())
        .sink("bills", sink("bills").json().key(|order: &Order| order.customer.clone()));
    orders.flat_map(|order| order.err()).sink("dead", sink("dead").dead_letters());
    // ANCHOR_END: dead_letters
    env.execute()
}
