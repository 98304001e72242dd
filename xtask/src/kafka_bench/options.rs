//! The command line.

use super::cases::Size;
use clap::Parser;

/// Ours beside other Kafka clients: CPU time per record and records per second, on one broker in one run.
#[derive(Debug, Default, Parser)]
#[command(name = "cargo xtask bench kafka", bin_name = "cargo xtask bench kafka")]
pub(super) struct Options {
    /// Two rounds of few records, to see that all goes well; figures are rough
    #[arg(long)]
    pub(super) quick: bool,
    /// One round of very few records of ours alone, for the tests
    #[arg(long)]
    pub(super) smoke: bool,
    /// One JSON object a line on standard output, and nothing else there
    #[arg(long)]
    pub(super) json: bool,
    /// Only these subjects: ours,ours-engine,limit,rdkafka,krafka,confluent-kafka,kafka-perf-test,kafka-streams
    #[arg(long, value_delimiter = ',')]
    pub(super) only: Vec<String>,
    /// Only these cases: consume,produce,exactly-once,keyed-count,publish
    #[arg(long, value_delimiter = ',')]
    pub(super) case: Vec<String>,
    /// Only these codecs: none,lz4,zstd
    #[arg(long, value_delimiter = ',')]
    pub(super) codec: Vec<String>,
    /// Rounds; 5 unless said, 2 with --quick
    #[arg(long)]
    rounds: Option<usize>,
    /// Records on the clock of one run; 2,000,000 unless said, 200,000 with --quick
    #[arg(long)]
    records: Option<u64>,
}

impl Options {
    pub(super) fn rounds(&self) -> usize {
        let usual = match (self.smoke, self.quick) {
            (true, _) => 1,
            (_, true) => 2,
            _ => 5,
        };
        self.rounds.unwrap_or(usual).max(1)
    }

    pub(super) fn size(&self) -> Size {
        let usual = match (self.smoke, self.quick) {
            (true, _) => 20_000,
            (_, true) => 200_000,
            _ => 2_000_000,
        };
        Size::of(self.records.unwrap_or(usual).max(1_000))
    }

    /// Whether the subject is wanted. The smoke test builds no peer.
    pub(super) fn wants(&self, subject: &str) -> bool {
        let ours = subject.starts_with("ours");
        (ours || !self.smoke) && (self.only.is_empty() || self.only.iter().any(|only| only == subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smoke_test_is_small_and_ours() {
        let options = Options::parse_from(["bench", "--smoke"]);
        assert_eq!((options.rounds(), options.size().records), (1, 20_000));
        assert!(options.wants("ours") && options.wants("ours-engine") && !options.wants("rdkafka"));
    }

    #[test]
    fn only_chooses_by_the_whole_name() {
        let options = Options::parse_from(["bench", "--only", "ours,limit", "--rounds", "0"]);
        assert!(options.wants("limit") && options.wants("ours") && !options.wants("ours-engine"));
        assert_eq!((options.rounds(), options.size().records), (1, 2_000_000));
    }
}
