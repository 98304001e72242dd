//! Which stage is slow, from two pictures of a job: pure arithmetic.
//!
//! Backpressure runs upstream, so what is slow is the last stage that is kept waiting by nothing behind it: itself busy,
//! or waiting for its sink, while its input is full. Where nothing is full the job keeps up, or its source is the limit.

use crate::job::{EdgeStatus, JobStatus, StageStatus, WorkerStatus};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// An edge filled to this share, or one that refused, counts as full.
const FULL: f64 = 0.8;
/// A share of the time above which a stage counts as held up.
const HELD_UP: f64 = 0.5;
/// Stages that share a thread are the limit together from this share of its time on.
const SATURATED: f64 = 0.9;
/// A worker that takes this many times its even share is skewed.
const SKEWED: f64 = 1.5;
/// Fewer records in an interval say nothing about skew.
const ENOUGH_RECORDS: u64 = 1_000;

/// Where the time goes.
///
/// ```
/// use mailer_runtime::{Bottleneck, Limit};
/// use std::time::Duration;
///
/// let bottleneck = Bottleneck {
///     stage: "totals".into(),
///     limit: Limit::Work,
///     busy: 0.97,
///     full_for: Some(Duration::from_secs(41)),
///     workers: 4,
///     skew: Some((2, 0.61)),
/// };
/// let sentence = "`totals` is the bottleneck: busy 97 %, its input has been full for 41 s; 4 workers, keys skewed: \
///                 worker 2 takes 61 %";
/// assert_eq!(bottleneck.to_string(), sentence);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// The stage, by its name in the plan.
    pub stage: String,
    /// What it spends its time on.
    pub limit: Limit,
    /// The share of the time in which its busiest worker works, from 0 to 1.
    pub busy: f64,
    /// How long its input has been full.
    pub full_for: Option<Duration>,
    /// Its workers.
    pub workers: u16,
    /// The worker that takes more than its share, and what share it takes; only where keys decide.
    pub skew: Option<(u16, f64)>,
}

/// What a bottleneck spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Its own work: its operators, or reading in a source.
    Work,
    /// Its sink takes no more for the moment.
    Sink,
    /// Exactly-once output that waits for the next checkpoint has used up its budget.
    Staging,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is the bottleneck: ", self.stage)?;
        match self.limit {
            Limit::Work => write!(f, "busy {:.0} %", self.busy * 100.0)?,
            Limit::Sink => write!(f, "waiting for its sink, busy {:.0} %", self.busy * 100.0)?,
            Limit::Staging => f.write_str("its output waits for a checkpoint and the staging budget is used up")?,
        }
        if let Some(time) = self.full_for {
            write!(f, ", its input has been full for {} s", time.as_secs())?;
        }
        if self.workers > 1 {
            write!(f, "; {} workers", self.workers)?;
        }
        match self.skew {
            Some((worker, share)) => write!(f, ", keys skewed: worker {worker} takes {:.0} %", share * 100.0),
            None => Ok(()),
        }
    }
}

/// Looks at a job again and again.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    last: Option<Picture>,
    /// Since when each edge has been full.
    full_since: BTreeMap<String, Duration>,
}

/// What is kept of a status.
#[derive(Debug)]
struct Picture {
    at: Duration,
    stages: Vec<StageStatus>,
    refused: BTreeMap<String, u64>,
}

impl Watch {
    /// What has been slow since the last look; `now` is any steady clock.
    pub(crate) fn look(&mut self, now: Duration, status: &JobStatus) -> Option<Bottleneck> {
        let refused = status.edges.iter().map(|edge| (edge.name.clone(), edge.refused)).collect();
        let last = self.last.replace(Picture { at: now, stages: status.stages.clone(), refused })?;
        let passed = now.saturating_sub(last.at).as_secs_f64();
        // After a restart the counters begin anew, and another plan cannot be compared.
        if passed <= 0.0 || !is_continued(&last.stages, &status.stages) {
            self.full_since.clear();
            return None;
        }
        self.note_full(now, status, &last.refused);
        let shares: Vec<_> =
            last.stages.iter().zip(&status.stages).map(|(old, new)| StageShares::of(old, new, passed)).collect();
        self.slowest(now, status, &shares)
    }

    fn note_full(&mut self, now: Duration, status: &JobStatus, refused: &BTreeMap<String, u64>) {
        for edge in &status.edges {
            let has_refused = refused.get(&edge.name).is_some_and(|before| edge.refused > *before);
            if has_refused || edge.fullness() >= FULL {
                self.full_since.entry(edge.name.clone()).or_insert(now);
            } else {
                self.full_since.remove(&edge.name);
            }
        }
    }

    fn slowest(&self, now: Duration, status: &JobStatus, shares: &[StageShares]) -> Option<Bottleneck> {
        let is_full = |edge: &&EdgeStatus| self.full_since.contains_key(&edge.name);
        let stages = || status.stages.iter().zip(shares);
        let behind =
            |stage: &StageStatus| status.edges.iter().filter(|edge| edge.from == stage.name).any(|e| is_full(&e));
        let before = |stage: &StageStatus| status.edges.iter().filter(|edge| edge.to == stage.name).find(is_full);
        // Held up by what is no edge: a sink, or the budget.
        let held_up = stages().find(|(stage, shares)| shares.blocked >= HELD_UP && !behind(stage));
        // Full in front, free behind.
        let full = || stages().find(|(stage, _)| before(stage).is_some() && !behind(stage));
        let saturated = || {
            let busiest = stages().max_by(|(_, one), (_, other)| one.busy.total_cmp(&other.busy));
            busiest.filter(|_| stages().map(|(_, shares)| shares.busy).sum::<f64>() >= SATURATED)
        };
        let (stage, shares) = held_up.or_else(full).or_else(saturated)?;
        let full_for = before(stage).and_then(|edge| self.full_since.get(&edge.name)).map(|since| now - *since);
        let limit = match held_up.is_some() {
            false => Limit::Work,
            true if status.staged_bytes >= status.staging_budget => Limit::Staging,
            true => Limit::Sink,
        };
        let (busy, skew) = (shares.busy, shares.skew);
        Some(Bottleneck { stage: stage.name.clone(), limit, busy, full_for, workers: stage.workers, skew })
    }
}

fn is_continued(old: &[StageStatus], new: &[StageStatus]) -> bool {
    let continues = |(old, new): (&StageStatus, &StageStatus)| {
        old.name == new.name && old.workers == new.workers && old.records <= new.records
    };
    old.len() == new.len() && old.iter().zip(new).all(continues)
}

/// What a stage did between two pictures.
#[derive(Debug)]
struct StageShares {
    /// Of its busiest worker.
    busy: f64,
    /// Of its most blocked worker.
    blocked: f64,
    skew: Option<(u16, f64)>,
}

impl StageShares {
    fn of(old: &StageStatus, new: &StageStatus, passed: f64) -> Self {
        let share = |of: fn(&WorkerStatus) -> Duration| {
            let workers = old.by_worker.iter().zip(&new.by_worker);
            let shares = workers.map(|(old, new)| of(new).saturating_sub(of(old)).as_secs_f64() / passed);
            shares.fold(0.0, f64::max).min(1.0)
        };
        Self { busy: share(|worker| worker.busy), blocked: share(|worker| worker.blocked), skew: skew(old, new) }
    }
}

fn skew(old: &StageStatus, new: &StageStatus) -> Option<(u16, f64)> {
    let taken = |(old, new): (&WorkerStatus, &WorkerStatus)| new.records.saturating_sub(old.records);
    let taken: Vec<u64> = old.by_worker.iter().zip(&new.by_worker).map(taken).collect();
    let all: u64 = taken.iter().sum();
    if taken.len() < 2 || all < ENOUGH_RECORDS || !new.is_keyed {
        return None;
    }
    let (worker, most) = taken.iter().enumerate().max_by_key(|(_, records)| **records)?;
    let share = *most as f64 / all as f64;
    (share * taken.len() as f64 >= SKEWED).then_some((worker as u16, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Busy, blocked in percent and records of each worker, after each second.
    type Worker = (u32, u32, u64);

    fn stage(name: &str, second: u32, workers: &[Worker]) -> StageStatus {
        let worker = |&(busy, blocked, records): &Worker| WorkerStatus {
            records: records * u64::from(second),
            busy: SECOND * busy * second / 100,
            blocked: SECOND * blocked * second / 100,
            ..WorkerStatus::default()
        };
        let by_worker: Vec<_> = workers.iter().map(worker).collect();
        StageStatus {
            name: name.into(),
            workers: workers.len() as u16,
            records: by_worker.iter().map(|worker| worker.records).sum(),
            watermark: None,
            is_keyed: name == "totals",
            flushing: Duration::ZERO,
            by_worker,
        }
    }

    fn edge(from: &str, to: &str, filled: usize) -> EdgeStatus {
        EdgeStatus {
            name: format!("{from}→{to}"),
            from: from.into(),
            to: to.into(),
            batches: 0,
            capacity_batches: 8,
            bytes: filled,
            capacity_bytes: 100,
            records: 0,
            refused: 0,
            blocked: Duration::ZERO,
        }
    }

    /// What is said after `seconds` in which nothing changes.
    fn said(seconds: u32, stages: &[(&str, &[Worker])], edges: &[EdgeStatus], staged: usize) -> Option<String> {
        let (mut watch, mut said) = (Watch::default(), None);
        for second in 0..=seconds {
            let mut status = JobStatus::new("job");
            status.stages = stages.iter().map(|(name, workers)| stage(name, second, workers)).collect();
            status.edges = edges.to_vec();
            (status.staged_bytes, status.staging_budget) = (staged, 100);
            said = watch.look(SECOND * second, &status);
        }
        said.map(|bottleneck| bottleneck.to_string())
    }

    #[test]
    fn a_full_edge_in_front_and_none_behind() {
        let stages: [(&str, &[Worker]); 3] =
            [("orders", &[(20, 80, 9)]), ("totals", &[(97, 0, 9)]), ("out", &[(5, 0, 9)])];
        let edges = [edge("orders", "totals", 100), edge("totals", "out", 10)];
        let expected = "`totals` is the bottleneck: busy 97 %, its input has been full for 40 s";
        assert_eq!(said(41, &stages, &edges, 0).as_deref(), Some(expected));
    }

    #[test]
    fn skewed_keys_are_named() {
        let workers: &[Worker] = &[(30, 0, 1_000), (31, 0, 1_100), (97, 0, 6_100), (30, 0, 1_800)];
        let stages: [(&str, &[Worker]); 2] = [("orders", &[(20, 80, 9)]), ("totals", workers)];
        let said = said(2, &stages, &[edge("orders", "totals", 90)], 0).unwrap();
        assert!(said.ends_with("full for 1 s; 4 workers, keys skewed: worker 2 takes 61 %"), "{said}");
    }

    #[test]
    fn a_sink_that_takes_nothing_holds_up_its_stage_and_those_before() {
        let stages: [(&str, &[Worker]); 2] = [("orders", &[(2, 97, 9)]), ("totals", &[(3, 96, 9)])];
        let edges = [edge("orders", "totals", 100)];
        let expected = "`totals` is the bottleneck: waiting for its sink, busy 3 %, its input has been full for 0 s";
        assert_eq!(said(1, &stages, &edges, 0).as_deref(), Some(expected));
    }

    #[test]
    fn a_budget_that_is_used_up_is_told_from_a_slow_sink() {
        let stages: [(&str, &[Worker]); 1] = [("orders", &[(2, 97, 9)])];
        let said = said(1, &stages, &[], 100).unwrap();
        assert!(said.contains("the staging budget is used up"), "{said}");
    }

    #[test]
    fn the_busiest_of_a_full_thread() {
        let stages: [(&str, &[Worker]); 2] = [("orders", &[(35, 0, 9)]), ("totals", &[(60, 0, 9)])];
        let said = said(1, &stages, &[edge("orders", "totals", 30)], 0).unwrap();
        assert_eq!(said, "`totals` is the bottleneck: busy 60 %");
    }

    #[test]
    fn a_job_that_keeps_up_has_none() {
        let stages: [(&str, &[Worker]); 2] = [("orders", &[(10, 0, 9)]), ("totals", &[(20, 0, 9)])];
        assert_eq!(said(3, &stages, &[edge("orders", "totals", 5)], 0), None);
    }

    #[test]
    fn a_restart_begins_anew() {
        let (mut watch, mut status) = (Watch::default(), JobStatus::new("job"));
        status.stages = vec![stage("totals", 9, &[(97, 0, 9)])];
        assert_eq!(watch.look(SECOND, &status), None);
        status.stages = vec![stage("totals", 1, &[(97, 0, 9)])];
        assert_eq!(watch.look(SECOND * 2, &status), None);
    }
}
