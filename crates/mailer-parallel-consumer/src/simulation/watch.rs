//! What is checked while a run goes on.

use super::checks::{Standing, check_rate, queue};
use super::handlers::{Place, Running};
use super::world::World;
use std::collections::BTreeSet;

impl World {
    /// Invariants 5 and 16, as a job starts.
    pub(super) fn check_order(&mut self, id: u64, running: &Running) {
        for (n, place) in running.places.iter().enumerate() {
            let log = &mut self.logs[place.partition];
            let Some(owner) = log.owner.as_mut() else { continue };
            let queue = owner.records.get(&place.offset).map(|(queue, _)| queue.clone()).unwrap_or_default();
            let in_batch =
                |offset: i64| running.places[..n].iter().any(|p| (p.partition, p.offset) == (place.partition, offset));
            let earlier = owner.records.range(..place.offset).find(|(offset, (other, standing))| {
                *other == queue && *standing != Standing::Finished && !in_batch(**offset)
            });
            if let Some((offset, (_, standing))) = earlier {
                let words = format!("{} of {queue} starts while {offset} is {standing:?}", place.offset);
                self.violations.entry(5).or_insert(words);
            }
            owner.records.insert(place.offset, (queue.clone(), Standing::Running));
            self.check_redelivery(place);
            self.check_one_handler(id, &queue);
        }
    }

    pub(super) fn check_one_handler(&mut self, id: u64, queue: &str) {
        let Some(member) = self.members.get(&id) else { return };
        let is_same = |place: &Place| {
            let key = self.logs[place.partition].records[place.offset as usize].flatten();
            super::checks::queue(&self.options, place.partition, place.offset, key) == queue
        };
        if let Some(other) = member.running.iter().flat_map(|running| &running.places).find(|place| is_same(place)) {
            let words = format!("two handlers of {queue}; the other has {}", other.offset);
            self.violations.entry(5).or_insert(words);
        }
    }

    /// Invariant 16: what is handled again was finished after the last commit, and not by one that stopped gracefully.
    pub(super) fn check_redelivery(&mut self, place: &Place) {
        let log = &self.logs[place.partition];
        let Some((at, generation)) = log.finished.get(&place.offset).copied() else { return };
        self.seen.redelivered += 1;
        if log.excused.contains(&place.offset) {
            return;
        }
        if self.graceful.contains(&generation) {
            self.say(16, format!("{} was finished by a member that stopped gracefully", place.offset));
        }
        if self.logs[place.partition].commit_made.get(&generation).is_some_and(|made| *made > at) {
            self.say(16, format!("{} was finished before the last commit", place.offset));
        }
    }

    /// Invariants 9 and 10.
    pub(super) fn check_limits(&mut self, id: u64) {
        let Some(member) = self.members.get(&id) else { return };
        let handlers = member.running.iter().filter(|running| !running.is_letter).count();
        let snapshot = member.scheduler.snapshot(self.now);
        let (limit, held) = (self.options.max_in_flight, snapshot.concurrency.buffered_bytes);
        // The share of a partition may shrink under what it holds: what one poll brings comes on top for each.
        let room = self.options.buffer.bytes + self.logs.len() * self.options.poll_bytes;
        let most = snapshot.partitions.iter().map(|p| p.incomplete + p.completed_ahead).max().unwrap_or(0);
        let buffered = self.options.buffer.records * 2 + self.logs.len() * 10;
        if handlers > limit {
            self.say(9, format!("{handlers} handlers run, {limit} may"));
        }
        if held > room {
            self.say(9, format!("{held} bytes are held, {room} may"));
        }
        if snapshot.concurrency.buffered_records > buffered || most > self.options.window.records + 10 {
            let records = snapshot.concurrency.buffered_records;
            self.say(9, format!("{records} records are held ({buffered} may), a window has {most}"));
        }
        if let (Some(limit), Some(member)) = (self.options.rate_limit, self.members.get(&id)) {
            check_rate(limit, &member.starts, &mut self.violations);
        }
    }

    /// Invariants 11, 12 and 14: while a place is free, nothing that could run waits.
    pub(super) fn check_work(&mut self, id: u64) {
        let Some(member) = self.members.get(&id).filter(|member| !member.is_stopping) else { return };
        let handlers = member.running.iter().filter(|running| !running.is_letter).count();
        if handlers >= self.options.max_in_flight || self.options.rate_limit.is_some() {
            return;
        }
        let owned = || {
            let logs = self.logs.iter().enumerate();
            logs.filter_map(|(n, log)| log.owner.as_ref().map(|owner| (n, owner)))
                .filter(|(_, owner)| owner.member == id)
        };
        let mut busy: BTreeSet<String> = BTreeSet::new();
        for place in member.running.iter().flat_map(|running| &running.places) {
            let key = self.logs[place.partition].records[place.offset as usize].flatten();
            busy.insert(queue(&self.options, place.partition, place.offset, key));
        }
        let failed = owned().flat_map(|(_, owner)| owner.records.values());
        let is_held = |standing: &Standing| !matches!(standing, Standing::Waiting | Standing::Finished);
        busy.extend(failed.filter(|(_, standing)| is_held(standing)).map(|(queue, _)| queue.clone()));
        let idle = owned().filter(|(_, owner)| owner.revoked.is_none()).find_map(|(n, owner)| {
            let waiting = owner.records.iter().find(|(_, (queue, s))| *s == Standing::Waiting && !busy.contains(queue));
            waiting.map(|(offset, _)| (n, *offset))
        });
        let Some((partition, offset)) = idle else { return };
        let is_committing = member.commits.iter().any(|(.., commit)| commit.partition.index >= 0);
        let shares = member.running.iter().flat_map(|running| &running.places).any(|p| p.partition == partition);
        let words = format!("{offset} of partition {partition} could run");
        match () {
            () if is_committing => self.say(14, words),
            () if shares => self.say(12, words),
            () => self.say(11, words),
        }
    }

    /// Invariant 15, and the way out of a member.
    pub(super) fn check_end(&mut self, id: u64) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let mut stopped = None;
        while let Some(end) = member.scheduler.end() {
            member.ends += 1;
            stopped = Some(end.stopped);
            if member.ends > 1 {
                self.say(15, "told of its end twice".into());
                break;
            }
        }
        if let Some(stopped) = stopped {
            let member = self.members.remove(&id).filter(|_| stopped == crate::Stopped::Graceful);
            self.graceful.extend(member.into_iter().flat_map(|member| member.stops_with));
            if self.members.is_empty() {
                self.add_member();
            }
            self.assign_free();
        }
    }

    /// Invariant 13: a revoke concerns what it names.
    pub(super) fn check_revoked_alone(&mut self, id: u64) {
        let Some(member) = self.members.get(&id).filter(|member| !member.is_stopping) else { return };
        let snapshot = member.scheduler.snapshot(self.now);
        for (index, log) in self.logs.iter().enumerate() {
            let is_kept = log.owner.as_ref().is_some_and(|owner| owner.member == id && owner.revoked.is_none());
            let shown = snapshot.partitions.iter().find(|partition| partition.partition == index as i32);
            if is_kept && shown.is_none_or(|partition| partition.state == "draining") {
                self.violations.entry(13).or_insert(format!("partition {index} is drained beside a revoked one"));
            }
        }
    }

    /// Invariants 6 and 18.
    pub(super) fn check_counters(&mut self) {
        let mut broken = Vec::new();
        for (id, member) in &self.members {
            let snapshot = member.scheduler.snapshot(self.now);
            let c = snapshot.counters;
            let incomplete: u64 = snapshot.partitions.iter().map(|partition| partition.incomplete).sum();
            let sum = c.succeeded + c.dead_lettered + c.restored + c.duplicates + c.dropped + incomplete;
            if c.fetched != sum {
                broken.push((18, format!("member {id}: {} fetched, {sum} accounted for: {c:?}", c.fetched)));
            }
            if c.succeeded + c.dead_lettered != member.completed {
                broken.push((6, format!("member {id}: {} completed, {c:?}", member.completed)));
            }
        }
        broken.into_iter().for_each(|(invariant, words)| self.say(invariant, words));
    }
}
