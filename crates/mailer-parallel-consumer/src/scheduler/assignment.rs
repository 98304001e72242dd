//! Partitions come and go.

use super::fetch::Share;
use super::job::Ref;
use super::{Action, Scheduler};
use crate::Partition;
use crate::clock::Nanos;
use crate::ledger::{Ranges, Seq};
use crate::offset_map::{self, Expected};
use crate::source::Assignment;

impl Scheduler {
    pub(super) fn assigned(&mut self, now: Nanos, assignments: Vec<Assignment>) {
        self.life.joined();
        self.stats.counters.rebalances += u64::from(!assignments.is_empty());
        for assignment in assignments {
            let number = self.number(&assignment.partition);
            if self.lanes[number as usize].is_assigned {
                self.forget(number); // the source says it anew: what was known of it does not count
            }
            let restored = self.restored(&assignment);
            self.lanes[number as usize].assign(assignment, restored);
            self.assigned += 1;
            self.update_user_pause(number);
            if self.life.is_stopping() {
                self.begin_drain(now, number, false);
            }
        }
        self.update_all_pressure();
    }

    /// What the commit's metadata says to be complete above its offset, if it can be believed.
    fn restored(&mut self, assignment: &Assignment) -> Ranges {
        let Some(log_end) = assignment.log_end.filter(|_| self.options.commit.offset_map) else {
            return Ranges::default();
        };
        let expected = Expected { topic_id: assignment.topic_id, base: assignment.position, log_end };
        offset_map::decode(&assignment.metadata, &expected).unwrap_or_else(|why| {
            self.stats.counters.maps_ignored += 1;
            tracing::warn!(
                partition = %assignment.partition, offset = assignment.position, %why,
                "the metadata of the commit is ignored: records behind it that were complete are handled again"
            );
            Ranges::default()
        })
    }

    /// The group asks for partitions back: only these are drained.
    pub(super) fn revoked(&mut self, now: Nanos, partitions: &[Partition]) {
        self.stats.counters.rebalances += 1;
        let deadline = now + crate::clock::nanos(self.options.drain_timeout);
        for partition in partitions {
            match self.assigned_number(partition) {
                Some(number) => self.begin_drain_until(number, deadline, true),
                None => self.actions.push(Action::Release(partition.clone())),
            }
        }
        if self.is_planted_drain_all() {
            (0..self.lanes.len() as u32).for_each(|number| self.begin_drain_until(number, deadline, false));
        }
        self.end_drains(now);
    }

    /// Another member has them already: no waiting, no commit.
    pub(super) fn lost(&mut self, now: Nanos, partitions: &[Partition]) {
        self.stats.counters.rebalances += 1;
        for partition in partitions {
            if let Some(number) = self.assigned_number(partition) {
                self.forget(number);
            }
        }
        self.end_drains(now);
    }

    /// The position was not in the log. Forward is a gap; backward is another log. A partition on its way out is not
    /// concerned: it fetches nothing, and its ledger ends where it was cut.
    pub(super) fn reset(&mut self, partition: &Partition, position: i64) {
        let Some(number) = self.assigned_number(partition) else { return };
        let lane = &mut self.lanes[number as usize];
        tracing::warn!(%partition, from = lane.ledger.next_offset(), to = position, "the position was reset");
        if lane.drain.is_some() {
            return;
        }
        if position >= lane.ledger.next_offset() {
            lane.ledger.advance(position);
            lane.commit.is_dirty = true;
            return;
        }
        let (topic_id, log_end, is_paused) = (lane.topic_id, lane.log_end, lane.is_paused);
        self.forget(number);
        let (partition, metadata) = (partition.clone(), String::new());
        let assignment = Assignment { partition, topic_id, position, metadata, log_end };
        self.assigned += 1;
        let lane = &mut self.lanes[number as usize];
        lane.assign(assignment, Ranges::default());
        (lane.is_paused, lane.commit.is_dirty) = (is_paused, true);
        self.update_all_pressure();
    }

    /// Drops everything of an assignment. Handlers that run are told, and what they answer changes nothing.
    pub(super) fn forget(&mut self, number: u32) {
        let lane = &self.lanes[number as usize];
        if lane.running > 0 {
            self.actions.push(Action::Cancel(number));
        }
        let first = lane.ledger.window().start;
        self.stats.counters.dropped += lane.ledger.incomplete();
        self.assigned -= 1;
        self.draining -= usize::from(lane.drain.is_some());
        self.drop_waiting(number, first);
        self.lanes[number as usize].unassign();
        self.update_all_pressure();
    }

    /// Takes the records from `from` on that wait in key queues out of them and out of memory.
    pub(super) fn drop_waiting(&mut self, number: u32, from: Seq) {
        let lane = &mut self.lanes[number as usize];
        let epoch = lane.epoch;
        let waiting: Vec<(Seq, u64)> = lane
            .slots
            .iter()
            .filter(|(seq, s)| *seq >= from && s.record.is_some())
            .map(|(seq, s)| (seq, s.queue))
            .collect();
        let mut queues: Vec<u64> = waiting.iter().map(|(_, queue)| *queue).collect();
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            let stays = |r: Ref| (r.lane, r.epoch) != (number, epoch) || r.seq < from;
            if let Some(head) = self.queues.retain(&mut self.lanes, queue, stays) {
                self.lanes[head.lane as usize].ready.push_back(queue);
                self.enter_ring(head.lane);
            }
        }
        let lane = &mut self.lanes[number as usize];
        for (seq, _) in waiting {
            if let Some((bytes, _)) = lane.slots.remove(seq) {
                lane.buffered_records -= 1;
                lane.buffered_bytes -= bytes;
            }
            lane.failures.remove(&seq);
        }
    }

    /// The share of each partition has changed.
    pub(super) fn update_all_pressure(&mut self) {
        self.share = Share::of(&self.options, self.assigned);
        for number in 0..self.lanes.len() as u32 {
            if self.lanes[number as usize].is_assigned {
                self.update_pressure(number);
            }
        }
    }
}
