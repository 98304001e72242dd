//! The broker and the group of a run: who has which partition, what is fetched, what is committed.

use super::checks::{Assigned, Standing, queue};
use super::handlers::{MILLI, record};
use super::world::World;
use crate::Partition;
use crate::clock::Nanos;
use crate::offset_map::{self, Expected};
use crate::source::{Assignment, CommitError, CommitErrorKind, Event, Fetched, OffsetCommit};
use std::collections::{BTreeMap, BTreeSet};

impl World {
    /// Gives partitions without an owner to members.
    pub(super) fn assign_free(&mut self) {
        let ids: Vec<u64> = self.members.iter().filter(|(_, m)| !m.is_stopping).map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return;
        }
        for index in 0..self.logs.len() {
            if self.logs[index].owner.is_none() {
                let id = *self.random.pick(&ids);
                self.assign(index, id);
            }
        }
    }

    pub(super) fn assign(&mut self, index: usize, member: u64) {
        self.next_generation += 1;
        let log = &mut self.logs[index];
        let (start, metadata) = log.committed.clone();
        let log_end = Some(log.records.len() as i64);
        let expected = Expected { topic_id: [0; 16], base: start, log_end: log.records.len() as i64 };
        let claims = offset_map::decode(&metadata, &expected).unwrap_or_default();
        let restored: BTreeSet<i64> =
            if self.options.commit.offset_map { claims.from(0).flatten().collect() } else { BTreeSet::new() };
        log.owner = Some(Assigned {
            member,
            generation: self.next_generation,
            start,
            position: start,
            is_paused: false,
            revoked: None,
            restored,
            records: BTreeMap::new(),
            panicked: BTreeSet::new(),
            last_commit: None,
            is_map_limited: false,
        });
        let partition = log.name.clone();
        let assignment = Assignment { partition, topic_id: [0; 16], position: start, metadata, log_end };
        self.tell(member, Event::Assigned(vec![assignment]));
    }

    /// Delivers records of one partition that is not paused.
    pub(super) fn poll(&mut self) {
        let index = self.random.range(0, self.logs.len() as u64) as usize;
        let most = self.random.range(1, 9) as i64;
        let log = &mut self.logs[index];
        let end = log.records.len() as i64;
        let Some(owner) = log.owner.as_mut().filter(|o| !o.is_paused && o.revoked.is_none() && o.position < end) else {
            return;
        };
        let again = if self.random.chance(5) && owner.position > owner.start { 1 } else { 0 };
        let (from, next) = (owner.position - again, end.min(owner.position + most));
        let mut records = Vec::new();
        for offset in from..next {
            let Some(key) = log.records[offset as usize] else { continue };
            records.push(record(log.name.clone(), offset, key, self.record_bytes));
            if owner.restored.contains(&offset) {
                self.seen.restored += 1;
            } else if offset >= owner.position {
                let queue = queue(&self.options, index, offset, key);
                owner.records.insert(offset, (queue, Standing::Waiting));
            }
        }
        owner.position = next;
        let (id, partition) = (owner.member, log.name.clone());
        self.tell(id, Event::Records(Fetched { partition, records, next, log_end: Some(end), broker: None }));
    }

    pub(super) fn end_commits(&mut self, id: u64) {
        while let Some((_, made, generation, commit)) = self.due_commit(id) {
            let index = commit.partition.index as usize;
            let fails = !self.is_calm && self.random.chance(15);
            let log = &mut self.logs[index];
            let is_owner = log.owner.as_ref().is_some_and(|owner| owner.generation == generation);
            let result = match () {
                () if !is_owner => Err(CommitErrorKind::NotOwned),
                () if fails && !commit.metadata.is_empty() && self.random.chance(50) => {
                    Err(CommitErrorKind::MetadataTooLarge)
                }
                () if fails => Err(CommitErrorKind::Retriable),
                () => Ok(()),
            };
            if result.is_ok() {
                log.committed = (commit.offset, commit.metadata.clone());
                if self.options.commit.offset_map {
                    log.commit_made.insert(generation, made); // without a map it says nothing of what is behind it
                }
            }
            self.seen.failed_commits += u64::from(result.is_err());
            let result = result.map_err(|kind| CommitError { kind, message: "drawn".into() });
            if matches!(&result, Err(error) if error.kind == CommitErrorKind::MetadataTooLarge) {
                let log = &mut self.logs[index];
                log.excused.extend(0..log.records.len() as i64);
                log.owner.as_mut().into_iter().for_each(|owner| owner.is_map_limited = true);
            }
            self.tell(id, Event::Committed { partition: commit.partition, offset: commit.offset, result });
        }
    }

    pub(super) fn due_commit(&mut self, id: u64) -> Option<(Nanos, Nanos, u64, OffsetCommit)> {
        let now = self.now;
        self.members.get_mut(&id)?.commits.pop_front_if(|(due, ..)| *due <= now)
    }

    pub(super) fn owned(&mut self, id: u64, partition: &Partition) -> Option<&mut Assigned> {
        self.logs[partition.index as usize].owner.as_mut().filter(|owner| owner.member == id)
    }

    pub(super) fn set_paused(&mut self, id: u64, partition: &Partition, is_paused: bool) {
        if let Some(owner) = self.owned(id, partition) {
            owner.is_paused = is_paused;
        }
    }

    pub(super) fn commit(&mut self, id: u64, commit: OffsetCommit) {
        let (now, delay) = (self.now, *self.random.pick(&[0, 0, 5, 500, 2_000, 4_000]) * MILLI);
        let log = &mut self.logs[commit.partition.index as usize];
        let Some(owner) = log.owner.as_mut().filter(|owner| owner.member == id) else { return };
        owner.check_commit(&log.records, commit.offset, &mut self.violations);
        let expected = Expected { topic_id: [0; 16], base: commit.offset, log_end: i64::MAX };
        match offset_map::decode(&commit.metadata, &expected) {
            Ok(claims) => {
                let claims: Vec<i64> = claims.from(0).take(50).flatten().take(5_000).collect();
                owner.check_map(&log.records, &claims, &mut self.violations);
            }
            Err(why) => {
                self.violations.entry(4).or_insert(format!("an own map is {why}"));
            }
        }
        let generation = owner.generation;
        if let Some(member) = self.members.get_mut(&id) {
            let in_order = member.commits.back().map_or(0, |(due, ..)| *due);
            member.commits.push_back(((now + delay).max(in_order), now, generation, commit));
        }
    }

    pub(super) fn released(&mut self, id: u64, partition: &Partition) {
        // What was committed before arrives before the partition moves.
        let Some(member) = self.members.get_mut(&id) else { return };
        let of_it: Vec<_> =
            member.commits.iter().filter(|(.., commit)| commit.partition == *partition).cloned().collect();
        member.commits.retain(|(.., commit)| commit.partition != *partition);
        let has_commits = !of_it.is_empty();
        let log = &mut self.logs[partition.index as usize];
        for (_, made, generation, commit) in of_it {
            if log.owner.as_ref().is_some_and(|owner| owner.generation == generation) {
                log.committed = (commit.offset, commit.metadata);
                if self.options.commit.offset_map {
                    log.commit_made.insert(generation, made);
                }
            }
        }
        let Some(owner) = log.owner.take_if(|owner| owner.member == id) else { return };
        let waited = owner.revoked.map_or(0, |revoked| self.now - revoked.at);
        if owner.revoked.is_some_and(|revoked| revoked.was_idle) && waited > 9_000 * MILLI && !has_commits {
            self.say(13, format!("an idle partition was given back after {waited} ns"));
        }
        self.assign_free();
    }

    pub(super) fn close(&mut self, id: u64) {
        for log in &mut self.logs {
            log.owner.take_if(|owner| owner.member == id);
        }
        self.tell(id, Event::Closed);
    }
}
