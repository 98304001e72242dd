//! Offsets and their maps go to the broker, one at a time for a partition, never backwards.

use super::{Action, Scheduler};
use crate::Partition;
use crate::clock::Nanos;
use crate::offset_map;
use crate::source::{CommitError, CommitErrorKind, OffsetCommit};

/// Below this a map is not worth a trial.
const SMALLEST_MAP: usize = 64;
/// Before a failed commit is tried again.
const RETRY: Nanos = 900_000_000;

impl Scheduler {
    /// Commits a partition, if there is something new and no commit is under way.
    pub(super) fn commit(&mut self, now: Nanos, number: u32) {
        let lane = &self.lanes[number as usize];
        let is_due = lane.commit.is_dirty && lane.commit.not_before <= now;
        if !lane.is_assigned || !is_due || lane.commit.in_flight.is_some() {
            return;
        }
        let offset = self.commit_offset(number);
        let map = self.map(number, offset);
        let commit = &mut self.lanes[number as usize].commit;
        commit.is_dirty = false;
        if commit.acknowledged == Some(offset) && commit.map == map {
            return;
        }
        commit.floor = offset;
        commit.in_flight = Some((offset, map.clone()));
        self.stats.counters.maps_written += u64::from(!map.is_empty());
        let partition = self.lanes[number as usize].partition.clone();
        self.actions.push(Action::Commit(OffsetCommit { partition, offset, metadata: map }));
    }

    fn commit_offset(&self, number: u32) -> i64 {
        let lane = &self.lanes[number as usize];
        if self.is_planted_commit_fetched() {
            return lane.ledger.next_offset();
        }
        if self.is_planted_commit_back() && lane.commit.floor % 7 == 3 {
            return lane.commit.floor - 1;
        }
        let position = match lane.ledger.first_incomplete() {
            Some(_) => lane.ledger.position(),
            // What comes next may be complete already, though it was not fetched again.
            None => lane.restored.first_missing(lane.ledger.position()),
        };
        position.max(lane.commit.floor)
    }

    /// The offset map that goes with a commit of `base`; empty when nothing is complete behind it.
    fn map(&mut self, number: u32, base: i64) -> String {
        let lane = &mut self.lanes[number as usize];
        let without = std::mem::take(&mut lane.commit.without_map);
        if !self.options.commit.offset_map || without || lane.commit.map_limit < SMALLEST_MAP {
            return String::new();
        }
        let lane = &self.lanes[number as usize];
        let limit = lane.commit.map_limit;
        if self.is_planted_claim_all() && base + 1 < lane.ledger.next_offset() {
            let all = base + 1..lane.ledger.next_offset();
            return offset_map::encode(lane.topic_id, base, std::iter::once(all), limit);
        }
        let earlier = lane.restored.from(lane.ledger.next_offset());
        let completed = lane.ledger.completed().chain(earlier).filter(|range| range.end > base);
        offset_map::encode(lane.topic_id, base, completed, limit)
    }

    pub(super) fn committed(
        &mut self,
        now: Nanos,
        partition: &Partition,
        offset: i64,
        result: Result<(), CommitError>,
    ) {
        self.count_commit(partition, offset, &result);
        let Some(number) = self.assigned_number(partition) else { return };
        let commit = &mut self.lanes[number as usize].commit;
        let Some((_, map)) = commit.in_flight.take_if(|(sent, _)| *sent == offset) else { return };
        match result {
            Ok(()) => (commit.acknowledged, commit.map) = (Some(offset), map),
            Err(error) => self.commit_failed(now, number, &map, error.kind),
        }
        self.end_drains(now);
    }

    fn commit_failed(&mut self, now: Nanos, number: u32, map: &str, kind: CommitErrorKind) {
        let commit = &mut self.lanes[number as usize].commit;
        match kind {
            CommitErrorKind::Retriable => (commit.is_dirty, commit.not_before) = (true, now + RETRY),
            CommitErrorKind::MetadataTooLarge if !map.is_empty() => {
                (commit.is_dirty, commit.without_map) = (true, true);
                commit.map_limit = map.len() / 2;
                self.stats.counters.maps_refused += 1;
                self.commit(now, number);
            }
            // It has gone, and a rebalance will say so; or the offset alone was refused, which nothing here can change.
            CommitErrorKind::NotOwned | CommitErrorKind::MetadataTooLarge => {}
        }
    }

    fn count_commit(&mut self, partition: &Partition, offset: i64, result: &Result<(), CommitError>) {
        match result {
            Ok(()) => self.stats.counters.commits += 1,
            Err(error) => {
                self.stats.counters.commits_failed += 1;
                tracing::warn!(%partition, offset, %error, "a commit failed; processing goes on");
            }
        }
    }
}
