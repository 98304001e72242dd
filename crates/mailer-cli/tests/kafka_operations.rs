//! Workflows and commands against the broker that `MAILER_KAFKA=host:port` names.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::{Running, err, out};
use tempfile::TempDir;
use xtask::kafka::{Tools, bootstrap_from_environment};
use xtask::process::{Signal, signal};
use xtask::wait::until;

const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(200);

fn broker() -> Option<String> {
    let bootstrap = bootstrap_from_environment();
    if bootstrap.is_none() {
        println!("skipped: MAILER_KAFKA=host:port names no broker (`cargo xtask kafka up` starts one)");
    }
    bootstrap
}

fn command(folder: &Path, bootstrap: &str, arguments: &[&str]) -> Command {
    let mut command = support::command(folder, arguments);
    command.env("KAFKA_BROKERS", bootstrap);
    command
}

fn mailer(folder: &Path, bootstrap: &str, arguments: &[&str]) -> Output {
    command(folder, bootstrap, arguments).output().unwrap()
}

/// A name that no other run uses.
fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

#[test]
fn the_example_is_tested_validated_and_run() {
    let Some(bootstrap) = broker() else { return };
    let (tools, folder) = (Tools::new().unwrap(), TempDir::new().unwrap());
    let (orders, totals) = (unique("example-orders"), unique("example-totals"));
    fs::write(folder.path().join("orders.yaml"), support::orders(&orders, &totals, "untilEnd: true, ")).unwrap();
    let tested = mailer(folder.path(), &bootstrap, &["test", "orders.yaml"]);
    assert_eq!(tested.status.code(), Some(0), "{}{}", out(&tested), err(&tested));

    tools.create_topic(&bootstrap, &totals, 2, &[]).unwrap();
    let without = mailer(folder.path(), &bootstrap, &["validate", "--connect", "orders.yaml"]);
    assert_eq!(without.status.code(), Some(1));
    let text = err(&without);
    assert!(text.contains(&format!("there is no topic \"{orders}\"")) && text.contains("orders.yaml:5:"), "{text}");
    assert!(text.contains("1 mistake"), "the other topic is there: {text}");
    tools.create_topic(&bootstrap, &orders, 2, &[]).unwrap();
    let with = mailer(folder.path(), &bootstrap, &["validate", "--connect", "orders.yaml"]);
    assert_eq!((with.status.code(), err(&with).as_str()), (Some(0), ""));
    for part in [
        format!("ok       kafka topic {orders} at {bootstrap}: 2 partitions, may be read and written to\n"),
        format!("ok       kafka topic {totals} at {bootstrap}: 2 partitions"),
        "ok       transactions of 60s: the limit of the brokers is 900s\n".into(),
        format!("ok       transactional id {totals}-v1: not used yet\n"),
    ] {
        assert!(out(&with).contains(&part), "{part} is not in\n{}", out(&with));
    }

    let order = |customer: &str, status: &str, amount: u32| {
        format!(
            r#"{{"placed_at":"2026-01-01T00:00:00Z","status":"{status}","customer":{{"id":"{customer}"}},"amount":{amount}}}"#
        )
    };
    let lines =
        [order("a", "completed", 3), order("a", "open", 9), order("b", "completed", 1), order("a", "completed", 4)];
    let lines: Vec<_> = lines.iter().map(|line| ("k", line.as_str())).collect();
    tools.produce(&bootstrap, &orders, &lines).unwrap();
    let run = mailer(folder.path(), &bootstrap, &["run", "orders.yaml"]);
    assert_eq!(run.status.code(), Some(0), "{}", err(&run));
    let mut shown: Vec<_> = tools.read_all(&bootstrap, &totals).unwrap().iter().map(|r| r.value_text()).collect();
    shown.sort();
    assert_eq!(shown, [r#"{"key":"a","sum":3}"#, r#"{"key":"a","sum":7}"#, r#"{"key":"b","sum":1}"#]);
}

#[test]
fn a_transaction_that_is_longer_than_the_brokers_allow_is_found() {
    let Some(bootstrap) = broker() else { return };
    let (tools, folder) = (Tools::new().unwrap(), TempDir::new().unwrap());
    let topic = unique("too-long");
    tools.create_topic(&bootstrap, &topic, 1, &[]).unwrap();
    let workflow = support::orders(&topic, &topic, "").replace("-v1}", "-v1, transactionTimeout: 30d}");
    fs::write(folder.path().join("orders.yaml"), workflow).unwrap();
    let output = mailer(folder.path(), &bootstrap, &["validate", "--connect", "orders.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("transaction.max.timeout.ms"), "{}", err(&output));
}

/// Bad values of every kind, between good ones.
fn value(n: u64) -> String {
    match n % 10 {
        3 => format!("{{\"n\": {n}"),
        7 => format!("{{\"n\":{n},\"user\":\"u\",\"amount\":\"much\"}}"),
        _ => format!("{{\"n\":{n},\"user\":\"u\",\"amount\":1}}"),
    }
}

#[test]
fn dead_letters_are_exact_although_the_process_is_killed() {
    const RECORDS: u64 = 2_000;
    const KILLS: usize = 3;
    let Some(bootstrap) = broker() else { return };
    let (tools, folder) = (Tools::new().unwrap(), TempDir::new().unwrap());
    let (input, output, dead) = (unique("letters-in"), unique("letters-out"), unique("letters-dead"));
    for topic in [&input, &output, &dead] {
        tools.create_topic(&bootstrap, topic, 2, &[]).unwrap();
    }
    let workflow = |until_end: bool| {
        format!(
            "name: {output}
workers: 2
source:
  id: in
  type: kafka
  kafka: {{brokers: \"${{KAFKA_BROKERS}}\", topic: {input}, untilEnd: {until_end}}}
  onError: {{deadLetter: dead}}
checkpoint: {{interval: 200ms, path: ./ckpt}}
pipeline:
  - {{id: keyed, type: keyBy, keyBy: {{field: user}}}}
  - {{id: totals, type: reduce, reduce: {{function: sum, field: amount}}, onError: {{deadLetter: dead}}}}
sinks:
  - {{id: out, type: txnKafka, input: totals, txnKafka: {{brokers: \"${{KAFKA_BROKERS}}\", topic: {output}, transactionalId: {output}-v1}}}}
  - {{id: dead, type: txnKafka, txnKafka: {{brokers: \"${{KAFKA_BROKERS}}\", topic: {dead}, transactionalId: {output}-v1}}}}
"
        )
    };
    fs::write(folder.path().join("letters.yaml"), workflow(false)).unwrap();
    let records: Vec<_> = (0..RECORDS).map(|n| (format!("k{n}"), value(n))).collect();
    for part in records.chunks(records.len() / KILLS) {
        let run = ["run", "letters.yaml", "--take-over"];
        let mut child = Running(command(folder.path(), &bootstrap, &run).stderr(Stdio::null()).spawn().unwrap());
        let part: Vec<_> = part.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        tools.produce(&bootstrap, &input, &part).unwrap();
        tools.end_offsets(&bootstrap, &output).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "the job has ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    fs::write(folder.path().join("letters.yaml"), workflow(true)).unwrap();
    let last = mailer(folder.path(), &bootstrap, &["run", "letters.yaml", "--take-over"]);
    assert_eq!(last.status.code(), Some(0), "{}", err(&last));

    let good = (0..RECORDS).filter(|n| !matches!(n % 10, 3 | 7)).count();
    assert_eq!(tools.read_all(&bootstrap, &output).unwrap().len(), good);
    let mut letters = BTreeMap::<String, String>::new();
    for letter in tools.read_all(&bootstrap, &dead).unwrap() {
        let before = letters.insert(letter.key_text(), letter.value_text());
        assert_eq!(before, None, "a letter came twice: {letter:?}");
    }
    let expected = (0..RECORDS).filter(|n| matches!(n % 10, 3 | 7)).map(|n| (format!("k{n}"), value(n)));
    assert_eq!(letters, expected.collect(), "bytes and keys as they came");

    let mut consumer = tools.command("org.apache.kafka.tools.consumer.ConsoleConsumer");
    consumer.args(["--bootstrap-server", &bootstrap, "--topic", &dead, "--from-beginning", "--max-messages", "400"]);
    consumer.args(["--isolation-level", "read_committed", "--timeout-ms", "20000"]);
    consumer.args(["--formatter-property", "print.headers=true", "--formatter-property", "print.value=false"]);
    let headers = String::from_utf8(consumer.output().unwrap().stdout).unwrap();
    for part in [
        format!("mailer.dead-letter.topic:{input}"),
        "mailer.dead-letter.partition:".into(),
        "mailer.dead-letter.offset:".into(),
        "mailer.dead-letter.timestamp:".into(),
        "mailer.dead-letter.error:a record is not JSON".into(),
        "mailer.dead-letter.step:totals".into(),
    ] {
        assert!(headers.contains(&part), "{part} is not in\n{headers}");
    }
}

#[test]
fn a_transaction_that_was_left_open_is_seen_and_aborted() {
    let Some(bootstrap) = broker() else { return };
    let (tools, folder) = (Tools::new().unwrap(), TempDir::new().unwrap());
    let topic = unique("left-open");
    tools.create_topic(&bootstrap, &topic, 1, &[]).unwrap();
    fs::write(folder.path().join("orders.yaml"), support::orders(&topic, &topic, "")).unwrap();
    let status = || {
        let output = mailer(folder.path(), &bootstrap, &["txn", "status", "orders.yaml", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        serde_json::from_str::<serde_json::Value>(&out(&output)).unwrap()
    };
    assert_eq!(status()["transaction"], serde_json::Value::Null, "nobody has used it");

    // Somebody writes in a transaction that takes an hour, and dies.
    let mut writer = tools.command("org.apache.kafka.tools.ProducerPerformance");
    writer.args(["--topic", &topic, "--num-records", "1000000", "--record-size", "10", "--throughput", "100"]);
    writer.args(["--transactional-id", &format!("{topic}-v1"), "--transaction-duration-ms", "600000"]);
    writer.args(["--producer-props", &format!("bootstrap.servers={bootstrap}"), "transaction.timeout.ms=600000"]);
    let mut writer = writer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let open = until(PATIENCE, LOOK, || Ok((status()["transaction"]["open"] == true).then_some(())));
    assert!(open.unwrap().is_some(), "no transaction was opened");
    signal(writer.id(), Signal::Kill).unwrap();
    writer.wait().unwrap();

    let connected = mailer(folder.path(), &bootstrap, &["validate", "--connect", "orders.yaml"]);
    assert!(err(&connected).contains("is open") && err(&connected).contains("mailer txn abort"), "{}", err(&connected));
    let aborted = mailer(folder.path(), &bootstrap, &["txn", "abort", "orders.yaml"]);
    assert_eq!(aborted.status.code(), Some(0), "{}", err(&aborted));
    assert!(out(&aborted).contains("was Ongoing, and is aborted"), "{}", out(&aborted));
    let ended = until(PATIENCE, LOOK, || Ok((status()["transaction"]["open"] == false).then_some(())));
    assert!(ended.unwrap().is_some(), "{:?}", status());
    let again = mailer(folder.path(), &bootstrap, &["txn", "abort", "orders.yaml"]);
    assert!(out(&again).contains("no transaction is open"), "{}", out(&again));
    assert!(tools.read_all(&bootstrap, &topic).unwrap().is_empty(), "nothing of it is visible");
}
