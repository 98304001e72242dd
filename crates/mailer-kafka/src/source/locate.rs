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
    // A log can only have been cut back where a new leader took over (KIP-320).
    let Some(epoch) = wanted.leader_epoch.filter(|epoch| wanted.suspect && leader.epoch > *epoch) else {
        return Ok(Located::At(leader));
    };
    let end = client.end_of_epoch((&wanted.topic, wanted.partition), epoch).await?;
    Ok(end.filter(|end| *end < wanted.next).map_or(Located::At(leader), Located::Truncated))
}
