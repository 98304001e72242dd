//! The pipeline under test: a source of several splits, a branch, a keyed aggregate, two exactly-once targets.

use super::log::{Entry, ModelLog};
use super::storage::SimStorage;
use super::trickle::Trickle;
use mailer_runtime::Env;
use mailer_runtime::testing::Mutations;
use std::time::Duration;

/// Records that are read.
pub const RECORDS: u64 = 1_500;
/// Different keys.
pub const KEYS: u64 = 13;
/// Workers of every stage.
pub const WORKERS: u16 = 2;

/// The key of record `n`.
pub fn key(n: u64) -> u64 {
    n * 7_919 % KEYS
}

/// Counts per key to `counts`, and copies every record to `copies`.
pub fn build(storage: &SimStorage, counts: &ModelLog, copies: &ModelLog, mutations: Mutations) -> Env {
    let env = Env::new("simulated")
        .workers(WORKERS)
        .checkpointing(Duration::from_millis(3), storage.clone())
        .checkpoint_timeout(Duration::from_millis(40))
        .tolerable_failures(1_000)
        .edge_capacity(2, 4_096)
        .staging_budget(2_000)
        .plant(mutations);
    let numbers = env.source("numbers", Trickle { records: RECORDS });
    numbers
        .clone()
        .key_by(|n| key(*n))
        .aggregate("counts", || 0u64, |count, _| *count += 1, |key, count| Entry { key: *key, value: *count })
        .sink("counts-out", counts.clone());
    numbers.map(|n| Entry { key: key(n), value: n }).sink("copies-out", copies.clone());
    env
}
