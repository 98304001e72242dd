//! A checkpoint on its way: frozen parts whose jobs have not all run.

use super::run::Model;
use crate::testing::Rng;
use crate::{SnapshotJob, SnapshotPart};
use mailer_core::Result;

/// The jobs of one checkpoint, and what their parts must hold.
#[derive(Default)]
pub(super) struct Pending {
    jobs: Vec<SnapshotJob>,
    frozen: Model,
}

impl Pending {
    pub(super) fn add(&mut self, job: SnapshotJob, contents: Model) {
        self.jobs.push(job);
        self.frozen.extend(contents);
    }

    /// Runs the jobs in random order. An abandoned checkpoint leaves some of them out, and has no parts.
    pub(super) fn run_jobs(mut self, abandon: bool, rng: &mut Rng) -> Result<Option<(Vec<SnapshotPart>, Model)>> {
        let left_out = if abandon { 1 + rng.below(self.jobs.len()) } else { 0 };
        let mut parts = Vec::new();
        while self.jobs.len() > left_out {
            let job = self.jobs.swap_remove(rng.below(self.jobs.len()));
            parts.push(job()?);
        }
        Ok((!abandon).then_some((parts, self.frozen)))
    }
}
