//! Input for all cases of a broker, and their output: in two topics, under keys of their own.

use super::{Setup, Verdict, checkpoints};
use crate::crash::checks::{self, Topics};
use crate::events::{Order, order};
use crate::visits::{Visit, visit};
use anyhow::Result;
use xtask::kafka::Tools;

/// Orders in the input topic, and visits in theirs.
const ORDERS: u64 = 3_000;
const PARTITIONS: u32 = 4;

/// Topics, and the input, written by Kafka's own producer. Returns how many orders there are.
pub(super) fn prepare(tools: &Tools, bootstrap: &str) -> Result<u64> {
    for topic in ["orders", "totals", "seen", "visits", "windows", "late"] {
        tools.create_topic(bootstrap, topic, PARTITIONS, &[])?;
    }
    write_orders(tools, bootstrap, "orders", 0..ORDERS)?;
    let keyed = |visit: Visit| Ok((visit.user.clone(), serde_json::to_string(&visit)?));
    write(tools, bootstrap, "visits", &(0..ORDERS).map(visit).map(keyed).collect::<Result<Vec<_>>>()?)?;
    Ok(ORDERS)
}

/// Writes orders with Kafka's console producer.
pub fn write_orders(tools: &Tools, bootstrap: &str, topic: &str, ids: std::ops::Range<u64>) -> Result<()> {
    let keyed = |order: Order| Ok((order.customer.clone(), serde_json::to_string(&order)?));
    write(tools, bootstrap, topic, &ids.map(order).map(keyed).collect::<Result<Vec<_>>>()?)
}

fn write(tools: &Tools, bootstrap: &str, topic: &str, lines: &[(String, String)]) -> Result<()> {
    let lines: Vec<_> = lines.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    tools.produce(bootstrap, topic, &lines)
}

/// Reads the topics with Kafka's console consumer and asks every checker.
pub(super) fn judge(setup: &Setup, tools: &Tools, bootstrap: &str, verdicts: &mut [Verdict]) -> Result<()> {
    let read = tools.read_topics(bootstrap, &["totals", "seen", "windows", "late"])?;
    let [totals, seen, windows, late] = ["totals", "seen", "windows", "late"].map(|topic| &*read[topic]);
    let outputs = checks::by_case(&Topics { totals, seen, windows, late })?;
    let transactions = tools.transactions(bootstrap)?;
    for verdict in verdicts {
        let Some(played) = verdict.played else { continue };
        let name = &verdict.case.name;
        let output = outputs.get(name).cloned().unwrap_or_default();
        verdict.broken = checks::broken(&output, ORDERS, played.expect);
        verdict.broken.extend(checkpoints(setup, &verdict.case, &played, checks::kafka_offset, ORDERS)?);
        let open = transactions.iter().filter(|t| t.is_open() && t.id.starts_with(name.as_str())).count();
        if open > 0 {
            verdict.broken.push(format!("no transaction open: {open} are"));
        }
    }
    Ok(())
}
