//! A partition on its way out: what has begun is finished, with what lies before it, and committed. Nothing else waits.
//!
//! Records behind the last one that was ever started are dropped: they were never handled, so whoever has the partition
//! next handles them first. Records *before* it still run, though they had not been started: without them the commit
//! could not move past them, and what is complete behind them would be repeated.

use super::lane::Drain;
use super::{Action, Scheduler};
use crate::clock::Nanos;
use crate::ledger::Ranges;

impl Scheduler {
    pub(super) fn begin_drain(&mut self, now: Nanos, number: u32, is_revoked: bool) {
        let deadline = self.life.stop_deadline().unwrap_or(now);
        self.begin_drain_until(number, deadline, is_revoked);
    }

    pub(super) fn begin_drain_until(&mut self, number: u32, deadline: Nanos, is_revoked: bool) {
        let lane = &mut self.lanes[number as usize];
        if !lane.is_assigned {
            return;
        }
        if let Some(drain) = &mut lane.drain {
            drain.deadline = drain.deadline.min(deadline);
            drain.is_revoked |= is_revoked;
            return;
        }
        lane.drain = Some(Drain { deadline, is_revoked });
        self.draining += 1;
        self.cut(number);
        self.enter_ring(number);
    }

    /// Forgets what was fetched and never started.
    fn cut(&mut self, number: u32) {
        let lane = &self.lanes[number as usize];
        let window = lane.ledger.window();
        let from = lane.ledger.next_incomplete(lane.started); // not one that the offset map knew to be complete
        if from == window.end {
            return;
        }
        let offset = lane.ledger.offset(from);
        self.drop_waiting(number, from);
        let lane = &mut self.lanes[number as usize];
        let claims = lane.ledger.completed().filter(|range| range.end > offset);
        let claims: Vec<_> = claims.map(|range| range.start.max(offset)..range.end).collect();
        let later = lane.restored.from(lane.ledger.next_offset());
        let restored: Ranges = claims.into_iter().chain(later).collect();
        let before = lane.ledger.incomplete();
        lane.ledger.truncate(from);
        lane.restored = restored;
        self.stats.counters.dropped += before - lane.ledger.incomplete();
    }

    /// Releases partitions that are drained and committed, and those whose time is over.
    pub(super) fn end_drains(&mut self, now: Nanos) {
        if self.draining == 0 {
            return;
        }
        for number in 0..self.lanes.len() as u32 {
            let Some(drain) = self.lanes[number as usize].drain else { continue };
            if self.lanes[number as usize].is_drained() {
                self.commit(now, number);
            }
            let lane = &self.lanes[number as usize];
            let is_done = lane.is_drained() && lane.commit.in_flight.is_none() && !lane.commit.is_dirty;
            let is_done = is_done || self.is_planted_hasty_stop();
            if is_done || drain.deadline <= now {
                self.release(now, number, drain.is_revoked, is_done);
            }
        }
    }

    /// Gives a partition back. If its time was over before, what is complete is committed, and the rest is another
    /// member's.
    fn release(&mut self, now: Nanos, number: u32, is_revoked: bool, is_done: bool) {
        let lane = &mut self.lanes[number as usize];
        let (partition, running) = (lane.partition.clone(), lane.running);
        if !is_done {
            tracing::warn!(%partition, running, "given back unfinished: some records will be delivered again");
            lane.commit.not_before = now;
            self.life.left_unfinished(running);
            self.commit(now, number);
        }
        self.forget(number);
        if is_revoked {
            self.actions.push(Action::Release(partition));
        }
    }
}
