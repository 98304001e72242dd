//! What a workflow may say of Kafka besides its topics: properties, metadata of records, several topics. Over TLS and SASL
//! on a real broker where one is wanted (`MAILER_KAFKA` is set).
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use support::{command, err, mailer, out};
use tempfile::TempDir;
use xtask::kafka::{Broker, BrokerOptions, Listener, PASSWORD, Tools, USER, bootstrap_from_environment};

/// Settings with one mistake, where it is, and what the help or the message has to say.
const MISTAKES: [(&str, &str, &str); 10] = [
    ("options: {fetch.mni.bytes: \"1\"}", "fetch.mni", "nearest first: fetch.min.bytes"),
    ("options: {group.id: g}", "group.id", "write `groupOffsets:` beside `options`"),
    ("options: {isolation.level: read_committed}", "isolation", "cannot be set in a workflow"),
    ("options: {transactional.id: t}", "transactional", "has no meaning here"),
    ("options: {linger.ms: \"5\"}", "linger.ms", "has no meaning for this source"),
    ("options: {fetch.min.bytes: 1}", "1}", "write it in quotes: \"1\""),
    ("options: {fetch.min.bytes: many}", "options", "\"fetch.min.bytes\" is not a number"),
    ("options: {security.protocol: SASL_SSL, sasl.password: \"${NOT_SET}\"}", "${NOT", "is not set"),
    ("options: {sasl.username: u}", "options", "\"security.protocol\""),
    ("start: committed", "start", "add `groupOffsets: …`"),
];

#[test]
fn mistakes_in_the_settings_of_kafka_are_told_with_their_place() {
    let folder = TempDir::new().unwrap();
    for (settings, culprit, said) in MISTAKES {
        let before = "  kafka: {brokers: \"localhost:9092\", topic: orders, ";
        let workflow = format!("source:\n  type: kafka\n{before}{settings}}}\npipeline: []\nsink: {{type: stdout}}\n");
        fs::write(folder.path().join("bad.yaml"), &workflow).unwrap();
        let output = mailer(folder.path(), &["validate", "bad.yaml"]);
        let report = err(&output);
        let place = format!("bad.yaml:3:{}", before.len() + settings.find(culprit).unwrap() + 1);
        for part in [place.as_str(), said, "1 mistake"] {
            assert!(report.contains(part), "{part} is not in\n{report}\n{workflow}");
        }
    }
    let twice =
        "source: {type: kafka, kafka: {brokers: \"h:1\", topic: [a, b, a]}}\npipeline: []\nsink: {type: stdout}\n";
    fs::write(folder.path().join("bad.yaml"), twice).unwrap();
    let output = mailer(folder.path(), &["validate", "bad.yaml"]);
    let report = err(&output);
    assert!(
        report.contains("bad.yaml:1:61") && report.contains("name it once") && report.contains("1 mistake"),
        "{report}"
    );
    let brokers = "source: {type: kafka, kafka: {brokers: localhost, topic: a}}\npipeline: []\nsink: {type: stdout}\n";
    fs::write(folder.path().join("bad.yaml"), brokers).unwrap();
    let output = mailer(folder.path(), &["validate", "bad.yaml"]);
    assert!(err(&output).contains("bad.yaml:1:40") && err(&output).contains("host:port"));
}

/// From two topics into one, with the place of every record.
const WORKFLOW: &str = r#"
name: secured
source:
  type: kafka
  kafka:
    brokers: "${BROKERS}"
    topic: [north, south]
    untilEnd: true
    start: committed
    groupOffsets: readers
    metadata: kafka
    clientId: shop
    options: &secure
      security.protocol: SASL_SSL
      ssl.ca.location: "${AUTHORITY}"
      sasl.mechanism: SCRAM-SHA-512
      sasl.username: "${USERNAME}"
      sasl.password: "${PASSWORD}"
checkpoint: {interval: 200ms, path: ./checkpoints}
pipeline:
  - {type: set, set: {field: from, expr: 'record.kafka.topic + "/" + record.kafka.key'}}
  - {type: remove, remove: {fields: kafka}}
sink:
  type: txnKafka
  txnKafka: {brokers: "${BROKERS}", topic: all, transactionalId: all-1, options: *secure}
"#;

#[test]
fn a_workflow_reads_and_writes_over_tls_and_sasl() {
    if bootstrap_from_environment().is_none() {
        return; // real brokers are not wanted
    }
    let (tools, folder) = (Tools::new().unwrap(), TempDir::new().unwrap());
    let broker = Broker::start(BrokerOptions::named("mailer-cli-secured").secured()).unwrap();
    let secured = broker.secured().unwrap();
    for topic in ["north", "south", "all"] {
        tools.create_topic(broker.bootstrap(), topic, 1, &[]).unwrap();
    }
    tools.produce(broker.bootstrap(), "north", &[("a", r#"{"n":1}"#), ("b", r#"{"n":2}"#)]).unwrap();
    tools.produce(broker.bootstrap(), "south", &[("c", r#"{"n":3}"#)]).unwrap();
    fs::write(folder.path().join("secured.yaml"), WORKFLOW).unwrap();
    let (bootstrap, authority) = (secured.bootstrap(Listener::SaslTls), secured.certificates().authority());
    let run = |password: &str, arguments: &[&str]| {
        let authority = authority.to_str().unwrap();
        let environment =
            [("BROKERS", bootstrap.as_str()), ("AUTHORITY", authority), ("USERNAME", USER), ("PASSWORD", password)];
        command(folder.path(), arguments).envs(environment).output().unwrap()
    };

    let refused = run("not-this-one", &["validate", "--connect", "secured.yaml"]);
    let report = err(&refused);
    assert!(report.contains("secured.yaml:6:14"), "at the brokers: {report}");
    assert!(!report.contains("not-this-one"), "{report}");

    let seen = run(PASSWORD, &["validate", "--connect", "secured.yaml"]);
    assert!(seen.status.success(), "{}", err(&seen));
    for topic in ["north", "south", "all"] {
        assert!(out(&seen).contains(&format!("kafka topic {topic} at {bootstrap}: 1 partitions")));
    }
    let done = run(PASSWORD, &["run", "secured.yaml"]);
    assert!(done.status.success(), "{}", err(&done));
    let mut shown: Vec<_> =
        tools.read_all(broker.bootstrap(), "all").unwrap().iter().map(|record| record.value_text()).collect();
    shown.sort();
    assert_eq!(shown, [r#"{"n":1,"from":"north/a"}"#, r#"{"n":2,"from":"north/b"}"#, r#"{"n":3,"from":"south/c"}"#]);

    let status = run(PASSWORD, &["txn", "status", "secured.yaml"]);
    assert!(out(&status).contains("CompleteCommit"), "{}{}", out(&status), err(&status));
}
