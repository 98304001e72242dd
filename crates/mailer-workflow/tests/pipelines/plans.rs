//! YAML and Rust compile to the same plan.

use crate::ends::Bench;
use mailer_runtime::{Collect, Env, SliceSource, Tumbling, Watermarks};
use mailer_workflow::{Path, Value, ValueKey, format_time};
use std::time::Duration;

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

/// By hand and in YAML: the same plan, and the same bytes.
#[test]
fn a_window_in_yaml_is_the_window_in_rust() {
    const LINES: [&str; 4] = [
        r#"{"at":1000,"user":"a","n":2}"#,
        r#"{"at":9000,"user":"b","n":5}"#,
        r#"{"at":4000,"user":"a","n":3}"#,
        r#"{"at":12000,"user":"a","n":7}"#,
    ];
    const YAML: &str = "
name: windows
workers: 1
source: {type: lines, lines: {of: in}, timestamp: {field: at}, watermark: {bounded: 5s}}
pipeline:
  - {id: positive, type: filter, filter: {field: n, operator: gt, value: 0}}
  - {type: keyBy, keyBy: {field: user}}
  - {type: window, window: {type: tumbling, size: 10s}}
  - {id: sums, type: reduce, reduce: {function: sum, field: n}}
sink: {type: kept}
";
    let (at, user, n) = (path("at"), path("user"), path("n"));
    let values: Vec<_> = LINES.iter().map(|line| Value::from_json(line.as_bytes()).unwrap()).collect();
    let number = n.clone();
    let out = Collect::new();
    let env = Env::new("windows").workers(1);
    env.source("source", SliceSource::new(values))
        .partitions(1)
        .watermarks(
            Watermarks::bounded(Duration::from_secs(5))
                .timestamps(move |value: &Value| at.get(value).and_then(Value::as_i64).unwrap_or_default()),
        )
        .filter(move |value: &Value| n.get(value).and_then(Value::as_i64).is_some_and(|n| n > 0))
        .named("positive")
        .key_by(move |value| user.get(value).and_then(|user| ValueKey::of(user).ok()).unwrap_or(ValueKey::Bool(false)))
        .window(Tumbling::of(Duration::from_secs(10)))
        .aggregate(
            "sums",
            || 0i64,
            move |sum, value: Value| *sum += number.get(&value).and_then(Value::as_i64).unwrap_or_default(),
            |sum, later| *sum += later,
            |_: &ValueKey, sum| sum,
        )
        .map(|result| {
            let window = |time: mailer_core::Timestamp| Value::from(format_time(time.0).as_str());
            Value::object([
                ("key", result.key.to_value()),
                ("sum", Value::Integer(result.value)),
                ("windowStart", window(result.window.start)),
                ("windowEnd", window(result.window.end)),
            ])
        })
        .sink("sink", out.clone());
    let bench = Bench::with(&[("in", &LINES)]);
    // By hand, the form of the result is a step of its own.
    let by_hand = env.explain().unwrap().replace(" → map\n", "\n");
    assert_eq!(bench.env(YAML).explain().unwrap(), by_hand);
    bench.run(YAML).unwrap();
    env.execute().unwrap();
    let by_hand: Vec<_> = out.take().iter().map(ToString::to_string).collect();
    assert_eq!(bench.take("out"), by_hand);
    assert_eq!(by_hand.len(), 3);
}
