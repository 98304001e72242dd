//! Runs a case in one way, and judges what came out.

use super::build::{Outputs, build};
use super::case::{Case, Event, mix};
use super::model::Expected;
use crate::simulation::faults::Faults;
use crate::simulation::log::ModelLog;
use crate::simulation::run::{Deaths, Lives, live};
use crate::simulation::storage::SimStorage;
use mailer_runtime::testing::{Mutations, Seed};
use mailer_runtime::{Env, FileStorage};
use mailer_state_rocksdb::RocksDbBackend;
use std::collections::BTreeMap;
use std::time::Duration;

/// Ways a case is run in.
pub const WAYS: u64 = 3;
/// One way in so many runs on threads.
const THREADS: u64 = 16;
/// One way in so many keeps its state in RocksDB.
const ROCKSDB: u64 = 24;

/// Who steps the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// The seeded driver, and nothing goes wrong.
    Calmly,
    /// The seeded driver, with crashes, and with faults of disk and target.
    Dying,
    /// Threads.
    OnThreads,
}

/// Speeds, sizes and accidents.
#[derive(Clone, Debug)]
pub struct Way {
    /// Decides what is not written here.
    pub seed: u64,
    /// Who steps.
    pub runs: Runs,
    /// Whether state is in RocksDB.
    pub rocksdb: bool,
    /// Workers, and workers of single sources and stages.
    pub workers: Vec<u16>,
    /// Most records of a batch.
    pub batch: u64,
    /// Polls in a hundred that find nothing.
    pub pauses: u64,
    /// See [`mailer_runtime::Watermarks::emit_every`].
    pub emit_every: Duration,
    /// See [`mailer_runtime::Watermarks::idle_after`]: no split ever is idle here, however slow.
    pub idle_after: Duration,
    /// See [`mailer_runtime::Watermarks::align`].
    pub max_drift: Option<Duration>,
    /// Lookups at once.
    pub capacity: usize,
    /// Between two checkpoints.
    pub interval: Duration,
    /// Batches and bytes of an edge.
    pub edge: (usize, usize),
    /// See [`Env::staging_budget`]: a small one stops the sources for a while.
    pub staging: usize,
    /// A planted fault.
    pub mutations: Mutations,
}

impl Way {
    /// Way number `number` of a case: the first in peace, the others not.
    pub fn of(case: u64, number: u64) -> Self {
        let seed = mix([case, number, 2]);
        let mut draw = Seed::new(seed);
        let mut below = |n: u64| draw.below(n);
        let runs = match number {
            _ if below(THREADS) == 0 => Runs::OnThreads,
            0 => Runs::Calmly,
            _ => Runs::Dying,
        };
        Self {
            seed,
            runs,
            rocksdb: below(ROCKSDB) == 0,
            workers: (0..7).map(|_| 1 + below(4) as u16).collect(),
            batch: [1, 2, 5, 100][below(4) as usize],
            pauses: [0, 10, 60][below(3) as usize],
            emit_every: Duration::from_millis([0, 1, 10][below(3) as usize]),
            idle_after: Duration::from_millis(1 + below(10)),
            max_drift: (below(3) == 0).then(|| Duration::from_millis(below(50))),
            capacity: 1 + below(8) as usize,
            interval: Duration::from_millis(2 + below(20)),
            edge: (1 + below(4) as usize, [200, 4_096][below(2) as usize]),
            staging: [1_000, 1 << 20][below(2) as usize],
            mutations: Mutations::default(),
        }
    }

    /// Workers of a source or a stage.
    pub(super) fn partitions(&self, place: usize) -> u16 {
        self.workers[1 + place % (self.workers.len() - 1)]
    }
}

/// Runs `case` in one way and compares; an error says how it differs.
pub fn run(case: &Case, way: &Way) -> Result<Lives, String> {
    let mut chance = Seed::new(mix([way.seed, 3]));
    let faults = Faults::new(mix([way.seed, 4]));
    if way.runs != Runs::Dying {
        faults.stop();
    }
    let outputs = Outputs { out: ModelLog::new("out", faults.clone()), aside: ModelLog::new("aside", faults.clone()) };
    let storage = SimStorage::new(faults.clone());
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let env = || {
        let env = Env::new("random").workers(way.workers[0]).edge_capacity(way.edge.0, way.edge.1);
        // On threads it is the machine's time, and the machine may be busy.
        let timeout = Duration::from_millis(if way.runs == Runs::OnThreads { 60_000 } else { 400 });
        let env = env.checkpoint_timeout(timeout).tolerable_failures(1_000);
        let env = env.staging_budget(way.staging).plant(way.mutations);
        let env = match way.rocksdb {
            true => env
                .checkpointing(way.interval, FileStorage::new(folder.path().join("checkpoints")))
                .state_backend(RocksDbBackend::new(folder.path().join("state"))),
            false => env.checkpointing(way.interval, storage.clone()),
        };
        build(case, way, &env, &outputs);
        env
    };
    let (lives, outcome) = match way.runs {
        Runs::OnThreads => (Lives::default(), env().execute().map_err(|e| format!("{e:?}"))),
        Runs::Calmly => live(&mut chance, &faults, Deaths { within: 1, starts: 0 }, env),
        Runs::Dying => live(&mut chance, &faults, Deaths { within: 1_500, starts: 4 }, env),
    };
    outcome?;
    judge(case, &outputs.out.committed(), &outputs.aside.committed())?;
    Ok(lives)
}

/// Whether this is what must come out.
fn judge(case: &Case, out: &[Event], aside: &[Event]) -> Result<(), String> {
    if case.late {
        return judge_late(case, out, aside);
    }
    let expected = Expected::of(case, &[]);
    same("aside", &expected.aside, aside)?;
    same("out", &expected.out, out)?;
    if expected.ordered { in_order(&expected.out, out) } else { Ok(()) }
}

/// Which of the records beyond the bound were late depends on the speed of the partitions. But each of them is late once,
/// or in its window; those within the bound are never late; and no window is put out twice.
fn judge_late(case: &Case, out: &[Event], aside: &[Event]) -> Result<(), String> {
    let may_be_late = case.inputs[0].beyond_the_bound();
    if let Some(event) = aside.iter().find(|event| !may_be_late.contains(event)) {
        return Err(format!("{event:?} is within the bound, and yet late"));
    }
    same("out without late records", &Expected::of(case, aside).out, out)
}

/// Equal, in whatever order.
fn same(what: &str, expected: &[Event], actual: &[Event]) -> Result<(), String> {
    let count = |events: &[Event]| {
        let mut counts: BTreeMap<Event, i64> = BTreeMap::new();
        events.iter().for_each(|event| *counts.entry(event.clone()).or_default() += 1);
        counts
    };
    let mut difference = count(expected);
    count(actual).into_iter().for_each(|(event, times)| *difference.entry(event).or_default() -= times);
    difference.retain(|_, times| *times != 0);
    if difference.is_empty() {
        return Ok(());
    }
    let missing: Vec<_> = difference.iter().filter(|(_, times)| **times > 0).take(5).collect();
    let extra: Vec<_> = difference.iter().filter(|(_, times)| **times < 0).take(5).collect();
    Err(format!("{what}: {} of {} expected; missing {missing:?} …, too many {extra:?} …", actual.len(), expected.len()))
}

/// The records of each key in the same order.
fn in_order(expected: &[Event], actual: &[Event]) -> Result<(), String> {
    let keys = |events: &[Event]| {
        let mut keys: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
        events.iter().for_each(|event| keys.entry(event.key).or_default().push(event.clone()));
        keys
    };
    let actual = keys(actual);
    match keys(expected).iter().find(|(key, events)| actual.get(*key) != Some(*events)) {
        None => Ok(()),
        Some((key, events)) => Err(format!("order of key {key}: expected {events:?}, got {:?}", actual.get(key))),
    }
}
