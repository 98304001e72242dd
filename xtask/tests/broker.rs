//! Real brokers, really killed, and Kafka's own tools reading from them.
//!
//! Runs where `MAILER_KAFKA` says that real brokers are wanted (`cargo xtask test` sets it); it starts its own.
#![allow(clippy::print_stderr, reason = "a test that does not run says so")]

use anyhow::Result;
use std::time::Duration;
use xtask::kafka::{
    Broker, BrokerOptions, ConsoleConsumer, Isolation, Tools, TransactionVersion, bootstrap_from_environment,
};
use xtask::process;

/// One transaction of ten records, written by Kafka's own load generator.
fn write_a_transaction(tools: &Tools, bootstrap: &str, topic: &str, id: &str) -> Result<()> {
    let mut producer = tools.command("org.apache.kafka.tools.ProducerPerformance");
    producer.args(["--topic", topic, "--num-records", "10", "--record-size", "5", "--throughput", "-1"]);
    producer.args(["--transactional-id", id, "--transaction-duration-ms", "60000"]);
    producer.args(["--bootstrap-server", bootstrap]);
    process::capture(&mut producer)?;
    Ok(())
}

fn check(version: TransactionVersion) -> Result<()> {
    let options = BrokerOptions::named(&format!("xtask-test-{version}")).transactions(version);
    let mut broker = Broker::start(options.property("message.max.bytes", "100000"))?;
    let tools = Tools::new()?;
    let bootstrap = broker.bootstrap().to_owned();
    assert_eq!(tools.features(&bootstrap)?["transaction.version"], version.to_string());

    tools.create_topic(&bootstrap, "letters", 2, &[("retention.ms", "-1")])?;
    tools.create_topic(&bootstrap, "empty.topic", 1, &[])?;
    let again = tools.create_topic(&bootstrap, "letters", 2, &[]);
    assert!(again.is_err_and(|error| error.to_string().contains("already exists")));
    tools.produce(&bootstrap, "letters", &[("a", "1"), ("b", "2"), ("a", "3 4")])?;
    write_a_transaction(&tools, &bootstrap, "letters", "load")?;
    let transactions = tools.transactions(&bootstrap)?;
    assert!(transactions.iter().any(|transaction| transaction.id == "load" && !transaction.is_open()));

    broker.kill()?;
    assert!(!broker.is_running());
    assert!(std::net::TcpStream::connect(&bootstrap).is_err());
    broker.restart()?;
    assert_eq!(broker.bootstrap(), bootstrap);

    let mut read = tools.read_topics(&bootstrap, &["letters", "empty.topic"])?;
    assert_eq!(read.remove("empty.topic"), Some(Vec::new()));
    let records = read.remove("letters").unwrap_or_default();
    let of_a: Vec<_> = records.iter().filter(|record| record.key_text() == "a").map(|r| r.value_text()).collect();
    assert_eq!(of_a, ["1", "3 4"]);
    assert_eq!(records.len(), 13);
    // A record that ends the transaction lies in each partition that it touched.
    let end: i64 = tools.end_offsets(&bootstrap, "letters")?.values().sum();
    assert!(end == 14 || end == 15, "{end}");

    let few = ConsoleConsumer::of("letters").isolation(Isolation::ReadUncommitted).max_records(2);
    assert_eq!(tools.consume(&bootstrap, &few.silence(Duration::from_secs(30)))?.len(), 2);
    broker.stop()
}

#[test]
fn a_broker_on_transaction_version_1_keeps_what_it_was_given() -> Result<()> {
    if real_brokers_are_wanted() { check(TransactionVersion::V1) } else { Ok(()) }
}

#[test]
fn a_broker_on_transaction_version_2_keeps_what_it_was_given() -> Result<()> {
    if real_brokers_are_wanted() { check(TransactionVersion::V2) } else { Ok(()) }
}

fn real_brokers_are_wanted() -> bool {
    let wanted = bootstrap_from_environment().is_some();
    if !wanted {
        eprintln!("not run: set MAILER_KAFKA to have real brokers started");
    }
    wanted
}
