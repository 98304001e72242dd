//! What this member holds of its group, without I/O: who may commit, and when a partition may go.
//!
//! A partition comes (`Looking` for its position), is held, and goes: because the group asks for it back (`Leaving`, until
//! the scheduler has released it and its last commit is answered) or because it is lost already. Each assignment has a
//! number of its own: what was fetched, found or committed under another number means nothing any more.

use crate::Partition;
use std::collections::HashMap;

/// The number of an assignment. Never used twice in a process.
pub(super) type Number = u64;

#[derive(Debug, Default)]
pub(super) struct Holdings {
    last: Number,
    held: HashMap<Partition, Holding>,
    /// Commits that are not answered yet, also those of partitions that have gone.
    commits: usize,
}

#[derive(Debug)]
struct Holding {
    number: Number,
    /// As whom this process was known to the group when it got the partition.
    member: String,
    stage: Stage,
    commits: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its position is being looked up; the scheduler does not know of it.
    Looking,
    /// The scheduler has it.
    Held,
    /// The group wants it back; the scheduler is not done with it, or is.
    Leaving { is_released: bool },
}

impl Holdings {
    /// The group has given partitions to `member`.
    pub(super) fn assigned(&mut self, partitions: &[Partition], member: &str) -> Vec<(Partition, Number)> {
        let mut assigned = Vec::with_capacity(partitions.len());
        for partition in partitions {
            self.last += 1;
            let holding = Holding { number: self.last, member: member.to_owned(), stage: Stage::Looking, commits: 0 };
            self.held.insert(partition.clone(), holding);
            assigned.push((partition.clone(), self.last));
        }
        assigned
    }

    /// Whether the position of this assignment is still wanted.
    pub(super) fn is_looking(&self, partition: &Partition, number: Number) -> bool {
        self.held.get(partition).is_some_and(|holding| holding.number == number && holding.stage == Stage::Looking)
    }

    /// Its position is known and the scheduler is told; `false` when the assignment has ended meanwhile.
    pub(super) fn found(&mut self, partition: &Partition, number: Number) -> bool {
        let is_looking = self.is_looking(partition, number);
        if is_looking && let Some(holding) = self.held.get_mut(partition) {
            holding.stage = Stage::Held;
        }
        is_looking
    }

    /// The group wants partitions back. Returns those that the scheduler knows of and has to release.
    pub(super) fn revoked(&mut self, partitions: &[Partition]) -> Vec<Partition> {
        let mut told = Vec::new();
        for partition in partitions {
            match self.held.get_mut(partition) {
                Some(holding) if holding.stage == Stage::Looking => drop(self.held.remove(partition)),
                Some(holding) if holding.stage == Stage::Held => {
                    holding.stage = Stage::Leaving { is_released: false };
                    told.push(partition.clone());
                }
                Some(_) | None => {}
            }
        }
        told
    }

    /// The scheduler is done with a revoked partition.
    pub(super) fn release(&mut self, partition: &Partition) {
        if let Some(holding) = self.held.get_mut(partition)
            && matches!(holding.stage, Stage::Leaving { .. })
        {
            holding.stage = Stage::Leaving { is_released: true };
        }
        self.let_go(partition);
    }

    /// Whether the group has to wait for one of these.
    pub(super) fn is_waiting_for(&self, partitions: &[Partition]) -> bool {
        let leaving = |p: &Partition| self.held.get(p).is_some_and(|h| matches!(h.stage, Stage::Leaving { .. }));
        partitions.iter().any(leaving)
    }

    /// Partitions are another member's. Returns those that the scheduler knows of.
    pub(super) fn lost(&mut self, partitions: &[Partition]) -> Vec<Partition> {
        let known = |p: &&Partition| self.held.remove(*p).is_some_and(|holding| holding.stage != Stage::Looking);
        partitions.iter().filter(known).cloned().collect()
    }

    /// Partitions that were given to this process when the group knew it as somebody else: between then and now they may
    /// have been another member's.
    pub(super) fn of_others(&self, member: &str) -> Vec<Partition> {
        let others = self.held.iter().filter(|(_, holding)| holding.member != member);
        others.map(|(partition, _)| partition.clone()).collect()
    }

    /// A commit is about to be made; `None` when the partition is not this member's.
    pub(super) fn begin_commit(&mut self, partition: &Partition) -> Option<Number> {
        let holding = self.held.get_mut(partition).filter(|holding| holding.stage != Stage::Looking)?;
        holding.commits += 1;
        self.commits += 1;
        Some(holding.number)
    }

    /// Whether a commit that was begun may still be sent, by a process that the group knows as `member`.
    pub(super) fn may_commit(&self, partition: &Partition, number: Number, member: &str) -> bool {
        self.held.get(partition).is_some_and(|holding| holding.number == number && holding.member == member)
    }

    /// A commit is answered.
    pub(super) fn end_commit(&mut self, partition: &Partition, number: Number) {
        self.commits -= 1;
        if let Some(holding) = self.held.get_mut(partition).filter(|holding| holding.number == number) {
            holding.commits -= 1;
            self.let_go(partition);
        }
    }

    /// Whether no commit waits for its answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.commits == 0
    }

    fn let_go(&mut self, partition: &Partition) {
        let is_done = |holding: &Holding| holding.stage == Stage::Leaving { is_released: true } && holding.commits == 0;
        if self.held.get(partition).is_some_and(is_done) {
            self.held.remove(partition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(index: i32) -> Partition {
        Partition::new("t", index)
    }

    /// Holds partitions 0 and 1.
    fn two() -> (Holdings, Number, Number) {
        let mut holdings = Holdings::default();
        let assigned = holdings.assigned(&[partition(0), partition(1)], "me");
        assert!(assigned.iter().all(|(partition, number)| holdings.found(partition, *number)));
        (holdings, assigned[0].1, assigned[1].1)
    }

    #[test]
    fn the_group_waits_until_a_revoked_partition_is_released_and_its_commit_answered() {
        let (mut holdings, zero, _) = two();
        assert_eq!(holdings.begin_commit(&partition(0)), Some(zero));
        assert_eq!(holdings.revoked(&[partition(0)]), [partition(0)]);
        assert_eq!(holdings.begin_commit(&partition(0)), Some(zero), "the drain's own commit");
        holdings.release(&partition(0));
        assert!(holdings.is_waiting_for(&[partition(0)]));
        holdings.end_commit(&partition(0), zero);
        assert!(holdings.is_waiting_for(&[partition(0)]));
        holdings.end_commit(&partition(0), zero);
        assert!(!holdings.is_waiting_for(&[partition(0)]) && holdings.is_quiet());
        assert_eq!(holdings.begin_commit(&partition(0)), None);
        assert!(holdings.begin_commit(&partition(1)).is_some(), "the other one did not notice");
    }

    #[test]
    fn what_was_never_told_need_not_be_released() {
        let mut holdings = Holdings::default();
        let assigned = holdings.assigned(&[partition(0)], "me");
        assert_eq!(holdings.begin_commit(&partition(0)), None);
        assert!(holdings.revoked(&[partition(0)]).is_empty() && !holdings.is_waiting_for(&[partition(0)]));
        assert!(!holdings.found(&partition(0), assigned[0].1), "it was found too late");
    }

    #[test]
    fn a_lost_partition_takes_no_commit_and_no_release() {
        let (mut holdings, zero, _) = two();
        assert_eq!(holdings.begin_commit(&partition(0)), Some(zero));
        assert_eq!(holdings.lost(&[partition(0)]), [partition(0)]);
        assert!(!holdings.may_commit(&partition(0), zero, "me") && !holdings.is_quiet());
        holdings.end_commit(&partition(0), zero);
        assert!(holdings.is_quiet());
        let again = holdings.assigned(&[partition(0)], "me");
        assert_ne!(again[0].1, zero);
        holdings.release(&partition(0));
        assert!(holdings.is_looking(&partition(0), again[0].1), "a release of before concerns nothing of now");
    }

    #[test]
    fn under_another_name_nothing_is_held_for_certain() {
        let (mut holdings, zero, _) = two();
        assert!(holdings.of_others("me").is_empty() && holdings.may_commit(&partition(0), zero, "me"));
        assert!(!holdings.may_commit(&partition(0), zero, "me again"));
        holdings.assigned(&[partition(1)], "me again");
        assert_eq!(holdings.of_others("me again"), [partition(0)]);
    }
}
