//! Tests that stand in a workflow.

use crate::ends::Bench;
use tempfile::TempDir;

const PIPELINE: &str = "
source: {type: lines, lines: {of: in}, timestamp: {field: at}, watermark: {bounded: 5s}}
pipeline:
  - {id: completed, type: filter, filter: {field: status, value: completed}}
  - {id: by-customer, type: keyBy, keyBy: {field: customer.id, partitions: 4}}
  - {id: totals, type: reduce, reduce: {function: sum, field: amount}}
sink: {type: kept}
tests:
  - name: sums by customer
    steps:
      - send:
          - {at: 1, status: completed, customer: {id: a}, amount: 3}
          - {at: 2, status: open, customer: {id: a}, amount: 9}
";

/// What was found, as `line:column message`.
fn findings(rest: &str) -> Vec<String> {
    let bench = Bench::with(&[("in", &[])]);
    let workflow = bench.load(&format!("{PIPELINE}{rest}"));
    let folder = TempDir::new().unwrap();
    let tested = bench.test(&workflow, folder.path());
    assert_eq!(tested.len(), 1);
    let found = tested[0].findings.iter();
    found.map(|finding| format!("{}:{} {}", finding.span.line, finding.span.column, finding.message)).collect()
}

#[test]
fn what_came_before_a_crash_counts_once() {
    let crash = "      - crash: {}\n";
    let more = "      - send: [{at: 3, status: completed, customer: {id: a}, amount: 4}]\n";
    let expect = "      - expect: [{key: a, sum: 3}, {key: a, sum: 7}]\n";
    assert_eq!(findings(&format!("{more}{expect}")), [] as [String; 0]);
    assert_eq!(findings(&format!("{crash}{more}{expect}")), [] as [String; 0]);
    assert_eq!(findings(&format!("{crash}{crash}{more}{crash}{expect}")), [] as [String; 0]);
}

#[test]
fn what_differs_is_said_at_its_line() {
    assert_eq!(
        findings("      - expect: [{key: a, sum: 4}]\n"),
        ["14:18 this is expected, and {\"key\":\"a\",\"sum\":3} came"]
    );
    assert_eq!(
        findings("      - expect: [{key: a, sum: 3}, {key: a, sum: 7}]\n"),
        ["14:36 this is expected, and nothing more came"]
    );
    assert_eq!(
        findings("      - expect: []\n"),
        ["14:9 one record more came than is expected: {\"key\":\"a\",\"sum\":3}"]
    );
    assert_eq!(findings("      - expectContains: [{key: b, sum: 3}]\n"), ["14:26 this is expected, and did not come"]);
    let two = "      - send: [{at: 3, status: completed, customer: {id: b}, amount: 4}]\n";
    assert_eq!(
        findings(&format!("{two}      - expectUnordered: [{{key: b, sum: 4}}, {{key: a, sum: 3}}]\n")),
        [] as [String; 0]
    );
}

#[test]
fn a_job_that_fails_is_a_finding_of_the_test() {
    let bad = "      - send: [{at: 3, status: completed, customer: {id: a}, amount: much}]\n";
    let found = findings(bad);
    assert!(found[0].starts_with("9:11 the job fails: ") && found[0].contains("not a number"), "{found:?}");
}

#[test]
fn crashes_anywhere_change_nothing() {
    let bench = Bench::with(&[("in", &[])]);
    let sent: Vec<_> = (0..200)
        .map(|n| format!("          - {{at: {n}, status: completed, customer: {{id: c{}}}, amount: {n}}}\n", n % 7))
        .collect();
    let workflow = bench.load(&format!("{PIPELINE}{}", sent.concat()));
    let folder = TempDir::new().unwrap();
    let simulated = bench.simulate(&workflow, folder.path(), 25);
    assert!(simulated[0].findings.is_empty(), "{:?}", simulated[0].findings);
}
