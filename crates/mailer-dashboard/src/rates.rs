//! What happened between two looks at a job, per second: pure.

use mailer_runtime::{EdgeStatus, JobStatus, StageStatus, WorkerStatus};
use std::time::Duration;

/// The last two looks.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    before: Option<(Duration, JobStatus)>,
    now: Option<(Duration, JobStatus)>,
}

/// How a worker spent its time since the look before, as shares from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    pub(crate) busy: f64,
    pub(crate) waiting: f64,
    pub(crate) blocked: f64,
}

impl Rates {
    /// `at` is any steady clock.
    pub(crate) fn note(&mut self, at: Duration, status: &JobStatus) {
        self.before = self.now.replace((at, status.clone()));
    }

    fn passed(&self) -> Option<(f64, &JobStatus)> {
        let ((then, before), (now, _)) = (self.before.as_ref()?, self.now.as_ref()?);
        let passed = now.saturating_sub(*then).as_secs_f64();
        (passed > 0.0).then_some((passed, before))
    }

    /// `None` at the first look, and after a restart, where counting begins anew.
    fn rate(&self, now: u64, before: impl Fn(&JobStatus) -> Option<u64>) -> Option<f64> {
        let (passed, status) = self.passed()?;
        let before = before(status)?;
        (now >= before).then(|| (now - before) as f64 / passed)
    }

    pub(crate) fn stage(&self, stage: &StageStatus) -> Option<f64> {
        self.rate(stage.records, |before| Some(same_stage(before, stage)?.records))
    }

    pub(crate) fn worker(&self, stage: &StageStatus, number: usize) -> Option<f64> {
        let records = stage.by_worker.get(number)?.records;
        self.rate(records, |before| Some(same_stage(before, stage)?.by_worker.get(number)?.records))
    }

    pub(crate) fn edge(&self, edge: &EdgeStatus) -> Option<f64> {
        self.rate(edge.records, |before| Some(same_edge(before, edge)?.records))
    }

    pub(crate) fn sink(&self, name: &str, records: u64) -> Option<f64> {
        let same = |before: &JobStatus| before.sinks.iter().find(|sink| sink.name == name).map(|sink| sink.records);
        self.rate(records, same)
    }

    /// How near an edge is to its bounds, from 0 to 1: what is in it now, or nearly full when it refused meanwhile.
    pub(crate) fn pressure(&self, edge: &EdgeStatus) -> f64 {
        let refused = self.rate(edge.refused, |before| Some(same_edge(before, edge)?.refused));
        let least = if refused.is_some_and(|refused| refused > 0.0) { 0.9 } else { 0.0 };
        edge.fullness().max(least)
    }

    pub(crate) fn shares(&self, stage: &StageStatus, number: usize) -> Option<Shares> {
        let (passed, before) = self.passed()?;
        let (new, old) = (stage.by_worker.get(number)?, same_stage(before, stage)?.by_worker.get(number)?);
        let share = |of: fn(&WorkerStatus) -> Duration| {
            of(new).checked_sub(of(old)).map(|spent| (spent.as_secs_f64() / passed).min(1.0))
        };
        Some(Shares {
            busy: share(|worker| worker.busy)?,
            waiting: share(|worker| worker.waiting)?,
            blocked: share(|worker| worker.blocked)?,
        })
    }
}

fn same_stage<'a>(before: &'a JobStatus, stage: &StageStatus) -> Option<&'a StageStatus> {
    before.stages.iter().find(|same| same.name == stage.name)
}

fn same_edge<'a>(before: &'a JobStatus, edge: &EdgeStatus) -> Option<&'a EdgeStatus> {
    before.edges.iter().find(|same| same.name == edge.name)
}
