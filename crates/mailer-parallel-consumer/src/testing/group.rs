//! The consumer group of the broker in memory: who has what, and what each member has to hear.

use crate::Partition;
use crate::source::{Assignment, Event};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::Waker;

#[derive(Debug, Default)]
pub(super) struct Group {
    members: BTreeMap<u64, MemberState>,
    next_id: u64,
    /// All that there are.
    partitions: Vec<Partition>,
    polls_fail: bool,
}

/// What the group knows of a member.
#[derive(Debug, Default)]
pub(super) struct MemberState {
    /// Where fetching stands, of every partition it has.
    pub(super) positions: BTreeMap<Partition, i64>,
    /// Asked back, and not yet released.
    pub(super) revoked: BTreeSet<Partition>,
    pub(super) paused: BTreeSet<Partition>,
    pub(super) events: VecDeque<Event>,
    pub(super) waker: Option<Waker>,
    /// The partition that was fetched last: the next one is next.
    pub(super) last: Option<Partition>,
}

impl MemberState {
    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}

impl Group {
    pub(super) fn join(&mut self) -> u64 {
        self.next_id += 1;
        let mut member = MemberState::default();
        member.tell(Event::Assigned(Vec::new()));
        self.members.insert(self.next_id, member);
        self.next_id
    }

    pub(super) fn leave(&mut self, id: u64) -> Option<MemberState> {
        self.members.remove(&id)
    }

    pub(super) fn member(&mut self, id: u64) -> Option<&mut MemberState> {
        self.members.get_mut(&id)
    }

    pub(super) fn wake_all(&mut self) {
        self.members.values_mut().filter_map(|member| member.waker.take()).for_each(Waker::wake);
    }

    /// Where each partition should be: in turn.
    fn target(&self, partitions: &[Partition]) -> BTreeMap<Partition, u64> {
        let ids: Vec<u64> = self.members.keys().copied().collect();
        let in_turn = partitions.iter().cloned().zip(ids.iter().copied().cycle());
        in_turn.collect()
    }

    /// Asks members for partitions that should be elsewhere.
    pub(super) fn rebalance<'a>(&mut self, partitions: impl Iterator<Item = &'a Partition>) {
        self.partitions = partitions.cloned().collect();
        let target = self.target(&self.partitions.clone());
        for (id, member) in &mut self.members {
            let elsewhere = |partition: &&Partition| target.get(*partition) != Some(id);
            let asked: Vec<Partition> =
                member.positions.keys().filter(elsewhere).filter(|p| !member.revoked.contains(*p)).cloned().collect();
            if !asked.is_empty() {
                member.revoked.extend(asked.iter().cloned());
                member.tell(Event::Revoked(asked));
            }
        }
    }

    /// Partitions that nobody has, and who should have them.
    pub(super) fn to_assign(&self) -> Vec<(u64, Partition)> {
        let is_free = |partition: &Partition| !self.members.values().any(|m| m.positions.contains_key(partition));
        let target = self.target(&self.partitions);
        target.into_iter().filter(|(partition, _)| is_free(partition)).map(|(partition, id)| (id, partition)).collect()
    }

    pub(super) fn assign(&mut self, id: u64, partition: Partition, position: i64, metadata: String, end: i64) {
        let Some(member) = self.members.get_mut(&id) else { return };
        member.positions.insert(partition.clone(), position);
        let log_end = Some(end);
        let assignment = Assignment { partition, topic_id: [0; 16], position, metadata, log_end };
        member.tell(Event::Assigned(vec![assignment]));
    }

    pub(super) fn lose(&mut self, partition: &Partition) {
        for member in self.members.values_mut() {
            if member.give_up(partition) {
                member.tell(Event::Lost(vec![partition.clone()]));
            }
        }
    }

    pub(super) fn fail_polls(&mut self, fail: bool) {
        self.polls_fail = fail;
        for member in self.members.values_mut() {
            member.tell(if fail { Event::PollFailed("told to fail".into()) } else { Event::Healthy });
        }
    }

    pub(super) fn polls_fail(&self) -> bool {
        self.polls_fail
    }
}

impl MemberState {
    pub(super) fn give_up(&mut self, partition: &Partition) -> bool {
        self.revoked.remove(partition);
        self.paused.remove(partition);
        self.positions.remove(partition).is_some()
    }
}
