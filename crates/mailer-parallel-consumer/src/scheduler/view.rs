//! The scheduler as a [`Snapshot`].

use super::lane::Lane;
use super::{SECOND, Scheduler};
use crate::clock::{Nanos, nanos};
use crate::snapshot::{Concurrency, PartitionSnapshot, Snapshot, Stalled};
use crate::traits::FRAMEWORK_NAMES;
use std::collections::BTreeMap;

/// Ranges of completed offsets that a snapshot shows of a partition.
const SHOWN_RANGES: usize = 20;

impl Scheduler {
    pub(crate) fn snapshot(&self, now: Nanos) -> Snapshot {
        let assigned = || self.lanes.iter().filter(|lane| lane.is_assigned);
        Snapshot {
            service: self.options.service.clone(),
            team: self.options.team.clone(),
            phase: self.phase(),
            is_standby: self.phase() == crate::Phase::Running && assigned().next().is_none(),
            uptime_seconds: self.stats.uptime_seconds(now),
            poll_error: self.life.poll_error().map(str::to_owned),
            counters: self.stats.counters,
            concurrency: self.concurrency(),
            throughput: self.stats.seconds.iter().copied().collect(),
            partitions: assigned().map(|lane| partition(lane, now)).collect(),
            traits: self.traits(),
            stalled: self.stats.stalled.clone(),
            broker_bytes: self.stats.broker_bytes.clone(),
            histograms: self.stats.histograms.clone(),
        }
    }

    fn concurrency(&self) -> Concurrency {
        let sum = |of: fn(&Lane) -> usize| self.lanes.iter().map(of).sum();
        Concurrency {
            limit: self.options.max_in_flight,
            in_flight: self.in_flight,
            dead_letters_in_flight: self.letters_in_flight,
            backing_off: self.backoffs.len(),
            keys: self.queues.len(),
            buffered_records: sum(|lane| lane.buffered_records),
            buffered_bytes: sum(|lane| lane.buffered_bytes),
            ledger_bytes: sum(|lane| lane.ledger.heap_bytes() + lane.slots.heap_bytes()),
        }
    }

    fn traits(&self) -> BTreeMap<String, u64> {
        let name = |bit: usize| match (FRAMEWORK_NAMES.get(bit), self.stats.trait_names.get(&(bit as u32))) {
            (Some(name), _) => Some((*name).to_owned()),
            (None, Some(name)) => Some(name.clone()),
            (None, None) => (self.stats.traits[bit] > 0).then(|| format!("application_{bit}")),
        };
        (0..64).filter_map(|bit| Some((name(bit)?, self.stats.traits[bit]))).collect()
    }

    /// Attempts that run longer than the stall limit.
    pub(super) fn find_stalled(&self, now: Nanos) -> Vec<Stalled> {
        let limit = nanos(self.options.stall_limit);
        let mut stalled = Vec::new();
        for lane in self.lanes.iter().filter(|lane| lane.running > 0) {
            for (seq, slot) in lane.slots.iter() {
                let Some(ran) = slot.started.map(|started| now - started).filter(|ran| *ran > limit) else { continue };
                stalled.push(Stalled {
                    topic: lane.partition.topic.to_string(),
                    partition: lane.partition.index,
                    offset: lane.ledger.offset(seq),
                    seconds: ran as f64 / SECOND as f64,
                });
            }
        }
        stalled
    }
}

fn partition(lane: &Lane, now: Nanos) -> PartitionSnapshot {
    let position = lane.ledger.position();
    let oldest = lane.ledger.first_incomplete().and_then(|seq| lane.slots.get(seq));
    let ranges = lane.ledger.completed().take(SHOWN_RANGES);
    PartitionSnapshot {
        topic: lane.partition.topic.to_string(),
        partition: lane.partition.index,
        state: state(lane),
        position,
        committed: lane.commit.acknowledged,
        next_fetch: lane.ledger.next_offset(),
        log_end: lane.log_end,
        lag: lane.log_end.map(|end| (end - position).max(0)),
        incomplete: lane.ledger.incomplete(),
        completed_ahead: lane.ledger.ahead(),
        completed_ranges: ranges.map(|range| (range.start, range.end)).collect(),
        oldest_uncommitted_seconds: oldest.map(|slot| (now - slot.first_seen) as f64 / SECOND as f64),
        buffered_records: lane.buffered_records,
        buffered_bytes: lane.buffered_bytes,
        received_bytes: lane.received_bytes,
        broker: lane.broker,
        is_committing: lane.commit.in_flight.is_some(),
    }
}

fn state(lane: &Lane) -> &'static str {
    match lane.pauses {
        _ if lane.drain.is_some() => "draining",
        pauses if pauses.user => "user",
        pauses if pauses.window => "window",
        pauses if pauses.buffer => "buffer",
        _ => "active",
    }
}
