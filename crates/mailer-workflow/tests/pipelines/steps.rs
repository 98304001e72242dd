//! What every step does.

use crate::ends::{Bench, run};

#[test]
fn steps_without_state() {
    for (step, output) in [
        ("filter: {field: n, operator: gt, value: 1}", &[r#"{"at":1,"n":2,"l":["x","y"]}"#][..]),
        ("filter: {expr: record.n == 1}", &[r#"{"at":0,"n":1,"l":[]}"#]),
        (
            "map: {expr: '{\"twice\": record.n * 2, \"at\": timestamp}'}",
            &[r#"{"at":0,"twice":2}"#, r#"{"at":1,"twice":4}"#],
        ),
        ("project: {fields: [n, none]}", &[r#"{"n":1}"#, r#"{"n":2}"#]),
        ("remove: {fields: [l, at]}", &[r#"{"n":1}"#, r#"{"n":2}"#]),
        (
            "rename: {from: n, to: deep.m}",
            &[r#"{"at":0,"l":[],"deep":{"m":1}}"#, r#"{"at":1,"l":["x","y"],"deep":{"m":2}}"#],
        ),
        ("explode: {field: l}", &[r#"{"at":1,"n":2,"l":"x"}"#, r#"{"at":1,"n":2,"l":"y"}"#]),
        ("explode: {field: l, to: e}", &[r#"{"at":1,"n":2,"e":"x"}"#, r#"{"at":1,"n":2,"e":"y"}"#]),
        ("flatMap: {expr: 'record.l.map(x, {\"x\": x})'}", &[r#"{"x":"x"}"#, r#"{"x":"y"}"#]),
        (
            "set: {field: l, value: {a: [1, b]}}",
            &[r#"{"at":0,"n":1,"l":{"a":[1,"b"]}}"#, r#"{"at":1,"n":2,"l":{"a":[1,"b"]}}"#],
        ),
        ("set: {field: l, from: n}", &[r#"{"at":0,"n":1,"l":1}"#, r#"{"at":1,"n":2,"l":2}"#]),
        ("set: {field: l, expr: size(record.l)}", &[r#"{"at":0,"n":1,"l":0}"#, r#"{"at":1,"n":2,"l":2}"#]),
    ] {
        let kind = step.split(':').next().unwrap();
        let pipeline = format!("  - type: {kind}\n    {step}");
        let input = [r#"{"at":0,"n":1,"l":[]}"#, r#"{"at":1,"n":2,"l":["x","y"]}"#];
        assert_eq!(run(&pipeline, &input), output, "{step}");
    }
}

#[test]
fn an_empty_pipeline_hands_records_on_to_the_letter() {
    let records = [r#"{"at": 0, "price": 10.10, "big": 123456789012345678901234567890, "in": {"deep":  [1]}}"#];
    let bench = Bench::with(&[("in", &records)]);
    bench.run("source: {type: lines, lines: {of: in}}\npipeline: []\nsink: {type: kept}\n").unwrap();
    assert_eq!(
        bench.take("out"),
        [r#"{"at":0,"price":10.10,"big":123456789012345678901234567890,"in":{"deep":  [1]}}"#]
    );
}

const KEYED: &str = "  - {type: keyBy, keyBy: {field: k}}\n";

/// Who looks at a part of an object takes nothing away from it.
#[test]
fn a_record_goes_on_whole_whatever_is_read_of_it() {
    let record = r#"{"at":0,"customer":{"id":"a","name":"N","at":{"no":1,"street":"S"}},"n":1.50}"#;
    for step in [
        "{type: filter, filter: {field: customer.id, value: a}}",
        "{type: filter, filter: {field: customer.at.no, operator: lt, value: 2}}",
        "{type: filter, filter: {expr: 'record.customer.id == \"a\" && record[\"customer\"].at.street == \"S\"'}}",
        "{id: one, type: keyBy, keyBy: {field: customer.id}}\n  - {id: once, type: dedupe, dedupe: {horizon: 1s, fields: customer.at.no}}",
    ] {
        assert_eq!(run(&format!("  - {step}\n"), &[record]), [record], "{step}");
    }
    let whole = "  - {type: map, map: {expr: '{\"order\": record, \"no\": record.customer.at.no}'}}\n";
    let record = r#"{"at":0,"customer":{"at":{"no":1,"street":"S"},"id":"a"}}"#;
    assert_eq!(run(whole, &[record]), [format!(r#"{{"no":1,"order":{record}}}"#)]);
}

#[test]
fn reduce_puts_out_key_and_result_at_every_record() {
    let records = [
        r#"{"at":0,"k":"a","x":3}"#,
        r#"{"at":1,"k":"b","x":1}"#,
        r#"{"at":2,"k":"a","x":4}"#,
        r#"{"at":3,"k":"a","x":null}"#,
        r#"{"at":4,"k":"a"}"#,
    ];
    let sum = run(&format!("{KEYED}  - {{id: s, type: reduce, reduce: {{function: sum, field: x}}}}"), &records);
    let expected = [
        r#"{"key":"a","sum":3}"#,
        r#"{"key":"b","sum":1}"#,
        r#"{"key":"a","sum":7}"#,
        r#"{"key":"a","sum":7}"#,
        r#"{"key":"a","sum":7}"#,
    ];
    assert_eq!(sum, expected);
    let several =
        "  - {id: s, type: reduce, reduce: {functions: {n: {function: count}, most: {function: max, field: x}}}}";
    let last = run(&format!("{KEYED}{several}"), &records).pop();
    assert_eq!(last.as_deref(), Some(r#"{"key":"a","n":4,"most":4}"#));
}

#[test]
fn steps_between_a_key_and_its_reduce_keep_the_key() {
    let pipeline = format!(
        "{KEYED}  - {{type: filter, filter: {{field: x, operator: gt, value: 1}}}}\n  - {{type: remove, remove: {{fields: k}}}}\n  \
         - {{id: s, type: reduce, reduce: {{function: count}}}}\n  - {{type: filter, filter: {{field: count, value: 2}}}}"
    );
    let records = [r#"{"at":0,"k":1,"x":3}"#, r#"{"at":1,"k":1,"x":1}"#, r#"{"at":2,"k":1.0,"x":4}"#];
    assert_eq!(run(&pipeline, &records), [r#"{"key":1,"count":2}"#]);
}

#[test]
fn windows_close_in_event_time_and_say_their_bounds() {
    let records = [
        r#"{"at":"1970-01-01T00:00:01Z","k":"a"}"#,
        r#"{"at":"1970-01-01T00:00:59.999Z","k":"a"}"#,
        r#"{"at":"1970-01-01T00:01:00Z","k":"a"}"#,
    ];
    let count = "  - {id: c, type: reduce, reduce: {function: count}}";
    let of = |window: &str| run(&format!("{KEYED}  - {{type: window, window: {window}}}\n{count}"), &records);
    let result = |count: u64, start: &str, end: &str| {
        format!(
            r#"{{"key":"a","count":{count},"windowStart":"1970-01-01T00:{start}Z","windowEnd":"1970-01-01T00:{end}Z"}}"#
        )
    };
    let (first, second) = (result(2, "00:00", "01:00"), result(1, "01:00", "02:00"));
    assert_eq!(of("{type: tumbling, size: 1m}"), [first, second]);
    assert_eq!(of("{type: session, gap: 30s}"), [result(1, "00:01", "00:31"), result(2, "00:59.999", "01:30")]);
    assert_eq!(of("{type: sliding, size: 1m, slide: 30s}").len(), 4);
    assert_eq!(of("{type: global, records: 2}"), [r#"{"key":"a","count":2}"#, r#"{"key":"a","count":3}"#]);
}

#[test]
fn dedupe_lets_the_first_of_equal_records_through() {
    let records = [
        r#"{"at":0,"k":"a","id":1}"#,
        r#"{"at":1,"k":"a","id":1}"#,
        r#"{"at":2,"k":"a","id":"1"}"#,
        r#"{"at":3,"k":"b","id":1}"#,
        r#"{"at":2000,"k":"a","id":1}"#,
    ];
    let out = run(&format!("{KEYED}  - {{id: d, type: dedupe, dedupe: {{horizon: 1s, fields: id}}}}"), &records);
    assert_eq!(out, [records[0], records[2], records[3], records[4]]);
}

#[test]
fn routes_branches_and_unions() {
    let records = [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#];
    let bench = Bench::with(&[("in", &records), ("more", &[r#"{"n":10}"#])]);
    let yaml = "
workers: 1
sources:
  - {id: one, type: lines, lines: {of: in}}
  - {id: two, type: lines, lines: {of: more}}
pipeline:
  - {id: all, type: union, input: [one, two]}
  - id: ways
    type: route
    route: {ways: {big: {when: record.n > 5}, odd: {when: record.n % 2 == 1}}}
  - {id: tagged, type: set, input: ways.big, set: {field: big, value: true}}
sinks:
  - {id: a, type: kept, kept: {under: rest}, input: ways}
  - {id: b, type: kept, kept: {under: odd}, input: ways.odd}
  - {id: c, type: kept, kept: {under: big}, input: tagged}
  - {id: d, type: kept, kept: {under: twice}, input: [tagged, one]}
";
    bench.run(yaml).unwrap();
    assert_eq!(bench.take("rest"), [r#"{"n":2}"#]);
    assert_eq!(bench.take("odd"), [r#"{"n":1}"#, r#"{"n":3}"#]);
    assert_eq!(bench.take("big"), [r#"{"n":10,"big":true}"#]);
    assert_eq!(bench.take("twice").len(), 4);
}

#[test]
fn joins_put_two_inputs_together() {
    let orders = [r#"{"at":1000,"id":1}"#, r#"{"at":2000,"id":2}"#];
    let payments = [r#"{"at":1500,"order":1,"paid":true}"#, r#"{"at":9000,"order":2,"paid":true}"#];
    let bench = Bench::with(&[("orders", &orders), ("payments", &payments)]);
    let yaml = |join: &str| {
        format!(
            "
workers: 1
sources:
  - {{id: orders, type: lines, lines: {{of: orders}}, timestamp: {{field: at}}, watermark: {{bounded: 0s}}}}
  - {{id: payments, type: lines, lines: {{of: payments}}, timestamp: {{field: at}}, watermark: {{bounded: 0s}}}}
pipeline:
  - {{id: left, type: keyBy, input: orders, keyBy: {{field: id}}}}
  - {{id: right, type: keyBy, input: payments, keyBy: {{field: order}}}}
  - {{id: joined, type: join, input: [left, right], join: {join}}}
  - {{type: remove, remove: {{fields: [o.at, right.at, right.order]}}}}
sink: {{type: kept}}
"
        )
    };
    let pair = r#"{"key":1,"o":{"id":1},"right":{"paid":true}}"#;
    let alone = |name: &str| format!(r#"{{"key":2,"{name}":{{"id":2}},"right":null}}"#);
    bench.run(&yaml("{type: interval, after: 1s, left: o}")).unwrap();
    assert_eq!(bench.take("out"), [pair]);
    bench.run(&yaml("{type: interval, after: 1s, left: o, unmatched: keep}")).unwrap();
    assert_eq!(bench.take("out"), [pair.to_owned(), alone("o")]);
    bench.run(&yaml("{type: asOf, left: o}")).unwrap();
    assert_eq!(bench.take("out"), [r#"{"key":1,"o":{"id":1},"right":null}"#.to_owned(), alone("o")]);
}

#[test]
fn one_key_for_several_readers() {
    let bench = Bench::with(&[("in", &[r#"{"k":1,"x":2}"#, r#"{"k":1,"x":5}"#])]);
    let yaml = "
source: {type: lines, lines: {of: in}}
pipeline:
  - {id: by, type: keyBy, keyBy: {field: k, partitions: 2}}
  - {id: sum, type: reduce, reduce: {function: sum, field: x}}
  - {id: most, type: reduce, input: by, reduce: {function: max, field: x}}
sinks:
  - {id: a, type: kept, kept: {under: sums}, input: sum}
  - {id: b, type: kept, kept: {under: mosts}, input: most}
";
    bench.run(yaml).unwrap();
    assert_eq!(bench.take("sums"), [r#"{"key":1,"sum":2}"#, r#"{"key":1,"sum":7}"#]);
    assert_eq!(bench.take("mosts"), [r#"{"key":1,"max":2}"#, r#"{"key":1,"max":5}"#]);
}

#[test]
fn records_that_cannot_be_handled_fail_the_job_or_are_skipped() {
    let records = [r#"{"k":"a","x":1}"#, r#"{"k":null,"x":2}"#, r#"{"k":"a","x":"three"}"#, r#"{"k":"a","x":4}"#];
    let bench = Bench::with(&[("in", &records)]);
    let yaml = |policy: &str| {
        format!(
            "source: {{type: lines, lines: {{of: in}}}}\npipeline:\n  - {{id: by, type: keyBy, keyBy: {{field: k}}{policy}}}\n  \
             - {{id: s, type: reduce, reduce: {{function: sum, field: x}}{policy}}}\nsink: {{type: kept}}\n"
        )
    };
    let error = bench.run(&yaml("")).unwrap_err().to_string();
    assert!(error.contains("step \"by\": field `k`: null cannot be a key; `onError: skip`"), "{error}");
    bench.take("out");
    bench.run(&yaml(", onError: skip")).unwrap();
    assert_eq!(bench.take("out"), [r#"{"key":"a","sum":1}"#, r#"{"key":"a","sum":5}"#]);
}

#[test]
fn an_event_time_that_cannot_be_read_is_an_error_of_the_source() {
    let bench = Bench::with(&[("in", &[r#"{"at":"soon"}"#, r#"{"at":7}"#])]);
    let yaml = |policy: &str| {
        format!(
            "source: {{type: lines, lines: {{of: in}}, timestamp: {{field: at}}{policy}}}\npipeline: []\nsink: {{type: kept}}\n"
        )
    };
    bench.run(&yaml(", onError: skip")).unwrap();
    assert_eq!(bench.take("out"), [r#"{"at":7}"#]);
    let workflow = bench.load(&yaml(""));
    assert_eq!(workflow.name(), "test");
}
