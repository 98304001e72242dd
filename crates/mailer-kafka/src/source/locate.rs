//! Who serves a partition now, and whether it is still the partition that was read.

use super::partition::Partition;
use super::resolve::check_identity;
use crate::client::{Cause, Client, Failure, Topic, TopicId};
use crate::net::Leader;
use mailer_core::Error;
use std::collections::HashMap;
use std::sync::Arc;

/// A partition to look for.
pub(crate) struct Wanted {
    slot: usize,
    topic: Arc<str>,
    topic_id: TopicId,
    partition: i32,
    next: i64,
    leader_epoch: Option<i32>,
    suspect: bool,
}

impl Wanted {
    pub(crate) fn new(slot: usize, partition: &Partition, suspect: bool) -> Self {
        Self {
            slot,
            topic: partition.topic.clone(),
            topic_id: partition.topic_id,
            partition: partition.partition,
            next: partition.next,
            leader_epoch: partition.leader_epoch,
            suspect,
        }
    }

    fn name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }
}

/// What was found out.
pub(crate) enum Located {
    At(Leader),
    /// The log of the leader epoch that was read ends before the position: what was read is not there any more.
    Truncated(i64),
    /// Not now.
    Failed(Failure),
    /// Reading must not go on.
    Refused(Error),
}

/// Looks for the leaders of some partitions; topics are asked about once.
pub(crate) async fn locate(client: Arc<Client>, wanted: Vec<Wanted>) -> Vec<(usize, Located)> {
    let (mut topics, mut located) = (HashMap::new(), Vec::with_capacity(wanted.len()));
    for wanted in wanted {
        let found = one(&client, &wanted, &mut topics).await.unwrap_or_else(refused);
        located.push((wanted.slot, found));
    }
    located
}

fn refused(failure: Failure) -> Located {
    match failure.is_final() {
        true => Located::Refused(failure.into_error("looking for leaders")),
        false => Located::Failed(failure),
    }
}

async fn one(
    client: &Client,
    wanted: &Wanted,
    topics: &mut HashMap<Arc<str>, Result<Option<Topic>, Failure>>,
) -> Result<Located, Failure> {
    if wanted.suspect {
        if !topics.contains_key(&wanted.topic) {
            topics.insert(wanted.topic.clone(), client.net().topic(&wanted.topic).await);
        }
        let topic = topics[&wanted.topic].clone()?;
        let gone = || Failure::new(Cause::Retriable, format!("the cluster has no topic \"{}\" any more", wanted.topic));
        if let Err(error) = check_identity(&wanted.name(), wanted.topic_id, topic.ok_or_else(gone)?.id) {
            return Ok(Located::Refused(error));
        }
    }
    let leader = client.net().leader(&wanted.topic, wanted.partition).await?;
    let Some(epoch) = epoch_to_check(wanted, leader) else { return Ok(Located::At(leader)) };
    Ok(after_check(leader, client.end_of_epoch((&wanted.topic, wanted.partition), epoch).await?, wanted.next))
}

/// A log can only have been cut back where a new leader took over (KIP-320): the epoch to ask about then.
fn epoch_to_check(wanted: &Wanted, leader: Leader) -> Option<i32> {
    wanted.leader_epoch.filter(|epoch| wanted.suspect && leader.epoch > *epoch)
}

/// `end` is where the log of the epoch that was read ends; `None` where the broker cannot say.
fn after_check(leader: Leader, end: Option<i64>, next: i64) -> Located {
    end.filter(|end| *end < next).map_or(Located::At(leader), Located::Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(leader_epoch: Option<i32>, suspect: bool) -> Wanted {
        let (topic, topic_id) = ("orders".into(), TopicId::default());
        Wanted { slot: 0, topic, topic_id, partition: 0, next: 10, leader_epoch, suspect }
    }

    #[test]
    fn the_log_is_checked_where_a_new_leader_took_over() {
        let leader = |epoch| Leader { broker: 1, epoch };
        assert_eq!(epoch_to_check(&wanted(Some(3), true), leader(4)), Some(3));
        assert_eq!(epoch_to_check(&wanted(Some(3), true), leader(3)), None, "the same leader");
        assert_eq!(epoch_to_check(&wanted(Some(3), true), leader(-1)), None, "epochs are not told");
        assert_eq!(epoch_to_check(&wanted(None, true), leader(4)), None, "nothing was read");
        assert_eq!(epoch_to_check(&wanted(Some(3), false), leader(4)), None, "checked when it was assigned");
    }

    #[test]
    fn a_log_that_ends_before_the_position_was_cut_back() {
        let leader = Leader { broker: 1, epoch: 4 };
        for (end, truncated) in [(Some(9), Some(9)), (Some(10), None), (Some(99), None), (None, None)] {
            let found = match after_check(leader, end, 10) {
                Located::Truncated(end) => Some(end),
                _ => None,
            };
            assert_eq!(found, truncated, "{end:?}");
        }
    }
}
