//! What the demo asks of a cluster, real or not.

use anyhow::Result;
use std::hash::{BuildHasher, RandomState};
use xtask::kafka::ConsoleRecord;

/// The names one run uses: new ones every time, so that it can run again on the same broker.
#[derive(Clone, Debug)]
pub struct Names {
    /// The job, and the transactional id.
    pub job: String,
    /// Orders come from here.
    pub orders: String,
    /// Totals go here.
    pub totals: String,
    /// Copies of the orders' numbers go here.
    pub seen: String,
}

impl Names {
    /// Names that nobody has used.
    pub fn unique() -> Self {
        let run = format!("{:06x}", random() & 0xff_ffff);
        let name = |what: &str| format!("{what}-{run}");
        Self { job: name("demo"), orders: name("orders"), totals: name("totals"), seen: name("seen") }
    }

    /// All topics.
    pub fn topics(&self) -> [&str; 3] {
        [&self.orders, &self.totals, &self.seen]
    }
}

/// A number from the system: the standard library draws the keys of its hash maps with it.
pub fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// A place that holds topics.
pub trait Cluster {
    /// `host:port`, for the engine.
    fn bootstrap(&self) -> &str;

    /// What it is, and what it is not: the first lines of the table.
    fn describe(&self) -> Vec<String>;

    /// Who writes the input: "orders written by …".
    fn writer(&self) -> String;

    /// Who reads the output: "read …".
    fn reader(&self) -> String;

    /// Creates topics with a few partitions.
    fn create(&self, topics: &[&str]) -> Result<()>;

    /// Writes the first `count` orders.
    fn write_orders(&self, topic: &str, count: u64) -> Result<()>;

    /// Every committed record of some topics, in their order.
    fn read(&self, topics: &[&str]) -> Result<Vec<Vec<ConsoleRecord>>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn two_runs_share_no_name() {
        let names = [Names::unique(), Names::unique()];
        let all: BTreeSet<_> =
            names.iter().flat_map(|names| [names.topics().as_slice(), &[&names.job]].concat()).collect();
        assert_eq!(all.len(), 8);
    }
}
