//! Windows: late records, and results before and after the end.

use crate::ends::{findings, passes};

fn windowed(window: &str, steps: &str) -> String {
    format!(
        "
workers: 1
source: {{type: lines, lines: {{of: in}}, timestamp: {{field: at}}, watermark: {{bounded: 0s}}}}
pipeline:
  - {{type: keyBy, keyBy: {{field: user}}}}
  - {{type: window, window: {{type: tumbling, size: 10s, {window}}}}}
  - {{id: counts, type: reduce, reduce: {{function: count}}}}
sinks:
  - {{id: out, type: kept, input: counts}}
  - {{id: late, type: kept, input: LATE, kept: {{under: late}}}}
tests:
  - name: windows
    steps:
{steps}"
    )
}

const FIRST: &str = "{key: a, count: 1, windowStart: '1970-01-01T00:00:00Z', windowEnd: '1970-01-01T00:00:10Z'}";

#[test]
fn late_records_have_a_way_of_their_own() {
    let steps = format!(
        "      - send: [{{at: 1000, user: a}}]
      - send: [{{at: 25000, user: a}}]
      - crash: {{}}
      - send: [{{at: 2000, user: a, n: 7}}, {{at: 29000, user: a}}]
      - {{sink: out, expect: [{FIRST}, {{key: a, count: 2, windowStart: '1970-01-01T00:00:20Z', windowEnd: '1970-01-01T00:00:30Z'}}]}}
      - {{sink: late, expect: [{{at: 2000, user: a, n: 7}}]}}
      - expectLate: [{{at: 2000}}]
"
    );
    passes(&windowed("late: too-late", &steps).replace("LATE", "too-late"));
}

/// Tests see late records also where nobody reads them.
#[test]
fn a_test_sees_late_records_that_nobody_reads() {
    let yaml =
        windowed("lateness: 1s", "      - send: [{at: 1000, user: a}, {at: 25000, user: a}, {at: 2000, user: a}]\n")
            .replace("  - {id: late, type: kept, input: LATE, kept: {under: late}}\n", "");
    passes(&format!("{yaml}      - expectLate: [{{at: 2000, user: a}}]\n"));
    let found = findings(&format!("{yaml}      - expectLate: []\n"));
    assert_eq!(found, [r#"14:9 one record more came than is expected: {"at":2000,"user":"a"}"#]);
}

#[test]
fn updates_come_early_on_time_and_late() {
    let result = |count: u32, revision: u32, firing: &str| {
        format!(
            "{{key: a, count: {count}, windowStart: '1970-01-01T00:00:00Z', windowEnd: '1970-01-01T00:00:10Z', revision: \
             {revision}, firing: {firing}}}"
        )
    };
    let all = [result(2, 0, "early"), result(3, 1, "onTime"), result(4, 2, "late")].join(", ");
    let steps = format!(
        "      - send: [{{at: 1000, user: a}}, {{at: 2000, user: a}}, {{at: 3000, user: a}}]
      - watermark: 1970-01-01T00:00:10Z
      - send: [{{at: 4000, user: a}}]
      - expect: [{all}]
      - expectLate: []
"
    );
    let yaml = windowed("lateness: 5s, emit: {records: 2}", &steps)
        .replace("  - {id: late, type: kept, input: LATE, kept: {under: late}}\n", "");
    passes(&yaml);
}

#[test]
fn updates_by_the_clock_come_when_it_moves() {
    let steps = "      - send: [{at: 1000, user: a}]
      - advanceTime: 2s
      - at: 5s
      - expectContains: [{key: a, count: 1, windowStart: '1970-01-01T00:00:00Z', windowEnd: '1970-01-01T00:00:10Z', revision: 0, firing: early}]
";
    let yaml = windowed("emit: {every: 1s}", steps)
        .replace("  - {id: late, type: kept, input: LATE, kept: {under: late}}\n", "");
    passes(&yaml);
    let back = yaml.replace("at: 5s", "at: 1s");
    let found = findings(&back);
    assert!(found[0].contains("times go up"), "{found:?}");
}

#[test]
fn late_records_of_a_dedupe_have_a_way_too() {
    passes(
        "
source: {type: lines, lines: {of: in}, timestamp: {field: at}, watermark: {bounded: 0s}}
pipeline:
  - {type: keyBy, keyBy: {field: user}}
  - {id: once, type: dedupe, dedupe: {horizon: 1m, late: missed}}
sinks:
  - {id: out, type: kept, input: once}
  - {id: late, type: kept, input: missed, kept: {under: late}}
tests:
  - name: late
    steps:
      - send: [{at: 100000, user: a}, {at: 1, user: b}, {at: 100001, user: a}]
      - {sink: out, expectUnordered: [{at: 100000, user: a}]}
      - {sink: late, expect: [{at: 1, user: b}]}
",
    );
}

/// A step that reads late records may stand before the reduce they come out of.
#[test]
fn late_records_go_on_through_steps() {
    passes(
        "
source: {type: lines, lines: {of: in}, timestamp: {field: at}, watermark: {bounded: 0s}}
pipeline:
  - {type: keyBy, keyBy: {field: user}}
  - {id: w, type: window, window: {type: tumbling, size: 1s, late: missed}}
  - {id: marked, type: set, input: missed, set: {field: missed, value: true}}
  - {id: counts, type: reduce, input: w, reduce: {function: count}}
sinks:
  - {id: out, type: kept, input: counts}
  - {id: late, type: kept, input: marked, kept: {under: late}}
tests:
  - name: late
    steps:
      - send: [{at: 5000, user: a}, {at: 1, user: a}]
      - {sink: late, expect: [{at: 1, user: a, missed: true}]}
      - {sink: out, expectContains: []}
",
    );
}

/// Two reduces over one window: a late record is late once.
#[test]
fn late_records_of_a_window_that_several_read_come_once() {
    passes(
        "
source: {type: lines, lines: {of: in}, timestamp: {field: at}, watermark: {bounded: 0s}}
pipeline:
  - {type: keyBy, keyBy: {field: user}}
  - {id: w, type: window, window: {type: tumbling, size: 1s, late: missed}}
  - {id: counts, type: reduce, input: w, reduce: {function: count}}
  - {id: most, type: reduce, input: w, reduce: {function: max, field: at}}
sinks:
  - {id: out, type: kept, input: [counts, most]}
  - {id: late, type: kept, input: missed, kept: {under: late}}
tests:
  - name: late
    steps:
      - send: [{at: 5000, user: a}, {at: 1, user: a}]
      - {sink: late, expect: [{at: 1, user: a}]}
      - expectLate: [{at: 1}]
",
    );
}
