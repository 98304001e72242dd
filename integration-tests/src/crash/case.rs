//! One case: a way to die, where output goes, where state is.

use super::points::{Place, Point};
use crate::outputs::fault::Fault;
use clap::ValueEnum;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
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

/// What a person can choose of where output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// From Kafka to Kafka.
    Kafka,
    /// Into a folder.
    Files,
    /// Into a table, and into a folder beside it.
    Postgres,
}

/// Where the output of a case goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a broker with these transactions.
    Kafka(TransactionVersion),
    /// Into a folder.
    Files,
    /// Into a table, and into a folder beside it: two targets of one checkpoint.
    Postgres,
}

impl Target {
    /// All of them, in the order in which they are played.
    pub const ALL: [Target; 4] =
        [Target::Kafka(TransactionVersion::V2), Target::Kafka(TransactionVersion::V1), Target::Files, Target::Postgres];

    /// What a person calls it.
    pub fn output(self) -> Output {
        match self {
            Target::Kafka(_) => Output::Kafka,
            Target::Files => Output::Files,
            Target::Postgres => Output::Postgres,
        }
    }

    /// The arguments of the crash test that choose it.
    pub fn arguments(self) -> String {
        match self {
            Target::Kafka(transactions) => format!("--output kafka --txn {transactions}"),
            Target::Files => "--output files".into(),
            Target::Postgres => "--output postgres".into(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Kafka(transactions) => write!(f, "kafka-v{transactions}"),
            Target::Files => f.write_str("files"),
            Target::Postgres => f.write_str("postgres"),
        }
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
    /// The only checkpoint with output is the one at the end of input; abort at the n-th pass of this point.
    EndOfInput(&'static str, u64),
    /// SIGKILL before the first checkpoint that follows the initial one.
    FirstInterval,
    /// A snapshot fails, a good checkpoint follows, then SIGKILL.
    FailedCheckpoint,
    /// The disk refuses a write of this kind, once; the job restarts by itself.
    DiskFull(&'static str),
    /// The broker is killed and started again in the middle of a publish.
    BrokerRestart,
    /// The database dies at this point of a publish, for the n-th time, and comes back.
    DatabaseRestart(&'static str, u64),
    /// SIGSTOP beyond the transaction timeout, another process takes over, SIGCONT.
    Zombie,
    /// It sleeps at this point of a publish, for the n-th time, while another takes over and finishes; then it wakes up.
    WokenLate(&'static str, u64),
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
    /// The sink, or the state, has a fault.
    Spoiled(Fault),
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scenario::Point { name, place: Place::Recovery(..), .. } if !name.starts_with("recovery-") => {
                write!(f, "recovery-{name}")
            }
            Scenario::Point { name, .. } => f.write_str(name),
            Scenario::RandomKills(kills) => write!(f, "{kills}-random-kills"),
            Scenario::EndOfInput(point, _) => write!(f, "end-of-input-{point}"),
            Scenario::FirstInterval => f.write_str("first-interval"),
            Scenario::FailedCheckpoint => f.write_str("failed-checkpoint"),
            Scenario::DiskFull(point) => write!(f, "disk-full-{point}"),
            Scenario::BrokerRestart => f.write_str("broker-restart"),
            Scenario::DatabaseRestart(point, _) => write!(f, "database-restart-{point}"),
            Scenario::WokenLate(point, _) => write!(f, "woken-late-{point}"),
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
            Scenario::Planted(Plant::Spoiled(fault)) => write!(f, "planted-{fault}"),
            Scenario::Windows(death) => write!(f, "windows-{death}"),
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Unique in a run; the job's name and, on Kafka, the prefix of its keys.
    pub name: String,
    /// The way to die.
    pub scenario: Scenario,
    /// Where state is.
    pub backend: Backend,
    /// Where output goes.
    pub target: Target,
}

impl Case {
    /// A case; `number` tells it from others that are the same.
    pub fn new(scenario: Scenario, backend: Backend, target: Target, number: usize) -> Self {
        let name = format!("{scenario}-{backend}-{target}-{number}");
        Self { name, scenario, backend, target }
    }

    /// Chooses the times of its kills: the same in every run with this seed, whatever else the run plays.
    pub fn seed(&self, seed: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.name.hash(&mut hasher);
        seed.wrapping_add(hasher.finish())
    }
}
