//! The examination of a state backend: random work on it and on a map, until they differ.
//!
//! A new backend is one call away from being trusted:
//!
//! ```
//! # use mailer_state::{conformance, testing::FolderBlobs, StateBackend};
//! # fn example(make_backend: impl Fn() -> Box<dyn StateBackend>, folder: &std::path::Path) {
//! conformance::check(make_backend, |seed| std::sync::Arc::new(FolderBlobs::new(folder.join(seed.to_string()))));
//! # }
//! ```
//!
//! What is examined: reads and scans see all earlier writes, over every mixture of pending, snapshotted, linked and
//! restored changes; empty and large values; a part frozen by `snapshot` holds exactly what was written before it; jobs
//! that run late, in another order, or never; checkpoints abandoned before `link`, or
//! failed by the blob store; several stores, of operators that
//! share key groups; and restarts from any linked snapshot, with the groups split among another number of stores, while
//! the owner before is perhaps still alive.

mod checkpoint;
mod faulty;
mod run;

use crate::StateBackend;
use mailer_core::BlobStore;
use run::Run;
use std::ops::Range;
use std::sync::Arc;

/// How many seeds [`check`] tries.
const SEEDS: Range<u64> = 0..24;

/// Examines a backend; panics with the seed and the step when it differs from a map. `blobs_factory` gets the seed and
/// makes an empty blob store; `backend_factory` is called at every restart.
pub fn check(backend_factory: impl Fn() -> Box<dyn StateBackend>, blobs_factory: impl Fn(u64) -> Arc<dyn BlobStore>) {
    for seed in SEEDS {
        check_seed(seed, &backend_factory, blobs_factory(seed));
    }
}

/// One seed of [`check`]: to repeat a failure, or to try more of them.
pub fn check_seed(seed: u64, backend_factory: &dyn Fn() -> Box<dyn StateBackend>, blobs: Arc<dyn BlobStore>) {
    let mut run = Run::start(seed, backend_factory, blobs);
    for _ in 0..120 {
        run.step();
    }
}
