//! Kafka's own command line tools: the foreign eyes through which tests look at what Mailer wrote.
//!
//! Each call starts a JVM, about 0.7 s.

mod console;
mod tables;

pub use console::{ConsoleConsumer, ConsoleRecord, Isolation};
pub use tables::{GroupPosition, Transaction};

use super::jars;
use crate::process;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;
use tables::EndOffset;

/// Consumers that run at the same time: mostly they wait for silence.
const READERS: usize = 4;

/// Runs the tools out of the same jars as the broker.
#[derive(Debug, Clone)]
pub struct Tools {
    jars: PathBuf,
}

impl Tools {
    /// Fetches the jars first when they are not there.
    pub fn new() -> Result<Self> {
        Ok(Self { jars: jars::jars()? })
    }

    /// Creates a topic (`TopicCommand`). `configs` are settings such as `("cleanup.policy", "compact")`.
    pub fn create_topic(&self, bootstrap: &str, name: &str, partitions: u32, configs: &[(&str, &str)]) -> Result<()> {
        let mut tool = self.tool("org.apache.kafka.tools.TopicCommand", bootstrap);
        tool.args(["--create", "--replication-factor", "1", "--topic", name]);
        tool.args(["--partitions", &partitions.to_string()]);
        for (setting, value) in configs {
            tool.args(["--config", &format!("{setting}={value}")]);
        }
        process::capture(&mut tool)?;
        Ok(())
    }

    /// Name and finalized level of every feature of the cluster (`FeatureCommand`).
    pub fn features(&self, bootstrap: &str) -> Result<BTreeMap<String, String>> {
        let mut tool = self.tool("org.apache.kafka.tools.FeatureCommand", bootstrap);
        Ok(tables::features(&text(&process::capture(tool.arg("describe"))?)))
    }

    /// Every transactional id the cluster knows, with its state (`TransactionsCommand`).
    pub fn transactions(&self, bootstrap: &str) -> Result<Vec<Transaction>> {
        let mut tool = self.tool("org.apache.kafka.tools.TransactionsCommand", bootstrap);
        tables::transactions(&text(&process::capture(tool.arg("list"))?))
    }

    /// The end offset of each partition of a topic (`GetOffsetShell`): of the log, not of what is committed.
    pub fn end_offsets(&self, bootstrap: &str, topic: &str) -> Result<BTreeMap<i32, i64>> {
        Ok(self.ends(bootstrap, &[topic])?.into_iter().map(|at| (at.partition, at.end)).collect())
    }

    fn ends(&self, bootstrap: &str, topics: &[&str]) -> Result<Vec<EndOffset>> {
        let mut tool = self.tool("org.apache.kafka.tools.GetOffsetShell", bootstrap);
        let pattern = topics.iter().map(|topic| topic.replace('.', "\\.")).collect::<Vec<_>>().join("|");
        tables::offsets(&text(&process::capture(tool.args(["--topic", &pattern]))?))
    }

    /// How far some consumer groups have come, partition by partition (`ConsumerGroupCommand`).
    pub fn group_positions(&self, bootstrap: &str, groups: &[&str]) -> Result<Vec<GroupPosition>> {
        let mut tool = self.tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", bootstrap);
        tool.arg("--describe").args(groups.iter().flat_map(|group| ["--group", group]));
        tables::group_positions(&text(&process::capture(&mut tool)?))
    }

    /// Reads a topic with Kafka's `ConsoleConsumer`.
    pub fn consume(&self, bootstrap: &str, what: &ConsoleConsumer) -> Result<Vec<ConsoleRecord>> {
        let mut tool = self.tool("org.apache.kafka.tools.consumer.ConsoleConsumer", bootstrap);
        console::each_once(console::parse(&process::capture(tool.args(what.arguments()))?.stdout)?)
    }

    /// Every committed record of a topic: [`Tools::read_topics`] for one.
    pub fn read_all(&self, bootstrap: &str, topic: &str) -> Result<Vec<ConsoleRecord>> {
        Ok(self.read_topics(bootstrap, &[topic])?.remove(topic).unwrap_or_default())
    }

    /// Every committed record of some topics, read by `ConsoleConsumer` with `read_committed`, and **proof that it
    /// read to the end**: silence alone cannot be told from a slow machine, so the position of the reader's own group
    /// is compared with the end of the log, and a read that fell short is repeated with more patience.
    ///
    /// A transaction that is still open makes this fail: what lies behind it is not readable yet. Several topics are
    /// read at once, which is much faster than one after the other.
    pub fn read_topics(&self, bootstrap: &str, topics: &[&str]) -> Result<BTreeMap<String, Vec<ConsoleRecord>>> {
        let mut read = BTreeMap::new();
        let mut left: Vec<&str> = topics.to_vec();
        for seconds in [3, 10, 30] {
            let groups: Vec<(&str, String)> = left.iter().map(|topic| (*topic, console::new_group(topic))).collect();
            let records = self.consume_together(bootstrap, &groups, Duration::from_secs(seconds))?;
            let short = self.fell_short(bootstrap, &groups)?;
            read.extend(
                left.iter().map(|topic| (*topic).to_owned()).zip(records).filter(|(topic, _)| !short.contains(topic)),
            );
            left.retain(|topic| short.contains(*topic));
            if left.is_empty() {
                return Ok(read);
            }
        }
        bail!("the console consumer does not reach the end of {}: is a transaction left open?", left.join(", "))
    }

    fn consume_together(
        &self,
        bootstrap: &str,
        groups: &[(&str, String)],
        silence: Duration,
    ) -> Result<Vec<Vec<ConsoleRecord>>> {
        let read = |(topic, group): &(&str, String)| {
            self.consume(bootstrap, &ConsoleConsumer::of(topic).silence(silence).group(group))
        };
        let mut records = Vec::new();
        for some in groups.chunks(READERS) {
            let results: Vec<Result<_>> = thread::scope(|scope| {
                let readers: Vec<_> = some.iter().map(|group| scope.spawn(move || read(group))).collect();
                let panicked = |_| Err(anyhow!("a reader panicked"));
                readers.into_iter().map(|reader| reader.join().unwrap_or_else(panicked)).collect()
            });
            records.extend(results.into_iter().collect::<Result<Vec<_>>>()?);
        }
        Ok(records)
    }

    /// The topics whose end their group has not reached.
    fn fell_short(&self, bootstrap: &str, groups: &[(&str, String)]) -> Result<BTreeSet<String>> {
        let topics: Vec<&str> = groups.iter().map(|(topic, _)| *topic).collect();
        let names: Vec<&str> = groups.iter().map(|(_, group)| group.as_str()).collect();
        let positions = self.group_positions(bootstrap, &names)?;
        let ends = self.ends(bootstrap, &topics)?;
        Ok(tables::fell_short(&topics, &ends, &positions))
    }

    /// Writes `key<TAB>value` lines to a topic with Kafka's `ConsoleProducer`: input that is not written by us either.
    pub fn produce(&self, bootstrap: &str, topic: &str, lines: &[(&str, &str)]) -> Result<()> {
        let mut tool = self.tool("org.apache.kafka.tools.ConsoleProducer", bootstrap);
        tool.args(["--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=\t"]);
        let input: String = lines.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect();
        process::feed(&mut tool, input.as_bytes()).with_context(|| format!("cannot write to {topic}"))
    }

    /// Any program in Kafka's jars, by the name of its class.
    pub fn command(&self, class: &str) -> Command {
        let mut java = Command::new("java");
        // Short-lived: the quick compiler and the simple collector.
        java.args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]).arg(jars::logging());
        java.arg("-cp").arg(jars::class_path(&self.jars)).arg(class);
        java
    }

    fn tool(&self, class: &str, bootstrap: &str) -> Command {
        let mut tool = self.command(class);
        tool.args(["--bootstrap-server", bootstrap]);
        tool
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
