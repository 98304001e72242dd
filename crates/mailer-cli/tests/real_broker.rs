//! A workflow against the broker that `MAILER_KAFKA=host:port` names, killed again and again. What it wrote is read by
//! Kafka's own console consumer.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use support::Running;
use tempfile::TempDir;
use xtask::kafka::{Tools, bootstrap_from_environment};

/// Orders, a third of them open.
const ORDERS: u64 = 3_000;
const KILLS: usize = 4;

fn customer(n: u64) -> String {
    format!("customer-{}", n % 11)
}

fn order(n: u64) -> String {
    let status = if n.is_multiple_of(3) { "open" } else { "completed" };
    format!(
        r#"{{"placed_at":"2026-01-01T00:{:02}:{:02}Z","status":"{status}","customer":{{"id":"{}"}},"amount":{n}}}"#,
        n / 60 % 60,
        n % 60,
        customer(n)
    )
}

/// The example of the guide. `until_end`: the last start ends by itself.
fn workflow(orders: &str, totals: &str, until_end: bool) -> String {
    support::orders(orders, totals, &format!("untilEnd: {until_end}, "))
}

fn job(folder: &Path, bootstrap: &str) -> Command {
    // The process that was killed held the checkpoints.
    let mut command = support::command(folder, &["run", "orders.yaml", "--take-over"]);
    command.env("KAFKA_BROKERS", bootstrap).stdout(Stdio::null());
    command
}

/// Per customer the sums that a reader must see, in order.
fn expected() -> BTreeMap<String, Vec<u64>> {
    let mut sums = BTreeMap::<String, Vec<u64>>::new();
    for n in (0..ORDERS).filter(|n| !n.is_multiple_of(3)) {
        let sums = sums.entry(customer(n)).or_default();
        sums.push(sums.last().copied().unwrap_or_default() + n);
    }
    sums
}

#[test]
fn totals_are_exact_although_the_process_is_killed() {
    let Some(bootstrap) = bootstrap_from_environment() else {
        println!("skipped: MAILER_KAFKA=host:port names no broker (`cargo xtask kafka up` starts one)");
        return;
    };
    let tools = Tools::new().unwrap();
    let run = std::process::id();
    let (orders, totals) = (format!("cli-orders-{run}"), format!("cli-totals-{run}"));
    tools.create_topic(&bootstrap, &orders, 3, &[]).unwrap();
    tools.create_topic(&bootstrap, &totals, 3, &[]).unwrap();
    let lines: Vec<_> = (0..ORDERS).map(|n| (customer(n), order(n))).collect();
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("orders.yaml"), workflow(&orders, &totals, false)).unwrap();

    for part in lines.chunks(lines.len() / KILLS) {
        let mut child = Running(job(folder.path(), &bootstrap).spawn().unwrap());
        let part: Vec<_> = part.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        tools.produce(&bootstrap, &orders, &part).unwrap();
        // Time enough for some checkpoints: a tool of Kafka's starts meanwhile.
        tools.end_offsets(&bootstrap, &totals).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "the job has ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    fs::write(folder.path().join("orders.yaml"), workflow(&orders, &totals, true)).unwrap();
    let last = job(folder.path(), &bootstrap).output().unwrap();
    assert!(last.status.success(), "{}", String::from_utf8_lossy(&last.stderr));

    let mut shown = BTreeMap::<String, Vec<u64>>::new();
    for record in tools.read_all(&bootstrap, &totals).unwrap() {
        let value: serde_json::Value = serde_json::from_str(&record.value_text()).unwrap();
        assert_eq!(value["key"], record.key_text());
        shown.entry(record.key_text()).or_default().push(value["sum"].as_u64().unwrap());
    }
    assert_eq!(shown, expected());
}
