//! Sources that have something to read and do not move, and what they wait for: pure, from one picture to the next.

use crate::job::{JobStatus, StageStatus, StandingSource};
use std::collections::BTreeMap;
use std::time::Duration;

/// Shorter than this is no standstill.
const LONG: Duration = Duration::from_secs(5);

/// Looks at a job again and again.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    sources: BTreeMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    records: u64,
    blocked: Duration,
    /// When it last moved, or had nothing to do.
    moved: Duration,
    reported: bool,
}

impl Standstill {
    /// What stands still now; `now` is any steady clock. Each standstill is said once in the log.
    pub(crate) fn look(&mut self, now: Duration, status: &JobStatus) -> Vec<StandingSource> {
        let mut standing = Vec::new();
        for source in &status.sources {
            let Some(stage) = status.stages.iter().find(|stage| stage.name == source.name) else { continue };
            let lag: u64 = source.splits.iter().filter(|split| !split.paused).filter_map(|split| split.lag).sum();
            let blocked = blocked(stage);
            let records = stage.records;
            let fresh = Seen { records, blocked, moved: now, reported: false };
            let seen = self.sources.entry(source.name.clone()).or_insert(fresh);
            let is_blocked = blocked > seen.blocked;
            if records != seen.records || (lag == 0 && !is_blocked) {
                *seen = Seen { records, blocked, moved: now, reported: false };
                continue;
            }
            seen.blocked = blocked;
            let standstill = now.saturating_sub(seen.moved);
            if standstill < LONG {
                continue;
            }
            let waits_for = reason(status, lag, is_blocked);
            if !std::mem::replace(&mut seen.reported, true) {
                tracing::warn!(job = status.job, source = source.name, waits_for, "a source stands still: look there");
            }
            standing.push(StandingSource { source: source.name.clone(), standing: standstill, waits_for });
        }
        standing
    }
}

fn blocked(stage: &StageStatus) -> Duration {
    stage.by_worker.iter().map(|worker| worker.blocked).sum()
}

fn reason(status: &JobStatus, lag: u64, is_blocked: bool) -> String {
    if status.staged_bytes >= status.staging_budget && status.staging_budget > 0 {
        return "a checkpoint: the staging budget is used up".into();
    }
    match is_blocked {
        true => "room behind it: what it has read is not taken".into(),
        false => format!("its connector: {lag} records wait to be read, and none arrives"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{SourceStatus, SplitStatus, WorkerStatus};

    const SECOND: Duration = Duration::from_secs(1);

    fn status(records: u64, lag: u64, blocked: u32) -> JobStatus {
        let mut status = JobStatus::new("job");
        let worker = WorkerStatus { records, blocked: SECOND * blocked, ..WorkerStatus::default() };
        let (name, watermark) = ("orders".to_owned(), None);
        status.stages = vec![StageStatus {
            name: name.clone(),
            workers: 1,
            records,
            watermark,
            is_keyed: false,
            flushing: Duration::ZERO,
            by_worker: vec![worker],
        }];
        let split = SplitStatus {
            split: "orders-0".into(),
            worker: 0,
            watermark: None,
            idle: false,
            paused: false,
            lag: Some(lag),
            position: None,
        };
        status.sources = vec![SourceStatus { name, splits: vec![split] }];
        status.staging_budget = 100;
        status
    }

    fn after(seconds: u32, status: impl Fn(u32) -> JobStatus) -> Vec<StandingSource> {
        let mut standstill = Standstill::default();
        (0..=seconds).map(|second| standstill.look(SECOND * second, &status(second))).last().unwrap_or_default()
    }

    #[test]
    fn records_that_wait_and_never_come() {
        assert!(after(4, |_| status(7, 30, 0)).is_empty());
        let standing = after(41, |_| status(7, 30, 0));
        assert_eq!(standing[0].standing, SECOND * 41);
        assert_eq!(standing[0].waits_for, "its connector: 30 records wait to be read, and none arrives");
    }

    #[test]
    fn a_full_edge_and_a_full_budget_are_told_apart() {
        assert!(after(9, |second| status(7, 0, second))[0].waits_for.starts_with("room behind it"));
        let full = |second| JobStatus { staged_bytes: 100, ..status(7, 0, second) };
        assert!(after(9, full)[0].waits_for.starts_with("a checkpoint"));
    }

    #[test]
    fn a_source_that_moves_or_has_nothing_to_read_does_not_stand() {
        assert!(after(60, |second| status(second.into(), 30, 0)).is_empty());
        assert!(after(60, |_| status(7, 0, 0)).is_empty());
    }
}
