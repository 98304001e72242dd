//! Which cases a run plays: pure.

use super::case::{Backend, Case, Plant, Scenario};
use super::points::{POINTS, Place};
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
    /// One transaction version only.
    pub transactions: Option<TransactionVersion>,
    /// SIGKILLs at random times, over all backends and versions.
    pub random_kills: u32,
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
        Scenario::EndOfInput("publish-before-commit"),
        Scenario::FailedCheckpoint,
        Scenario::DiskFull("blob-write-error"),
        Scenario::Planted(Plant::SkipMarker),
    ])
}

/// All cases, grouped by transaction version: one broker each.
pub fn cases(wanted: &Wanted) -> Vec<Case> {
    let mut cases = Vec::new();
    let versions = [TransactionVersion::V2, TransactionVersion::V1];
    for transactions in versions.into_iter().filter(|v| wanted.transactions.is_none_or(|only| only == *v)) {
        for (i, scenario) in scenarios(wanted).into_iter().enumerate() {
            for backend in backends(&scenario, wanted, i, transactions) {
                cases.push(Case::new(scenario.clone(), backend, transactions, cases.len()));
            }
        }
    }
    cases
}

fn scenarios(wanted: &Wanted) -> Vec<Scenario> {
    let mut all: Vec<_> = POINTS.iter().map(Scenario::of).collect();
    all.extend([
        Scenario::EndOfInput("publish-before-commit"),
        Scenario::EndOfInput("complete-before"),
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
    let settings = wanted.backend.map_or(2, |_| 1) * wanted.transactions.map_or(2, |_| 1);
    let random = wanted.random_kills.div_ceil(KILLS_PER_CASE * settings);
    all.extend((0..random).map(|_| Scenario::RandomKills(KILLS_PER_CASE)));
    let with_windows = random.div_ceil(WINDOWS);
    all.extend((0..with_windows).map(|_| Scenario::Windows(Box::new(Scenario::RandomKills(KILLS_PER_CASE)))));
    if let Some(prefix) = &wanted.point {
        all.retain(|scenario| scenario.to_string().starts_with(prefix.as_str()));
    }
    all
}

/// Everything on every backend; a quick run alternates, so that every point is still passed once.
fn backends(scenario: &Scenario, wanted: &Wanted, i: usize, transactions: TransactionVersion) -> Vec<Backend> {
    let possible = match scenario.death() {
        Scenario::Point { place: Place::RocksDb, .. } => vec![Backend::Rocksdb],
        _ => vec![Backend::Memory, Backend::Rocksdb],
    };
    let mut chosen: Vec<_> =
        possible.into_iter().filter(|backend| wanted.backend.is_none_or(|only| only == *backend)).collect();
    if wanted.quick {
        // Each scenario on one version, with one backend: both alternate.
        let on_v1 = i % 3 == 2;
        if on_v1 != (transactions == TransactionVersion::V1) && wanted.transactions.is_none() {
            return Vec::new();
        }
        let keep = i % chosen.len().max(1);
        chosen = chosen.into_iter().skip(keep).take(1).collect();
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn wanted() -> Wanted {
        Wanted { quick: false, point: None, backend: None, transactions: None, random_kills: 100 }
    }

    #[test]
    fn a_full_run_has_more_than_sixty_cases_and_a_hundred_random_kills() {
        let cases = cases(&wanted());
        let kills: u32 = cases.iter().map(|c| if let Scenario::RandomKills(n) = c.scenario { n } else { 0 }).sum();
        assert!(cases.len() >= 60 && kills >= 100, "{} cases, {kills} kills", cases.len());
        let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len(), "names are unique");
    }

    #[test]
    fn a_quick_run_still_passes_every_point() {
        let cases = cases(&Wanted { quick: true, random_kills: 5, ..wanted() });
        for point in POINTS {
            assert!(cases.iter().any(|case| case.scenario.to_string() == point.name), "{} is left out", point.name);
        }
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
    }
}
