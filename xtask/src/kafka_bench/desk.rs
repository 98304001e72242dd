//! Topics, made, filled and counted by Kafka's own client: `integration-tests/kafka/Desk.java`, compiled once.

use super::subjects;
use crate::kafka::jvm;
use crate::{process, workspace};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The compiled program.
#[derive(Debug)]
pub(super) struct Desk {
    classes: PathBuf,
}

impl Desk {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let classes = folder.join("desk");
        let sources = subjects::java_sources(&workspace::root().join("integration-tests/kafka"))?;
        subjects::compile(&sources, &[], &classes).context("the bench needs a JDK (javac)")?;
        Ok(Self { classes })
    }

    /// Makes empty topics of four partitions.
    pub(super) fn create(&self, bootstrap: &str, topics: &[String]) -> Result<()> {
        self.run(bootstrap, "create", topics).map(drop)
    }

    pub(super) fn delete(&self, bootstrap: &str, topics: &[String]) -> Result<()> {
        self.run(bootstrap, "delete", topics).map(drop)
    }

    /// Writes the records of the bench, compressed by `codec`.
    pub(super) fn fill(&self, bootstrap: &str, topic: &str, codec: &str, records: u64) -> Result<()> {
        self.run(bootstrap, "fill", &[topic.to_owned(), codec.to_owned(), records.to_string()]).map(drop)
    }

    /// How many committed records each topic holds; -1 where a transaction left open hides the end.
    pub(super) fn count(&self, bootstrap: &str, topics: &[String]) -> Result<BTreeMap<String, i64>> {
        counts(&self.run(bootstrap, "count", topics)?)
    }

    fn run(&self, bootstrap: &str, what: &str, arguments: &[String]) -> Result<String> {
        let mut java = jvm(std::slice::from_ref(&self.classes))?;
        java.args(["-Xmx512m", "-XX:+UseSerialGC", "Desk", bootstrap, what]).args(arguments);
        Ok(String::from_utf8_lossy(&process::capture(&mut java)?.stdout).into_owned())
    }
}

fn counts(text: &str) -> Result<BTreeMap<String, i64>> {
    let count = |line: &str| {
        let (topic, count) = line.split_once(' ').with_context(|| format!("not a count: {line:?}"))?;
        Ok((topic.to_owned(), count.parse().with_context(|| format!("not a count: {line:?}"))?))
    };
    text.lines().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_are_printed() {
        let expected = BTreeMap::from([("a".to_owned(), 7), ("b-1".to_owned(), -1)]);
        assert_eq!(counts("a 7\nb-1 -1\n").unwrap(), expected);
        assert!(counts("a seven\n").is_err());
    }
}
