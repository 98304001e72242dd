//! Records that cannot be handled go to a sink of their own, with the reason and where they came from.

use crate::ends::{Bench, findings, passes};

/// Bad bytes at the source, a condition that cannot be computed, and an amount that cannot be added up.
const LETTERS: &str = "
name: letters
source:
  id: orders
  type: lines
  lines: {of: in}
  timestamp: {field: at}
  watermark: {bounded: 0s}
  onError: {deadLetter: dead}
pipeline:
  - {id: large, type: filter, filter: {expr: record.amount > 1}, onError: {deadLetter: dead}}
  - {id: by-user, type: keyBy, keyBy: {field: user}, onError: {deadLetter: dead}}
  - {id: totals, type: reduce, reduce: {function: sum, field: amount}, onError: {deadLetter: dead}}
sinks:
  - {id: out, type: kept, input: totals}
  - {id: dead, type: kept, kept: {under: dead}}
tests:
  - name: letters
    steps:
      - send: [{at: 1, user: a, amount: 3, note: x}, {raw: '{\"at\": 2,'}, {user: a}, {at: 3, user: a, amount: much}]
      - send: [{at: 4, amount: 5}, {at: 5, user: a, amount: 4}]
";

#[test]
fn a_letter_says_what_where_and_why() {
    passes(&format!(
        "{LETTERS}      - crash: {{}}
      - expect: [{{key: a, sum: 3}}, {{key: a, sum: 7}}]
      - expectDeadLetter:
          - {{step: orders, topic: orders, partition: 0, offset: 1, raw: '{{\"at\": 2,'}}
          - {{step: orders, offset: 2, raw: '{{\"user\":\"a\"}}', error: a record has no field `at` for its time}}
          - {{step: large, offset: 3, record: {{at: 3, user: a, amount: much}}}}
          - {{step: by-user, topic: orders, offset: 4, record: {{at: 4, amount: 5}}}}
"
    ));
}

#[test]
fn what_is_not_expected_is_found() {
    let found = findings(&format!("{LETTERS}      - expectDeadLetter: [{{step: orders}}, {{step: nobody}}]\n"));
    assert!(found.iter().any(|found| found == "22:44 this is expected, and did not come"), "{found:?}");
    assert!(found.iter().any(|found| found.contains("more came")), "{found:?}");
}

#[test]
fn letters_survive_crashes_anywhere() {
    let bench = Bench::with(&[("in", &[])]);
    let workflow = bench.load(LETTERS);
    let folder = tempfile::TempDir::new().unwrap();
    let simulated = bench.simulate(&workflow, folder.path(), 25);
    assert!(simulated[0].findings.is_empty(), "{:?}", simulated[0].findings);
}

/// A letter of a step has all of the record, also what no step reads.
#[test]
fn the_record_in_a_letter_is_whole() {
    let bench = Bench::with(&[("in", &[r#"{"amount": "much", "never read": [1, 2]}"#])]);
    bench
        .run(
            "
workers: 1
source: {type: lines, lines: {of: in}}
pipeline:
  - {id: key, type: keyBy, keyBy: {expr: '1'}}
  - {id: sum, type: reduce, reduce: {function: sum, field: amount}, onError: {deadLetter: dead}}
sinks:
  - {id: out, type: kept, input: sum}
  - {id: dead, type: kept, kept: {under: dead}}
",
        )
        .unwrap();
    let expected = r#"{"step":"sum","error":"field `amount` is text, not a number","record":{"amount":"much","never read":[1, 2]}}"#;
    assert_eq!((bench.take("dead"), bench.take("out")), (vec![expected.to_owned()], vec![]));
}

#[test]
fn routes_have_letters_too() {
    passes(
        "
source: {type: lines, lines: {of: in}}
pipeline:
  - {id: ways, type: route, route: {ways: {large: {when: record.n > 10}}}, onError: {deadLetter: dead}}
sinks:
  - {id: rest, type: kept, input: ways}
  - {id: large, type: kept, input: ways.large, kept: {under: large}}
  - {id: dead, type: kept, kept: {under: dead}}
tests:
  - name: ways
    steps:
      - send: [{n: 1}, {n: 20}, {n: many}, {m: 1}]
      - {expect: [{n: 1}], sink: rest}
      - {expect: [{n: 20}], sink: large}
      - expectDeadLetter: [{step: ways, record: {n: many}}, {step: ways, record: {m: 1}}]
",
    );
}

/// Two inputs under one key, and a step behind the join that refuses what it puts out.
const REFUSED_BEHIND_A_JOIN: &str = "
sources:
  - {id: orders, type: lines, lines: {of: in}, timestamp: {field: at}, watermark: {bounded: 0s}}
  - {id: prices, type: lines, lines: {of: other}, timestamp: {field: at}, watermark: {bounded: 0s}}
pipeline:
  - {id: l, type: keyBy, input: orders, keyBy: {field: id}}
  - {id: r, type: keyBy, input: prices, keyBy: {field: id}}
  - {id: both, type: join, input: [l, r], join: {JOIN}}
  - {id: dear, type: filter, filter: {expr: record.right.price > 1}, onError: {deadLetter: dead}}
sinks:
  - {id: out, type: kept, input: dear}
  - {id: dead, type: kept, kept: {under: dead}}
tests:
  - name: letters
    steps:
      - {source: orders, send: [{id: z, at: 1}, {id: a, at: 2}]}
      - checkpoint: {}
      - crash: {}
      - {source: prices, send: [{id: a, at: 2, price: much}]}
      - {sink: out, expect: []}
      - expectDeadLetter: [{step: dear, topic: orders, partition: 0, offset: 1, record: {key: a}}]
";

/// Left records wait in the state of the join, and know where they came from when they leave it after a crash.
#[test]
fn what_waits_in_a_join_is_known_by_its_left_record_after_a_crash() {
    for join in ["type: asOf", "type: interval, after: 1s", "type: window, size: 10s", "type: window, gap: 10s"] {
        let yaml = REFUSED_BEHIND_A_JOIN.replace("JOIN", join);
        // An as-of join puts out what has no price as well.
        let alone = "{step: dear, topic: orders, offset: 0, record: {key: z}}, {step: dear, topic";
        passes(&if join == "type: asOf" { yaml.replace("{step: dear, topic", alone) } else { yaml });
    }
}

#[test]
fn what_a_process_puts_out_came_from_the_record_that_made_it() {
    passes(
        "
source: {id: visits, type: lines, lines: {of: in}}
pipeline:
  - {type: keyBy, keyBy: {field: user}}
  - {id: count, type: process, process: {initial: 0, update: state + 1, emit: '{\"n\": state, \"page\": record.page}'}}
  - {id: long, type: filter, filter: {expr: size(record.page) > 3}, onError: {deadLetter: dead}}
sinks:
  - {id: out, type: kept, input: long}
  - {id: dead, type: kept, kept: {under: dead}}
tests:
  - name: letters
    steps:
      - send: [{user: a, page: index}, {user: a, page: 7}]
      - {sink: out, expect: [{n: 1, page: index}]}
      - expectDeadLetter: [{step: long, topic: visits, offset: 1, record: {n: 2, page: 7}}]
",
    );
}
