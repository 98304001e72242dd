//! One case: a way to die, a backend, a transaction version.

use super::points::{Place, Point};
use clap::ValueEnum;
use std::fmt;
use xtask::kafka::TransactionVersion;

/// Where the victim keeps its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// In memory.
    Memory,
    /// In RocksDB.
    Rocksdb,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Memory => "memory",
            Backend::Rocksdb => "rocksdb",
        })
    }
}

/// A way to die.
#[derive(Clone, Debug, PartialEq)]
pub enum Scenario {
    /// Abort at a failpoint, once.
    Point {
        /// Its name.
        name: &'static str,
        /// The pass that counts.
        nth: u64,
        /// Where it lies.
        place: Place,
    },
    /// SIGKILL at random times, so many times.
    RandomKills(u32),
    /// The only checkpoint with output is the one at the end of input; abort at this point of it.
    EndOfInput(&'static str),
    /// SIGKILL before the first checkpoint that follows the initial one.
    FirstInterval,
    /// A snapshot fails, a good checkpoint follows, then SIGKILL.
    FailedCheckpoint,
    /// The disk refuses a write of this kind, once; the job restarts by itself.
    DiskFull(&'static str),
    /// The broker is killed and started again in the middle of a publish.
    BrokerRestart,
    /// SIGSTOP beyond the transaction timeout, another process takes over, SIGCONT.
    Zombie,
    /// A second process while the first runs.
    TwoAtOnce,
    /// A prepared checkpoint, then a start with another number of workers.
    OtherWorkers,
    /// A prepared checkpoint, then a start without one of its sinks.
    SinkRemoved,
    /// A prepared checkpoint, then a start without any sink of its target.
    TargetRemoved,
    /// A prepared checkpoint, then a start with another transactional id.
    OtherTransactionalId,
    /// Plain sinks: nothing is lost, some is repeated, state is exact.
    AtLeastOnce,
    /// No checkpoints, from earliest: everything is written again.
    NoCheckpointsEarliest,
    /// No checkpoints, from latest: what came while it was down is lost.
    NoCheckpointsLatest,
    /// A fault is planted; the case passes when a checker finds it.
    Planted(Plant),
    /// The same with the windowed job: windows, sessions and timers are open when it dies, lookups are under way.
    Windows(Box<Scenario>),
}

impl Scenario {
    /// Death at a failpoint.
    pub fn of(point: &Point) -> Self {
        Scenario::Point { name: point.name, nth: point.nth, place: point.place }
    }

    /// The way to die, whichever job it is that dies.
    pub fn death(&self) -> &Scenario {
        match self {
            Scenario::Windows(death) => death,
            death => death,
        }
    }
}

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Recovery publishes without looking at the marker: output is doubled.
    SkipMarker,
    /// Output is published before the manifest is durable: recovery must refuse.
    PublishEarly,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scenario::Point { name, .. } => f.write_str(name),
            Scenario::RandomKills(kills) => write!(f, "{kills}-random-kills"),
            Scenario::EndOfInput(point) => write!(f, "end-of-input-{point}"),
            Scenario::FirstInterval => f.write_str("first-interval"),
            Scenario::FailedCheckpoint => f.write_str("failed-checkpoint"),
            Scenario::DiskFull(point) => write!(f, "disk-full-{point}"),
            Scenario::BrokerRestart => f.write_str("broker-restart"),
            Scenario::Zombie => f.write_str("zombie"),
            Scenario::TwoAtOnce => f.write_str("two-at-once"),
            Scenario::OtherWorkers => f.write_str("other-workers"),
            Scenario::SinkRemoved => f.write_str("sink-removed"),
            Scenario::TargetRemoved => f.write_str("target-removed"),
            Scenario::OtherTransactionalId => f.write_str("other-transactional-id"),
            Scenario::AtLeastOnce => f.write_str("at-least-once"),
            Scenario::NoCheckpointsEarliest => f.write_str("no-checkpoints-earliest"),
            Scenario::NoCheckpointsLatest => f.write_str("no-checkpoints-latest"),
            Scenario::Planted(Plant::SkipMarker) => f.write_str("planted-skip-marker"),
            Scenario::Planted(Plant::PublishEarly) => f.write_str("planted-publish-early"),
            Scenario::Windows(death) => write!(f, "windows-{death}"),
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Unique in a run; the job's name and the prefix of its keys.
    pub name: String,
    /// The way to die.
    pub scenario: Scenario,
    /// Where state is.
    pub backend: Backend,
    /// The broker's transactions.
    pub transactions: TransactionVersion,
}

impl Case {
    /// A case; `number` makes its name unique.
    pub fn new(scenario: Scenario, backend: Backend, transactions: TransactionVersion, number: usize) -> Self {
        let name = format!("{scenario}-{backend}-v{transactions}-{number}");
        Self { name, scenario, backend, transactions }
    }
}
