//! A real broker, and Kafka's own tools at both ends: nothing of ours writes the input or reads the output.

use super::cluster::Cluster;
use crate::crash::run::write_orders;
use anyhow::{Result, anyhow};
use std::thread;
use xtask::kafka::{ConsoleRecord, Tools, jars};

const PARTITIONS: u32 = 4;

/// A broker that somebody started.
pub struct RealKafka {
    bootstrap: String,
    tools: Tools,
    version: String,
}

impl RealKafka {
    /// The one at `bootstrap`. Fetches Kafka's tools when they are not there.
    pub fn at(bootstrap: &str) -> Result<Self> {
        let tools = Tools::new()?;
        let version = jars()?.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { bootstrap: bootstrap.to_owned(), tools, version })
    }
}

impl Cluster for RealKafka {
    fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    fn describe(&self) -> Vec<String> {
        vec![format!("a real Kafka broker at {}", self.bootstrap)]
    }

    fn writer(&self) -> String {
        format!("Kafka {}'s console producer", self.version)
    }

    fn reader(&self) -> String {
        format!("by Kafka {}'s console consumer, read_committed", self.version)
    }

    /// Each topic is a JVM that mostly starts: together.
    fn create(&self, topics: &[&str]) -> Result<()> {
        thread::scope(|scope| {
            let create = |topic| move || self.tools.create_topic(&self.bootstrap, topic, PARTITIONS, &[]);
            let creating: Vec<_> = topics.iter().map(|topic| scope.spawn(create(topic))).collect();
            creating.into_iter().try_for_each(|one| one.join().map_err(|_| anyhow!("creating a topic panicked"))?)
        })
    }

    fn write_orders(&self, topic: &str, count: u64) -> Result<()> {
        write_orders(&self.tools, &self.bootstrap, topic, 0..count)
    }

    fn read(&self, topics: &[&str]) -> Result<Vec<Vec<ConsoleRecord>>> {
        let mut read = self.tools.read_topics(&self.bootstrap, topics)?;
        Ok(topics.iter().map(|topic| read.remove(*topic).unwrap_or_default()).collect())
    }
}
