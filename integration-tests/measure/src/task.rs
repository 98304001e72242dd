//! What a subject is asked to do, as its command line.

use clap::{Parser, ValueEnum};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Partitions of every topic of the bench.
pub const PARTITIONS: i32 = 4;
/// Bytes of one batch before compression: the same for every subject.
pub const BATCH_BYTES: usize = 128 << 10;
/// How long a producer may wait for a batch to fill: the same for every subject.
pub const LINGER: Duration = Duration::from_millis(5);
/// No subject waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Read committed records of `input` and look at each.
    Consume,
    /// Write records to `output`, acknowledged by all replicas in sync, without repeating any.
    Produce,
    /// Read `input` and write every record to `output`, once.
    ExactlyOnce,
    /// Read `input` and write the number of records of a key seen so far to `output`, once.
    KeyedCount,
    /// Write `records` records to `output` in one transaction, several times.
    Publish,
}

/// How batches are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Codec {
    /// Not at all.
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard at its default level.
    Zstd,
}

impl Codec {
    /// The value of Kafka's `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One measurement, by one process.
#[derive(Clone, Debug, Parser)]
pub struct Task {
    /// What to measure.
    #[arg(long)]
    pub workload: Workload,
    /// The broker, `host:port`.
    #[arg(long)]
    pub bootstrap: String,
    /// Compression of what is written. What is read says itself how it is compressed.
    #[arg(long, default_value = "none")]
    pub codec: Codec,
    /// The topic to read, from its beginning.
    #[arg(long, default_value = "")]
    pub input: String,
    /// The topic to write, empty before.
    #[arg(long, default_value = "")]
    pub output: String,
    /// Records handled before the clock starts.
    #[arg(long, default_value_t = 0)]
    pub warm_up: u64,
    /// Records handled on the clock (at least: a batch is never cut).
    #[arg(long)]
    pub records: u64,
    /// Records in one transaction of a subject that counts them.
    #[arg(long, default_value_t = 100_000)]
    pub transaction: u64,
    /// Milliseconds between the transactions of a subject that commits by time.
    #[arg(long)]
    pub interval: u64,
    /// Transactional id, consumer group, job name: never used before.
    #[arg(long)]
    pub id: String,
    /// An empty folder for files of the subject.
    #[arg(long, default_value = ".")]
    pub folder: PathBuf,
}

impl Task {
    /// Warm-up and measured records together.
    pub fn total(&self) -> u64 {
        self.warm_up + self.records
    }
}
