//! YAML and Rust compile to the same plan.

use crate::ends::Bench;
use mailer_runtime::{Collect, Env, SliceSource};
use mailer_workflow::{Path, Value, ValueKey};

const RECORDS: [&str; 3] = [
    r#"{"status":"completed","customer":{"id":"a"},"amount":3}"#,
    r#"{"status":"open","customer":{"id":"a"},"amount":9}"#,
    r#"{"status":"completed","customer":{"id":"a"},"amount":4}"#,
];

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

/// `filter → key_by → sum`, by hand.
fn by_hand(out: Collect<Value>) -> Env {
    let (status, customer, amount) = (path("status"), path("customer.id"), path("amount"));
    let records: Vec<_> = RECORDS.iter().map(|json| Value::from_json(json.as_bytes()).unwrap()).collect();
    let env = Env::new("order-totals").workers(2);
    env.source("source", SliceSource::new(records))
        .partitions(1)
        .filter(move |order: &Value| status.get(order).and_then(Value::as_str) == Some("completed"))
        .named("completed")
        .key_by(move |order| customer.get(order).and_then(|id| ValueKey::of(id).ok()).unwrap_or(ValueKey::Bool(false)))
        .partitions(4)
        .aggregate(
            "totals",
            || 0i64,
            move |sum, order: Value| *sum += amount.get(&order).and_then(Value::as_i64).unwrap_or_default(),
            |key: &ValueKey, sum| Value::object([("key", key.to_value()), ("sum", Value::Integer(*sum))]),
        )
        .sink("sink", out);
    env
}

const YAML: &str = "
name: order-totals
workers: 2
source: {type: lines, lines: {of: in}}
pipeline:
  - id: completed
    type: filter
    filter: {field: status, operator: equals, value: completed}
  - id: by-customer
    type: keyBy
    keyBy: {field: customer.id, partitions: 4}
  - id: totals
    type: reduce
    reduce: {function: sum, field: amount}
sink: {type: kept}
";

#[test]
fn the_same_pipeline_has_the_same_plan_and_the_same_output() {
    let bench = Bench::with(&[("in", &RECORDS)]);
    let out = Collect::new();
    let hand = by_hand(out.clone());
    assert_eq!(bench.env(YAML).explain().unwrap(), hand.explain().unwrap());
    bench.run(YAML).unwrap();
    hand.execute().unwrap();
    let by_hand: Vec<_> = out.take().iter().map(ToString::to_string).collect();
    assert_eq!(bench.take("out"), by_hand);
    assert_eq!(by_hand, [r#"{"key":"a","sum":3}"#, r#"{"key":"a","sum":7}"#]);
}

#[test]
fn a_long_pipeline_is_one_chain_up_to_the_key_and_one_behind_it() {
    let bench = Bench::with(&[("in", &RECORDS)]);
    let explained = bench
        .env(
            "
name: long
source: {type: lines, lines: {of: in}}
pipeline:
  - {type: filter, filter: {field: status, value: completed}}
  - {id: renamed, type: rename, rename: {from: amount, to: x}}
  - {type: explode, explode: {field: x}}
  - {type: keyBy, keyBy: {field: customer.id}}
  - {type: remove, remove: {fields: status}}
  - {id: n, type: reduce, reduce: {function: count}}
  - {type: filter, filter: {field: count, operator: gt, value: 1}}
  - {type: keyBy, keyBy: {field: count}}
  - {id: m, type: reduce, reduce: {function: count}}
sink: {type: kept}
",
        )
        .explain()
        .unwrap();
    for chain in [
        "filter → map \"renamed\" → flat_map → key_by",
        "map → aggregate \"n\" (keyed state) → filter → key_by",
        "aggregate \"m\" (keyed state)",
    ] {
        assert!(explained.contains(chain), "{chain} is not in\n{explained}");
    }
}
