//! Kafka to Kafka, exactly once, with state in RocksDB: a running total per customer.
//!
//! Takes the brokers as its first argument. The topics `orders` and `order-totals` must exist; the second one is to be
//! read with `isolation.level=read_committed`.

use mailer_kafka::{KafkaSource, TransactionalKafkaSink};
use mailer_runtime::{Env, FileStorage, Result};
use mailer_state_rocksdb::RocksDbBackend;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Deserialize)]
struct Order {
    customer: String,
    status: String,
    amount: u64,
}

#[derive(Serialize)]
struct Total {
    customer: String,
    amount: u64,
}

fn main() -> Result<()> {
    let brokers = std::env::args().nth(1).unwrap_or_else(|| "localhost:9092".into());

    let env = Env::new("order-totals")
        .checkpointing(Duration::from_secs(1), FileStorage::new("./order-totals/checkpoints"))
        .state_backend(RocksDbBackend::new("./order-totals/state"));
    env.source("orders", KafkaSource::new(&brokers, "orders").json::<Order>())
        .filter(|order| order.status == "completed")
        .key_by(|order| order.customer.clone())
        .partitions(4)
        .aggregate(
            "totals",
            || 0,
            |amount, order| *amount += order.amount,
            |customer, amount| Total { customer: customer.clone(), amount: *amount },
        )
        .sink(
            "out",
            TransactionalKafkaSink::new(&brokers, "order-totals", "order-totals-1")
                .json()
                .key(|total: &Total| total.customer.clone()),
        );
    env.execute()
}
