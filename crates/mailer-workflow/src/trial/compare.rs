//! What came against what a test expects.

use super::ends::Outputs;
use crate::model::{Expected, Happening, Seen, TestModel};
use crate::{Code, Finding, Span, Spanned, Value};

/// Everything that differs, each at its line.
pub(super) fn compare(test: &TestModel, outputs: &Outputs) -> Vec<Finding> {
    let sinks = outputs.sinks.iter().enumerate().map(|(place, output)| (Seen::Sink(place), output));
    let all = sinks.chain([(Seen::Late, &outputs.late)]);
    let mut findings: Vec<_> = all.flat_map(|(of, output)| compare_one(test, of, output)).collect();
    findings.sort_by_key(|finding| finding.span);
    findings
}

fn compare_one(test: &TestModel, output: Seen, came: &[Value]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut rest = came;
    let (mut last, mut open) = (None, false);
    for step in &test.steps {
        let Happening::Expect { of, how, records, span } = step else { continue };
        if *of != output {
            continue;
        }
        last = Some(*span);
        open |= *how == Expected::Among;
        match how {
            Expected::InOrder => rest = in_order(records, rest, &mut findings),
            Expected::InAnyOrder => rest = in_any_order(records, rest, Value::eq, &mut findings),
            Expected::Fields => rest = in_any_order(records, rest, fits, &mut findings),
            Expected::Among => missing(records, &mut rest.to_vec(), Value::eq, &mut findings),
        }
    }
    if let (Some(span), false, [next, ..]) = (last, open, rest) {
        findings.push(surplus(span, next, rest.len()));
    }
    findings
}

/// Whether `came` has all the fields that are expected; it may have more.
fn fits(came: &Value, expected: &Value) -> bool {
    match (came.seen(), expected.seen()) {
        (Value::Object(came), Value::Object(expected)) => {
            expected.fields().all(|(name, expected)| came.get(name).is_some_and(|came| fits(came, expected)))
        }
        (came, expected) => came == expected,
    }
}

fn surplus(span: Span, next: &Value, count: usize) -> Finding {
    let message = match count {
        1 => format!("one record more came than is expected: {next}"),
        count => format!("{count} records more came than are expected; the first is {next}"),
    };
    Finding::new(Code::Unexpected, span, message, "expect it as well, or use `expectContains`")
}

/// The records one by one; what is behind them.
fn in_order<'o>(expected: &[Spanned<Value>], came: &'o [Value], findings: &mut Vec<Finding>) -> &'o [Value] {
    for (place, record) in expected.iter().enumerate() {
        let message = match came.get(place) {
            Some(other) if *other == record.value => continue,
            Some(other) => format!("this is expected, and {other} came"),
            None => "this is expected, and nothing more came".to_owned(),
        };
        let help = match came.contains(&record.value) {
            true => "it came at another place: where order does not matter, use `expectUnordered`",
            false => "repair the pipeline, or what is expected",
        };
        findings.push(Finding::new(Code::Unexpected, record.span, message, help));
    }
    came.get(expected.len()..).unwrap_or_default()
}

fn in_any_order<'o>(
    expected: &[Spanned<Value>],
    came: &'o [Value],
    same: fn(&Value, &Value) -> bool,
    findings: &mut Vec<Finding>,
) -> &'o [Value] {
    let (now, rest) = came.split_at(expected.len().min(came.len()));
    let mut unclaimed = now.to_vec();
    missing(expected, &mut unclaimed, same, findings);
    if let (Some(first), Some(record)) = (unclaimed.first(), expected.first()) {
        let message = format!("{first} came, and is none of the {} that are expected here", expected.len());
        let help = "repair the pipeline, or what is expected";
        findings.push(Finding::new(Code::Unexpected, record.span, message, help));
    }
    rest
}

/// Takes the records out of `unclaimed`, and says which were not there.
fn missing(
    expected: &[Spanned<Value>],
    unclaimed: &mut Vec<Value>,
    same: fn(&Value, &Value) -> bool,
    findings: &mut Vec<Finding>,
) {
    for record in expected {
        match unclaimed.iter().position(|other| same(other, &record.value)) {
            Some(place) => drop(unclaimed.remove(place)),
            None => {
                let help = "repair the pipeline, or what is expected";
                findings.push(Finding::new(Code::Unexpected, record.span, "this is expected, and did not come", help));
            }
        }
    }
}
