//! Runs the programs that need a broker: the one that `MAILER_KAFKA=host:port` names. Kafka's own tools write their input
//! and read their output.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is a test")]

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::Command;
use xtask::kafka::{BOOTSTRAP_VARIABLE, ConsoleRecord, Tools, bootstrap_from_environment};

/// A broker with topics of this test alone.
struct Broker {
    bootstrap: String,
    tools: Tools,
    prefix: String,
}

impl Broker {
    fn with(topics: &[&str]) -> Option<Self> {
        let Some(bootstrap) = bootstrap_from_environment() else {
            println!("skipped: {BOOTSTRAP_VARIABLE}=host:port names no broker (`cargo xtask kafka up` starts one)");
            return None;
        };
        let prefix = format!("example-{:08x}", RandomState::new().hash_one(std::process::id()) as u32);
        let broker = Self { bootstrap, tools: Tools::new().unwrap(), prefix };
        for topic in topics {
            broker.tools.create_topic(&broker.bootstrap, &broker.name(topic), 1, &[]).unwrap();
        }
        Some(broker)
    }

    fn name(&self, topic: &str) -> String {
        format!("{}-{topic}", self.prefix)
    }

    fn write(&self, topic: &str, lines: &[(&str, &str)]) {
        self.tools.produce(&self.bootstrap, &self.name(topic), lines).unwrap();
    }

    fn read(&self, topic: &str) -> Vec<ConsoleRecord> {
        self.tools.read_all(&self.bootstrap, &self.name(topic)).unwrap()
    }

    /// Returns what the program said when it failed.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let output = Command::new(program).args(arguments).env(BOOTSTRAP_VARIABLE, &self.bootstrap).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    }
}

/// What makes the connectors exchangeable: their programs differ in one line of code.
#[test]
fn the_connectors_are_swapped_by_one_line() {
    let source = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin").join(name);
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter(|line| !line.starts_with("//!")).map(str::to_owned).collect::<Vec<_>>()
    };
    let (one, other) = (source("lengths_kafka.rs"), source("lengths_rskafka.rs"));
    assert_eq!(one.len(), other.len());
    let different: Vec<_> = one.iter().zip(&other).filter(|(a, b)| a != b).collect();
    assert_eq!(different.len(), 1, "{different:?}");
    assert!(different[0].0.starts_with("use mailer_kafka::") && different[0].1.starts_with("use mailer_rskafka::"));
}

#[test]
fn both_connectors_do_the_same() {
    let Some(broker) = Broker::with(&["words", "by-kafka", "by-rskafka"]) else { return };
    broker.write("words", &[("1", "one"), ("2", "three"), ("3", "fifteen")]);
    let programs =
        [(env!("CARGO_BIN_EXE_lengths_kafka"), "by-kafka"), (env!("CARGO_BIN_EXE_lengths_rskafka"), "by-rskafka")];
    for (program, output) in programs {
        broker.run(program, &[&broker.name("words"), &broker.name(output)]).unwrap();
        let records = broker.read(output);
        let read: Vec<_> = records.iter().map(|record| (record.key_text(), record.value_text())).collect();
        let expected = [("one", r#"["one",3]"#), ("three", r#"["three",5]"#), ("fifteen", r#"["fifteen",7]"#)];
        assert_eq!(read, expected.map(|(key, value)| (key.to_owned(), value.to_owned())), "{output}");
    }
}

/// Good records and bad ones, by Kafka's own consumer; and then the output of the exactly-once sink as the input of the
/// light connector, which cannot read it and says so.
#[test]
fn dead_letters_arrive_beside_the_output() {
    let Some(broker) = Broker::with(&["orders", "bills", "dead", "lengths"]) else { return };
    broker.write(
        "orders",
        &[("a", r#"{"customer":"ann","amount":3}"#), ("b", "not json"), ("c", r#"{"customer":"carl","amount":4}"#)],
    );
    let folder = tempfile::tempdir().unwrap();
    let arguments = [broker.prefix.as_str(), folder.path().to_str().unwrap()];
    broker.run(env!("CARGO_BIN_EXE_dead_letters"), &arguments).unwrap();

    let bills: BTreeSet<String> = broker.read("bills").iter().map(ConsoleRecord::key_text).collect();
    assert_eq!(bills, ["ann", "carl"].map(str::to_owned).into());
    let dead = broker.read("dead");
    let read: Vec<_> = dead.iter().map(|letter| (letter.key_text(), letter.value_text())).collect();
    assert_eq!(read, [("b".to_owned(), "not json".to_owned())]);

    let error = broker.run(env!("CARGO_BIN_EXE_lengths_rskafka"), &[&broker.name("bills"), &broker.name("lengths")]);
    let error = error.unwrap_err();
    assert!(error.contains("transaction marker") && error.contains("`mailer-kafka`"), "{error}");
    broker.run(env!("CARGO_BIN_EXE_lengths_kafka"), &[&broker.name("bills"), &broker.name("lengths")]).unwrap();
    assert_eq!(broker.read("lengths").len(), 2);
}

/// Kafka's own tools write payments and read the dead letters; its group tool sees no lag.
#[test]
fn a_parallel_consumer_puts_away_what_is_no_payment() {
    let Some(broker) = Broker::with(&["payments", "dead"]) else { return };
    broker.write("payments", &[("ann", "100"), ("bob", "ten"), ("ann", "200"), ("carl", "300")]);
    broker.run(env!("CARGO_BIN_EXE_parallel_kafka"), &[&broker.prefix, "4"]).unwrap();
    let dead: Vec<_> = broker.read("dead").iter().map(|letter| (letter.key_text(), letter.value_text())).collect();
    assert_eq!(dead, [("bob".to_owned(), "ten".to_owned())]);
    let group = broker.tools.group_positions(&broker.bootstrap, &[&broker.name("charging")]).unwrap();
    assert_eq!(group.iter().map(|at| (at.position, at.end)).collect::<Vec<_>>(), [(Some(4), Some(4))]);
}
