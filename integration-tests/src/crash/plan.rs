//! Which cases a run plays: pure.

use super::case::{Backend, Case, Output, Plant, Scenario, Target};
use super::points::{FILES, POINTS, POSTGRES, Place, of_the_engine};
use crate::outputs::fault::Fault;
use xtask::kafka::TransactionVersion;

/// What the person asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// A selection that fits into a few minutes.
    pub quick: bool,
    /// Scenarios whose name begins with this.
    pub point: Option<String>,
    /// One backend only.
    pub backend: Option<Backend>,
    /// One kind of output only.
    pub output: Option<Output>,
    /// One transaction version only: of the outputs then, Kafka.
    pub transactions: Option<TransactionVersion>,
    /// SIGKILLs at random times for each kind of output, over all backends and versions.
    pub random_kills: u32,
}

impl Wanted {
    fn targets(&self) -> Vec<Target> {
        let wanted = |target: &Target| {
            let version = match target {
                Target::Kafka(version) => self.transactions.is_none_or(|only| only == *version),
                Target::Files | Target::Postgres => self.transactions.is_none(),
            };
            version && self.output.is_none_or(|only| only == target.output())
        };
        Target::ALL.into_iter().filter(wanted).collect()
    }

    /// Cases of random kills with one target, for each backend.
    fn random_cases(&self, target: Target) -> u32 {
        let versions = match target {
            Target::Kafka(_) => self.transactions.map_or(2, |_| 1),
            Target::Files | Target::Postgres => 1,
        };
        self.random_kills.div_ceil(KILLS_PER_CASE * versions * self.backend.map_or(2, |_| 1))
    }
}

/// Kills in one case of random kills.
const KILLS_PER_CASE: u32 = 5;

/// For so many cases of random kills there is one with the windowed job.
const WINDOWS: u32 = 4;

/// Points that separate what a windowed job could get wrong: how far event time had come, which windows were written back,
/// which lookups were under way, what of it was published.
const WINDOW_POINTS: &[&str] = &[
    "barrier-inject-after",
    "snapshot-first",
    "snapshot-last",
    "state-ingest-after",
    "state-link-after",
    "segment-fsync",
    "manifest-rename-before",
    "manifest-root-fsync",
    "publish-before-commit",
    "publish-commit-sent",
    "complete-before",
    "retention",
    "recovery-claimed",
    "recovery-restored",
];

/// The deaths of the windowed job.
fn windows() -> impl Iterator<Item = Scenario> {
    let points = POINTS.iter().filter(|point| WINDOW_POINTS.contains(&point.name)).map(Scenario::of);
    points.chain([
        Scenario::EndOfInput("publish-before-commit", 1),
        Scenario::FailedCheckpoint,
        Scenario::DiskFull("blob-write-error"),
        Scenario::Planted(Plant::SkipMarker),
    ])
}

/// Points of the engine that a quick run plays with folders and tables, too: around the decision, and while a start claims its
/// targets. The others it plays with Kafka.
const QUICK: &[&str] = &[
    "manifest-rename-before",
    "manifest-root-fsync",
    "complete-before",
    "complete-after",
    "recovery-claimed",
    "recovery-published",
    "recovery-completed",
];

/// All cases, grouped by target: one broker, or one database, each.
pub fn cases(wanted: &Wanted) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for target in wanted.targets() {
        for (i, scenario) in scenarios(wanted, target).into_iter().enumerate() {
            for backend in backends(&scenario, wanted, i, target) {
                let same = |case: &&Case| case.scenario == scenario && case.backend == backend && case.target == target;
                let number = cases.iter().filter(same).count();
                cases.push(Case::new(scenario.clone(), backend, target, number));
            }
        }
    }
    cases
}

fn scenarios(wanted: &Wanted, target: Target) -> Vec<Scenario> {
    let mut all = match target {
        Target::Kafka(_) => of_kafka(),
        Target::Files => of_files(wanted.quick),
        Target::Postgres => of_postgres(wanted.quick),
    };
    let random = wanted.random_cases(target);
    all.extend((0..random).map(|_| Scenario::RandomKills(KILLS_PER_CASE)));
    if let Target::Kafka(_) = target {
        let with_windows = random.div_ceil(WINDOWS);
        all.extend((0..with_windows).map(|_| Scenario::Windows(Box::new(Scenario::RandomKills(KILLS_PER_CASE)))));
    }
    if let Some(prefix) = &wanted.point {
        all.retain(|scenario| scenario.to_string().starts_with(prefix.as_str()));
    }
    all
}

fn of_kafka() -> Vec<Scenario> {
    let mut all: Vec<_> = POINTS.iter().map(Scenario::of).collect();
    all.extend([
        Scenario::EndOfInput("publish-before-commit", 1),
        Scenario::EndOfInput("complete-before", 1),
        Scenario::FirstInterval,
        Scenario::FailedCheckpoint,
        Scenario::DiskFull("blob-write-error"),
        Scenario::DiskFull("manifest-write-error"),
        Scenario::BrokerRestart,
        Scenario::Zombie,
        Scenario::TwoAtOnce,
        Scenario::OtherWorkers,
        Scenario::SinkRemoved,
        Scenario::TargetRemoved,
        Scenario::OtherTransactionalId,
        Scenario::AtLeastOnce,
        Scenario::NoCheckpointsEarliest,
        Scenario::NoCheckpointsLatest,
        Scenario::Planted(Plant::SkipMarker),
        Scenario::Planted(Plant::PublishEarly),
    ]);
    all.extend(windows().map(|death| Scenario::Windows(Box::new(death))));
    all
}

fn of_files(quick: bool) -> Vec<Scenario> {
    let mut all: Vec<_> = FILES.iter().map(Scenario::of).collect();
    all.extend([
        Scenario::EndOfInput("files-decided", 2),
        Scenario::WokenLate("files-staged", 3),
        Scenario::WokenLate("files-decided", 3),
    ]);
    all.extend(of_every_job(quick));
    all
}

fn of_postgres(quick: bool) -> Vec<Scenario> {
    let mut all: Vec<_> = POSTGRES.iter().map(Scenario::of).collect();
    all.extend([
        Scenario::EndOfInput("postgres-after-commit", 2),
        Scenario::DatabaseRestart("postgres-mid-copy", 3),
        Scenario::DatabaseRestart("postgres-before-commit", 3),
        Scenario::WokenLate("postgres-before-commit", 3),
    ]);
    all.extend(of_every_job(quick));
    all
}

/// What a job with a folder or a table goes through because every job does.
fn of_every_job(quick: bool) -> Vec<Scenario> {
    let faults = [Fault::Lose, Fault::Double, Fault::Swap, Fault::Miscount];
    let mut all: Vec<_> = faults.map(|fault| Scenario::Planted(Plant::Spoiled(fault))).into();
    all.push(Scenario::Planted(Plant::PublishEarly));
    all.extend(of_the_engine().filter(|point| !quick || QUICK.contains(&point.name)).map(Scenario::of));
    if !quick {
        all.extend([
            Scenario::FirstInterval,
            Scenario::FailedCheckpoint,
            Scenario::DiskFull("blob-write-error"),
            Scenario::DiskFull("manifest-write-error"),
            Scenario::TwoAtOnce,
            Scenario::OtherWorkers,
        ]);
    }
    all
}

/// Everything on every backend; a quick run alternates, so that every point is still passed once.
fn backends(scenario: &Scenario, wanted: &Wanted, i: usize, target: Target) -> Vec<Backend> {
    let possible = match scenario.death() {
        Scenario::Point { place: Place::RocksDb, .. } => vec![Backend::Rocksdb],
        _ => vec![Backend::Memory, Backend::Rocksdb],
    };
    let mut chosen: Vec<_> =
        possible.into_iter().filter(|backend| wanted.backend.is_none_or(|only| only == *backend)).collect();
    if wanted.quick {
        if wanted.transactions.is_none() && !is_quick(scenario, i, target) {
            return Vec::new();
        }
        let keep = i % chosen.len().max(1);
        chosen = chosen.into_iter().skip(keep).take(1).collect();
    }
    chosen
}

/// Each scenario of Kafka on one transaction version, each of the engine with a folder or with a table.
fn is_quick(scenario: &Scenario, i: usize, target: Target) -> bool {
    let of_the_engine = matches!(scenario, Scenario::Point { name, .. } if QUICK.contains(name));
    match target {
        Target::Kafka(version) => (i % 3 == 2) == (version == TransactionVersion::V1),
        Target::Files => !of_the_engine || i.is_multiple_of(2),
        Target::Postgres => !of_the_engine || !i.is_multiple_of(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::points::Point;
    use std::collections::BTreeSet;

    fn wanted() -> Wanted {
        Wanted { quick: false, point: None, backend: None, output: None, transactions: None, random_kills: 100 }
    }

    #[test]
    fn a_full_run_kills_a_hundred_times_at_random_for_each_output_and_names_are_unique() {
        let cases = cases(&wanted());
        for output in [Output::Kafka, Output::Files, Output::Postgres] {
            let of_output = cases.iter().filter(|case| case.target.output() == output);
            let kills: u32 = of_output.map(|c| if let Scenario::RandomKills(n) = c.scenario { n } else { 0 }).sum();
            assert!(kills >= 100, "{output:?}: {kills} kills");
        }
        let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn a_quick_run_still_passes_every_point() {
        let cases = cases(&Wanted { quick: true, random_kills: 5, ..wanted() });
        let is_played = |point: &Point, on: &[Output]| {
            let same = |case: &&Case| case.scenario == Scenario::of(point) && on.contains(&case.target.output());
            cases.iter().any(|case| same(&case))
        };
        POINTS.iter().for_each(|point| assert!(is_played(point, &[Output::Kafka]), "{}", point.name));
        FILES.iter().for_each(|point| assert!(is_played(point, &[Output::Files]), "{}", point.name));
        POSTGRES.iter().for_each(|point| assert!(is_played(point, &[Output::Postgres]), "{}", point.name));
        for name in QUICK {
            let point = POINTS.iter().find(|point| point.name == *name).unwrap();
            assert!(is_played(point, &[Output::Files, Output::Postgres]), "{name}");
        }
    }

    #[test]
    fn a_case_has_its_name_and_its_kills_whatever_else_is_played() {
        let all = cases(&wanted());
        let again = Wanted { output: Some(Output::Files), backend: Some(Backend::Rocksdb), ..wanted() };
        let again = cases(&Wanted { point: Some("5-random-kills".into()), ..again });
        let of_all: Vec<_> = all.iter().filter(|case| again.contains(case)).collect();
        assert!(!of_all.is_empty());
        assert!(of_all.iter().zip(&again).all(|(one, other)| one.seed(3) == other.seed(3) && *one == other));
    }

    #[test]
    fn the_windowed_job_dies_at_every_point_it_should() {
        let cases = cases(&wanted());
        for point in WINDOW_POINTS {
            let name = format!("windows-{point}");
            assert!(cases.iter().any(|case| case.scenario.to_string() == name), "{name} is left out");
        }
    }

    #[test]
    fn a_selection_selects() {
        let only = Wanted {
            point: Some("publish-commit-sent".into()),
            backend: Some(Backend::Memory),
            transactions: Some(TransactionVersion::V1),
            ..wanted()
        };
        assert_eq!(cases(&only).len(), 1);
        let files = Wanted { output: Some(Output::Files), transactions: None, ..only };
        assert!(cases(&files).is_empty(), "a folder knows no such point");
    }
}
