//! `asyncMap`: questions to the outside, which the tests in a file answer.

use crate::ends::{Bench, findings, passes};
use mailer_workflow::{Loader, Registry};

fn asking(more: &str, on_error: &str) -> String {
    format!(
        "
workers: 1
source: {{type: lines, lines: {{of: in}}}}
pipeline:
  - {{id: who, type: asyncMap, asyncMap: {{url: 'http://host/users/{{user.id}}', to: user.profile, {more}}}{on_error}}}
  - {{type: remove, remove: {{fields: unread}}}}
sinks:
  - {{id: out, type: kept, input: [LAST]}}
  - {{id: dead, type: kept, kept: {{under: dead}}}}
tests:
  - name: asked
    answers:
      - {{url: http://host/users/a%20b, body: {{name: Alice}}}}
      - {{url: http://host/users/busy, status: 503, body: busy}}
      - {{url: http://host/users/bad, status: 400, body: what?}}
    steps:
"
    )
    .replace(
        "  - {type: remove, remove: {fields: unread}}\n",
        "  - {id: clean, type: remove, remove: {fields: unread}}\n",
    )
    .replace("[LAST]", "clean")
}

#[test]
fn answers_are_put_into_records() {
    let yaml =
        asking("timeout: 5s, cache: {ttl: 1m}", "").replace("  - {id: dead, type: kept, kept: {under: dead}}\n", "");
    passes(&format!(
        "{yaml}      - send: [{{user: {{id: a b}}, n: 1}}, {{user: {{id: nobody}}, n: 2}}, {{user: {{id: a b}}, n: 3}}]
      - crash: {{}}
      - expect:
          - {{user: {{id: a b, profile: {{name: Alice}}}}, n: 1}}
          - {{user: {{id: nobody, profile: null}}, n: 2}}
          - {{user: {{id: a b, profile: {{name: Alice}}}}, n: 3}}
"
    ));
}

#[test]
fn what_has_no_answer_is_an_error_of_the_record() {
    let sent = "      - send: [{user: {id: busy}, n: 1}, {user: {id: bad}, n: 2}, {n: 3}]\n";
    let letters = asking("retries: 2, backoff: 1s", ", onError: {deadLetter: dead}");
    passes(&format!(
        "{letters}{sent}      - {{sink: out, expect: []}}
      - expectDeadLetter:
          - {{step: who, error: 'http://host/users/busy answers 503: \"busy\" (attempt 3)', record: {{n: 1}}}}
          - {{step: who, error: 'http://host/users/bad answers 400: \"what?\" (attempt 1)', record: {{n: 2}}}}
          - {{step: who, record: {{n: 3}}}}
"
    ));
    let no_sink = |yaml: String| yaml.replace("  - {id: dead, type: kept, kept: {under: dead}}\n", "");
    passes(&format!("{}{sent}      - expect: []\n", no_sink(asking("method: GET", ", onError: skip"))));
    let found = findings(&format!("{}{sent}      - expect: []\n", no_sink(asking("method: GET", ""))));
    assert!(found[0].contains("the job fails") && found[0].contains("answers 503"), "{found:?}");
}

/// A record that waits for its answer is in the checkpoint, with the place it came from.
#[test]
fn a_record_that_waits_over_a_crash_knows_where_it_came_from() {
    let letters = asking("retries: 3, backoff: 1s", ", onError: {deadLetter: dead}");
    passes(&format!(
        "{letters}      - send: [{{user: {{id: a b}}, n: 1}}, {{user: {{id: busy}}, n: 2}}]
      - checkpoint: {{}}
      - advanceTime: 1s
      - crash: {{}}
      - {{sink: out, expect: [{{user: {{id: a b, profile: {{name: Alice}}}}, n: 1}}]}}
      - expectDeadLetter: [{{step: who, topic: source, partition: 0, offset: 1, timestamp: 1, record: {{n: 2}}}}]
"
    ));
}

#[test]
fn a_body_is_sent_as_json() {
    let yaml = asking("method: POST, body: '{\"n\": record.n}', order: unordered, concurrency: 2", "")
        .replace("  - {id: dead, type: kept, kept: {under: dead}}\n", "");
    passes(&format!(
        "{yaml}      - send: [{{user: {{id: a b}}, n: 1, unread: 1}}]
      - expect: [{{user: {{id: a b, profile: {{name: Alice}}}}, n: 1}}]
"
    ));
}

/// Without a client a workflow can be checked and tested, and not run.
#[test]
fn nobody_to_ask_is_said_before_the_start() {
    let bench = Bench::with(&[("in", &[])]);
    let yaml = asking("method: GET", "").replace("  - {id: dead, type: kept, kept: {under: dead}}\n", "");
    let yaml = yaml.split("tests:").next().unwrap();
    let error = bench.run(yaml);
    assert!(error.unwrap_err().to_string().contains("Registry::http"));
    assert!(Loader::new(&Registry::new()).load(yaml, "x").is_err(), "no connectors");
}
