//! Sources and sinks of `mailer-kafka` with more of their options. It is compiled and explained, not run: there is no
//! broker.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use mailer_core::Error;
use mailer_kafka::{KafkaSink, KafkaSource, OnError, OutRecord, Start, TransactionalKafkaSink};
use mailer_runtime::{Env, FileStorage, Record, Result};
use std::time::Duration;

fn main() -> Result<()> {
    let brokers = "localhost:9092";
    let env = Env::new("payments").checkpointing(Duration::from_secs(5), FileStorage::new("./payments"));
    // ANCHOR: source
    let payments = KafkaSource::topics(brokers, ["payments-eu", "payments-us"])
        .start(Start::Timestamp(1_767_225_600_000)) // for the first start only; later ones use the checkpoint
        .on_error(OnError::Skip)
        .group_offsets("payments-lag") // for monitors; never read back
        .option("security.protocol", "SASL_SSL")
        .option("sasl.mechanism", "SCRAM-SHA-512")
        .option("sasl.username", "mailer")
        .option("sasl.password", std::env::var("KAFKA_PASSWORD").unwrap_or_default())
        .map(|record| {
            // Key, headers, topic, partition and offset are there too.
            let value = record.value.ok_or_else(|| Error::user_function("a tombstone"))?;
            Ok((record.key, value))
        });
    // ANCHOR_END: source
    let stream = env.source("payments", payments);
    // ANCHOR: exactly_once
    let audited = TransactionalKafkaSink::new(brokers, "audited", "payments-1")
        .transaction_timeout(Duration::from_secs(30))
        .option("compression.type", "zstd")
        .encode(|record: &Record<(Option<_>, _)>| {
            let (key, value): &(Option<bytes::Bytes>, bytes::Bytes) = &record.value;
            let out = OutRecord { key: key.clone(), ..OutRecord::value(value.clone()) };
            Ok(out.with_header("audited-by", "mailer"))
        });
    // ANCHOR_END: exactly_once
    stream.clone().sink("audited", audited);
    // ANCHOR: at_least_once
    let sizes = KafkaSink::new(brokers, "sizes").option("linger.ms", "20").bytes();
    stream.map(|(_, value)| value.len().to_string()).sink("sizes", sizes);
    // ANCHOR_END: at_least_once
    println!("{}", env.explain()?);
    Ok(())
}
