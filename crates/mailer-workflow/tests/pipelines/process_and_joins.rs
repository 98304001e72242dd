//! State by expressions, and joins by window and by lookup.

use crate::ends::{Bench, passes};

#[test]
fn a_process_keeps_state_by_key() {
    passes(
        "
source: {type: lines, lines: {of: in}, onError: skip}
pipeline:
  - {type: keyBy, keyBy: {field: user}}
  - id: visits
    type: process
    process:
      initial: {n: 0, pages: []}
      update: '{\"n\": state.n + 1, \"pages\": state.pages + [record.page]}'
      when: state.n % 2 == 0
      emit: '{\"user\": key, \"n\": state.n, \"last\": state.pages[state.n - 1]}'
    onError: {deadLetter: dead}
sinks:
  - {id: out, type: kept, input: visits}
  - {id: dead, type: kept, kept: {under: dead}}
tests:
  - name: visits
    steps:
      - send: [{user: a, page: x}, {user: b, page: x}, {user: a}]
      - checkpoint: {}
      - crash: {}
      - send: [{user: a, page: y}, {user: a, page: z}]
      - expect: [{user: a, n: 2, last: y}]
      - expectDeadLetter: [{step: visits, record: {user: a}}]
",
    );
}

#[test]
fn state_is_forgotten_after_its_time() {
    passes(
        "
source: {type: lines, lines: {of: in}}
pipeline:
  - {type: keyBy, keyBy: {field: user}}
  - id: seen
    type: process
    process: {initial: 0, update: state + 1, emit: state, ttl: 1m}
sink: {type: kept}
tests:
  - name: forgotten
    steps:
      - send: [{user: a}, {user: a}]
      - advanceTime: 59s
      - send: [{user: a}]
      - advanceTime: 61s
      - send: [{user: a}]
      - expect: [1, 2, 3, 1]
",
    );
}

const JOINED: &str = "
sources:
  - {id: left, type: lines, lines: {of: in}, timestamp: {field: at}, watermark: {bounded: 0s}}
  - {id: right, type: lines, lines: {of: other}, timestamp: {field: at}, watermark: {bounded: 0s}}
pipeline:
  - {id: l, type: keyBy, input: left, keyBy: {field: id}}
  - {id: r, type: keyBy, input: right, keyBy: {field: id}}
  - {id: pairs, type: join, input: [l, r], join: {JOIN}}
sink: {type: kept}
tests:
  - name: joined
    steps:
";

#[test]
fn a_window_join_pairs_what_is_in_one_window() {
    let yaml = JOINED.replace("JOIN", "type: window, size: 10s, unmatched: keep");
    let bounds = |n: u32| format!("windowStart: '1970-01-01T00:00:{n}0Z', windowEnd: '1970-01-01T00:00:{}0Z'", n + 1);
    passes(&format!(
        "{yaml}      - {{source: left, send: [{{id: a, at: 1000}}, {{id: a, at: 2000}}, {{id: a, at: 11000}}]}}
      - {{source: right, send: [{{id: a, at: 9000, n: 1}}, {{id: b, at: 9000, n: 2}}]}}
      - crash: {{}}
      - expect:
          - {{key: a, left: {{id: a, at: 1000}}, right: {{id: a, at: 9000, n: 1}}, {}}}
          - {{key: a, left: {{id: a, at: 2000}}, right: {{id: a, at: 9000, n: 1}}, {}}}
          - {{key: a, left: {{id: a, at: 11000}}, right: null, {}}}
",
        bounds(0),
        bounds(0),
        bounds(1),
    ));
    let dropped = JOINED.replace("JOIN", "type: window, gap: 5s");
    passes(&format!(
        "{dropped}      - {{source: left, send: [{{id: a, at: 1000}}, {{id: a, at: 20000}}]}}
      - {{source: right, send: [{{id: a, at: 4000}}]}}
      - expect: [{{key: a, left: {{id: a, at: 1000}}, right: {{id: a, at: 4000}}, windowStart: '1970-01-01T00:00:01Z', windowEnd: '1970-01-01T00:00:09Z'}}]
"
    ));
}

#[test]
fn a_lookup_takes_what_came_last() {
    let yaml = JOINED.replace("JOIN", "type: lookup, left: order, right: customer, unmatched: keep");
    passes(&format!(
        "{yaml}      - {{source: left, send: [{{id: a, at: 1}}]}}
      - {{source: right, send: [{{id: a, at: 9, name: old}}, {{id: a, at: 5, name: new}}]}}
      - checkpoint: {{}}
      - crash: {{}}
      - {{source: left, send: [{{id: a, at: 2}}]}}
      - expect: [{{key: a, order: {{id: a, at: 1}}, customer: null}}, {{key: a, order: {{id: a, at: 2}}, customer: {{id: a, at: 5, name: new}}}}]
"
    ));
}

/// Of both sides, in steps behind and in sinks; tests see them also where nobody reads them.
#[test]
fn late_records_of_a_join_have_a_way_of_their_own() {
    let yaml =
        JOINED.replace("left, type: lines", "shown, type: lines").replace("input: left", "input: shown").replace(
            "sink: {type: kept}\n",
            "  - {id: marked, type: set, input: missed, set: {field: missed, value: true}}
sinks:
  - {id: out, type: kept, input: pairs}
  - {id: late, type: kept, input: marked, kept: {under: late}}
",
        );
    let steps = "      - {source: shown, send: [{id: a, at: 1000}, {id: a, at: 50000}]}
      - {source: right, send: [{id: a, at: 50000, n: 1}]}
      - checkpoint: {}
      - crash: {}
      - {source: right, send: [{id: a, at: 2000, n: 2}]}
      - {source: shown, send: [{id: a, at: 3000}]}
      - {sink: late, expectUnordered: [{ad: {id: a, at: 3000}, missed: true}, {click: {id: a, at: 2000, n: 2}, missed: true}]}
      - expectLate: [{ad: {at: 3000}}, {click: {at: 2000}}]
";
    for kind in
        ["interval, after: 10s", "asOf", "window, size: 10s", "window, gap: 10s", "window, size: 10s, slide: 5s"]
    {
        let late = yaml.replace("JOIN", &format!("type: {kind}, left: ad, right: click, late: missed"));
        passes(&format!("{late}{steps}      - {{sink: out, expectContains: []}}\n"));
        let unread = JOINED.replace("left, type: lines", "shown, type: lines").replace("input: left", "input: shown");
        let unread = unread.replace("JOIN", &format!("type: {kind}"));
        passes(&format!(
            "{unread}      - {{source: shown, send: [{{id: a, at: 60000}}]}}
      - {{source: right, send: [{{id: a, at: 60000}}, {{id: a, at: 1}}]}}
      - expectLate: [{{right: {{at: 1}}}}]
      - expectContains: []
"
        ));
    }
}

/// A dead letter behind says where a late record came from.
#[test]
fn late_records_of_a_join_know_where_they_came_from() {
    let yaml = JOINED.replace("JOIN", "type: interval, late: missed").replace(
        "sink: {type: kept}\n",
        "  - {id: counted, type: filter, input: missed, filter: {expr: record.right.n > 1}, onError: {deadLetter: dead}}
sinks:
  - {id: out, type: kept, input: pairs}
  - {id: late, type: kept, input: counted, kept: {under: late}}
  - {id: dead, type: kept, kept: {under: dead}}
",
    );
    passes(&format!(
        "{yaml}      - {{source: left, send: [{{id: a, at: 60000}}]}}
      - {{source: right, send: [{{id: a, at: 60000}}, {{id: a, at: 1, n: many}}, {{id: a, at: 2, n: 7}}]}}
      - {{sink: late, expect: [{{right: {{id: a, at: 2, n: 7}}}}]}}
      - expectDeadLetter: [{{step: counted, topic: right, offset: 1, record: {{right: {{n: many}}}}}}]
      - {{sink: out, expectContains: []}}
"
    ));
}

#[test]
fn the_plan_names_what_is_joined_and_processed() {
    let bench = Bench::with(&[("in", &[]), ("other", &[])]);
    let lookup = JOINED.replace("JOIN", "type: lookup").replace("tests:\n  - name: joined\n    steps:\n", "");
    let explained = bench.env(&format!("name: j{lookup}")).explain().unwrap();
    assert!(explained.contains("lookup_join \"pairs\" (keyed state)"), "{explained}");
}
