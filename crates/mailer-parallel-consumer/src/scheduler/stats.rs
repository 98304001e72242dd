//! What is counted. Plain numbers with one writer; whoever wants them asks the owner task.

use super::SECOND;
use crate::FailureKind;
use crate::clock::Nanos;
use crate::snapshot::{Counters, Histograms, Second, Stalled};
use std::collections::{BTreeMap, VecDeque};

/// Whole seconds that are kept.
const SECONDS: usize = 15;

#[derive(Debug)]
pub(super) struct Stats {
    pub(super) began: Nanos,
    pub(super) counters: Counters,
    pub(super) histograms: Histograms,
    pub(super) traits: [u64; 64],
    pub(super) trait_names: BTreeMap<u32, String>,
    /// Whole seconds, the newest first.
    pub(super) seconds: VecDeque<Second>,
    now: Second,
    pub(super) stalled: Vec<Stalled>,
    pub(super) broker_bytes: BTreeMap<i32, u64>,
}

impl Stats {
    pub(super) fn new(trait_names: BTreeMap<u32, String>, began: Nanos) -> Self {
        Self {
            began,
            counters: Counters::default(),
            histograms: Histograms::default(),
            traits: [0; 64],
            trait_names,
            seconds: VecDeque::with_capacity(SECONDS),
            now: Second::default(),
            stalled: Vec::new(),
            broker_bytes: BTreeMap::new(),
        }
    }

    pub(super) fn fetched(&mut self, records: u64, bytes: u64, broker: Option<i32>) {
        self.counters.fetched += records;
        self.counters.fetched_bytes += bytes;
        self.now.fetched += records;
        self.now.bytes += bytes;
        if let Some(broker) = broker {
            *self.broker_bytes.entry(broker).or_default() += bytes;
        }
    }

    pub(super) fn completed(&mut self, is_dead_letter: bool, times: u64) {
        self.now.completed += times;
        if is_dead_letter {
            self.counters.dead_lettered += times;
        } else {
            self.counters.succeeded += times;
        }
    }

    pub(super) fn failed(&mut self, kind: FailureKind) {
        self.counters.failed += 1;
        match kind {
            FailureKind::Panic => self.counters.panics += 1,
            FailureKind::Timeout => self.counters.timeouts += 1,
            FailureKind::Error | FailureKind::Rejected => {}
        }
    }

    /// A second is over.
    pub(super) fn second(&mut self) {
        self.seconds.truncate(SECONDS - 1);
        self.seconds.push_front(std::mem::take(&mut self.now));
    }

    pub(super) fn uptime_seconds(&self, now: Nanos) -> f64 {
        (now - self.began) as f64 / SECOND as f64
    }
}
