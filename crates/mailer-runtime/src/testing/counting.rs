//! What the engine counts, without the engine: for the bench of what watching costs.

use crate::edge::Meter;
use crate::job::counters::{Spent, StageMeter};
use mailer_core::{Clock, SystemClock};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts as a source, an edge, a stage and its sink do, with the same counters and looks at the clock.
///
/// ```
/// use mailer_runtime::testing::Counting;
/// let counting = Counting::default();
/// counting.batch(1_000, 64_000); // what one batch costs on its way
/// assert_eq!(counting.records(), 1_000);
/// ```
#[derive(Debug, Default)]
pub struct Counting {
    source: StageMeter,
    edge: Meter,
    stage: StageMeter,
    sink: AtomicU64,
    clock: SystemClock,
}

impl Counting {
    /// One batch passes.
    #[inline(never)]
    pub fn batch(&self, records: usize, bytes: usize) {
        let began = self.clock.monotonic();
        self.source.count(records);
        self.edge.offer(bytes);
        self.edge.accept(records);
        let read = self.clock.monotonic();
        self.source.spend(Spent::Busy, read.saturating_sub(began));
        self.edge.take(bytes);
        self.stage.count(records);
        self.sink.fetch_add(records as u64, Relaxed);
        self.stage.spend(Spent::Busy, self.clock.monotonic().saturating_sub(read));
    }

    /// Records that have reached the sink.
    pub fn records(&self) -> u64 {
        self.sink.load(Relaxed)
    }
}
