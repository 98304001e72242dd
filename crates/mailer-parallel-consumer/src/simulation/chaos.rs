//! What goes wrong in a run.

use super::checks::{Revoked, Standing};
use super::world::World;
use crate::control::Command;
use crate::source::Event;
use std::collections::{BTreeMap, BTreeSet};

impl World {
    pub(super) fn chaos(&mut self) {
        let ids: Vec<u64> = self.members.keys().copied().collect();
        let id = *self.random.pick(&ids);
        let index = self.random.range(0, self.logs.len() as u64) as usize;
        match self.random.range(0, 6) {
            0 => self.crash(id),
            1 => self.revoke(index),
            2 => self.lose(index),
            3 => self.stop(id),
            4 if self.random.chance(30) => self.reset(index),
            _ => self.add_some(),
        }
    }

    pub(super) fn add_some(&mut self) {
        if self.members.len() < 4 {
            self.add_member();
        }
    }

    pub(super) fn crash(&mut self, id: u64) {
        self.seen.crashes += 1;
        self.members.remove(&id);
        for log in &mut self.logs {
            log.owner.take_if(|owner| owner.member == id);
        }
        if self.members.is_empty() {
            self.add_member();
        }
        self.assign_free();
    }

    pub(super) fn revoke(&mut self, index: usize) {
        let (now, log) = (self.now, &mut self.logs[index]);
        let Some(owner) = log.owner.as_mut().filter(|owner| owner.revoked.is_none()) else { return };
        let was_idle =
            owner.records.values().all(|(_, standing)| matches!(standing, Standing::Waiting | Standing::Finished))
                && owner.records.values().all(|(_, standing)| *standing == Standing::Finished);
        owner.revoked = Some(Revoked { at: now, was_idle });
        let (id, partition) = (owner.member, log.name.clone());
        self.seen.revokes += 1;
        self.tell(id, Event::Revoked(vec![partition]));
        self.check_revoked_alone(id);
    }

    pub(super) fn lose(&mut self, index: usize) {
        let log = &mut self.logs[index];
        let Some(owner) = log.owner.take() else { return };
        let partition = log.name.clone();
        self.seen.losses += 1;
        self.members.get_mut(&owner.member).map(|member| member.stops_with.remove(&owner.generation));
        self.tell(owner.member, Event::Lost(vec![partition]));
        self.assign_free();
    }

    pub(super) fn stop(&mut self, id: u64) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&id) else { return };
        self.seen.stops += 1;
        let owned = self.logs.iter().filter_map(|log| log.owner.as_ref()).filter(|owner| owner.member == id);
        (member.is_stopping, member.stops_with) = (true, owned.map(|owner| owner.generation).collect());
        member.scheduler.command(now, Command::Stop { within: None });
        self.pump(id);
    }

    /// The position of a partition goes back, as after a log was truncated.
    pub(super) fn reset(&mut self, index: usize) {
        self.next_generation += 1;
        let generation = self.next_generation;
        let log = &mut self.logs[index];
        let Some(owner) = log.owner.as_mut().filter(|owner| owner.position > owner.start && owner.revoked.is_none())
        else {
            return;
        };
        let position = owner.position - 1;
        if self.members.get(&owner.member).is_some_and(|member| member.is_stopping) {
            let (id, partition) = (owner.member, log.name.clone());
            return self.tell(id, Event::Reset { partition, position }); // it must not be concerned
        }
        log.excused.extend(0..log.records.len() as i64);
        (owner.generation, owner.start, owner.position) = (generation, position, position);
        (owner.last_commit, owner.records, owner.restored) = (None, BTreeMap::new(), BTreeSet::new());
        owner.panicked = BTreeSet::new();
        // What lies before the new position was truncated away, as far as this run is concerned.
        for offset in 0..position {
            log.finished.entry(offset).or_insert((0, 0));
        }
        let (id, partition) = (owner.member, log.name.clone());
        self.seen.resets += 1;
        self.tell(id, Event::Reset { partition, position });
    }
}
