//! What is known of a cluster: brokers, topics, leaders. Pure: answers in, knowledge out.

use super::Address;
use crate::client::{Cause, Failure, Topic, TopicId};
use kafka_protocol::messages::MetadataResponse;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use std::collections::{BTreeMap, HashMap};

/// Nobody leads.
const NOBODY: i32 = -1;

/// A broker as metadata shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broker {
    pub(crate) id: i32,
    pub(crate) address: Address,
}

/// Who leads a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) broker: i32,
    /// -1 where the broker does not tell it.
    pub(crate) epoch: i32,
}

/// What the cache can say about a partition.
#[derive(Clone, Debug)]
pub(super) enum Known {
    Leader(Leader),
    /// Ask the cluster, and look again.
    Ask,
    /// The cluster was asked, and this is what it said.
    Failed(Failure),
}

/// The cache.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    pub(super) cluster_id: Option<String>,
    pub(super) controller: Option<i32>,
    pub(super) brokers: BTreeMap<i32, Broker>,
    topics: HashMap<String, State>,
}

/// What is known of a topic that somebody asked for.
#[derive(Clone, Debug)]
enum State {
    Wanted,
    There { id: TopicId, partitions: BTreeMap<i32, Partition> },
    Refused(Failure),
}

#[derive(Clone, Copy, Debug)]
struct Partition {
    leader: Leader,
    /// Somebody met another truth: ask before it is used again.
    doubted: bool,
}

impl Metadata {
    /// Remembers that a topic is of interest.
    pub(super) fn want(&mut self, topic: &str) {
        if !self.topics.contains_key(topic) {
            self.topics.insert(topic.to_owned(), State::Wanted);
        }
    }

    /// Every topic of interest, in order.
    pub(super) fn wanted(&self) -> Vec<String> {
        let mut names: Vec<String> = self.topics.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Takes an answer in. Brokers are replaced as a whole, topics one by one.
    pub(super) fn learn(&mut self, response: MetadataResponse) {
        self.cluster_id = response.cluster_id.map(|id| id.to_string()).or(self.cluster_id.take());
        self.controller = Some(response.controller_id.0).filter(|id| *id >= 0);
        let brokers = response.brokers.iter().filter_map(broker);
        self.brokers = brokers.map(|broker| (broker.id, broker)).collect();
        for topic in response.topics {
            if let Some(name) = topic.name.as_ref().map(|name| name.to_string()) {
                let state = self.state(&name, topic);
                self.topics.insert(name, state);
            }
        }
    }

    fn state(&self, name: &str, topic: MetadataResponseTopic) -> State {
        let id = *topic.topic_id.as_bytes();
        match topic.error_code {
            0 => State::There { id, partitions: self.partitions(name, id, &topic.partitions) },
            code => State::Refused(Failure::of_code(code, format_args!("topic \"{name}\""))),
        }
    }

    fn partitions(&self, topic: &str, id: TopicId, told: &[MetadataResponsePartition]) -> BTreeMap<i32, Partition> {
        let before = match self.topics.get(topic) {
            Some(State::There { id: same, partitions }) if *same == id => Some(partitions),
            _ => None,
        };
        let newest = |told: &MetadataResponsePartition| {
            let leader = Leader { broker: told.leader_id.0, epoch: told.leader_epoch };
            let before = before.and_then(|partitions| partitions.get(&told.partition_index));
            (told.partition_index, before.map_or(Partition { leader, doubted: false }, |before| newer(*before, leader)))
        };
        told.iter().map(newest).collect()
    }

    /// A topic as it was last told; `None` before it was asked for.
    pub(super) fn topic(&self, name: &str) -> Option<Result<Topic, Failure>> {
        match self.topics.get(name)? {
            State::Wanted => None,
            State::There { id, partitions } => {
                Some(Ok(Topic { id: *id, partitions: partitions.keys().copied().collect() }))
            }
            State::Refused(failure) => Some(Err(failure.clone())),
        }
    }

    /// Who leads a partition. With `asked`, what the cluster said last is final.
    pub(super) fn leader(&self, topic: &str, partition: i32, asked: bool) -> Known {
        let found = match self.topics.get(topic) {
            Some(State::There { partitions, .. }) => partitions.get(&partition),
            Some(State::Refused(failure)) if asked => return Known::Failed(failure.clone()),
            _ => None,
        };
        match found {
            Some(found) if found.leader.broker != NOBODY && (asked || !found.doubted) => Known::Leader(found.leader),
            _ if !asked => Known::Ask,
            Some(_) => Known::Failed(leaderless(topic, partition)),
            None => Known::Failed(no_partition(topic, partition)),
        }
    }

    /// Somebody met a broker that says `seen` leads no more.
    pub(super) fn doubt(&mut self, topic: &str, partition: i32, seen: Leader) {
        if let Some(known) = self.partition(topic, partition).filter(|known| known.leader == seen) {
            known.doubted = true;
        }
    }

    /// A broker named a leader; whether that was news.
    pub(super) fn leader_is(&mut self, topic: &str, partition: i32, leader: Leader) -> bool {
        let Some(known) = self.partition(topic, partition) else { return false };
        let news = leader.broker != NOBODY && leader.epoch > known.leader.epoch;
        if news {
            *known = Partition { leader, doubted: false };
        }
        news
    }

    fn partition(&mut self, topic: &str, partition: i32) -> Option<&mut Partition> {
        match self.topics.get_mut(topic)? {
            State::There { partitions, .. } => partitions.get_mut(&partition),
            State::Wanted | State::Refused(_) => None,
        }
    }
}

/// Brokers learn of new leaders one after the other: what an older one tells does not undo what is known (KIP-320).
fn newer(before: Partition, told: Leader) -> Partition {
    match told.epoch >= 0 && told.epoch < before.leader.epoch {
        true => before,
        false => Partition { leader: told, doubted: false },
    }
}

fn broker(told: &MetadataResponseBroker) -> Option<Broker> {
    let port = u16::try_from(told.port).ok()?;
    Some(Broker { id: told.node_id.0, address: Address { host: told.host.to_string(), port } })
}

fn leaderless(topic: &str, partition: i32) -> Failure {
    Failure::new(
        Cause::Retriable,
        format!("{topic}-{partition} has no leader now: are all brokers of its replicas down?"),
    )
}

fn no_partition(topic: &str, partition: i32) -> Failure {
    Failure::new(Cause::Missing, format!("topic \"{topic}\" has no partition {partition}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::{BrokerId, TopicName};
    use kafka_protocol::protocol::StrBytes;
    use uuid::Uuid;

    fn part((index, leader, epoch): (i32, i32, i32)) -> MetadataResponsePartition {
        MetadataResponsePartition::default()
            .with_partition_index(index)
            .with_leader_id(BrokerId(leader))
            .with_leader_epoch(epoch)
    }

    fn topic(id: u8, parts: &[(i32, i32, i32)]) -> MetadataResponseTopic {
        MetadataResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_static_str("t"))))
            .with_topic_id(Uuid::from_bytes([id; 16]))
            .with_partitions(parts.iter().copied().map(part).collect())
    }

    fn told(topic: MetadataResponseTopic) -> MetadataResponse {
        MetadataResponse::default().with_topics(vec![topic])
    }

    fn leader(metadata: &Metadata, asked: bool) -> String {
        match metadata.leader("t", 0, asked) {
            Known::Leader(leader) => format!("{}@{}", leader.broker, leader.epoch),
            Known::Ask => "ask".into(),
            Known::Failed(failure) => format!("{:?}", failure.cause),
        }
    }

    #[test]
    fn the_newest_epoch_wins_while_the_topic_is_the_same() {
        let mut metadata = Metadata::default();
        for (id, parts, expected) in [
            (1, (0, 1, 5), "1@5"),
            (1, (0, 2, 4), "1@5"),
            (1, (0, 3, 6), "3@6"),
            (1, (0, 2, -1), "2@-1"),
            (1, (0, 1, 5), "1@5"),
            // Deleted and created again: epochs begin anew.
            (2, (0, 2, 0), "2@0"),
        ] {
            metadata.learn(told(topic(id, &[parts])));
            assert_eq!(leader(&metadata, false), expected);
        }
    }

    #[test]
    fn a_doubted_leader_is_asked_for_and_then_believed() {
        let mut metadata = Metadata::default();
        metadata.learn(told(topic(1, &[(0, 1, 5)])));
        metadata.doubt("t", 0, Leader { broker: 1, epoch: 4 });
        assert_eq!(leader(&metadata, false), "1@5", "a doubt about an older leader");
        metadata.doubt("t", 0, Leader { broker: 1, epoch: 5 });
        assert_eq!(leader(&metadata, false), "ask");
        metadata.learn(told(topic(1, &[(0, 1, 4)])));
        assert_eq!(leader(&metadata, false), "ask", "an older truth does not clear a doubt");
        metadata.learn(told(topic(1, &[(0, 1, 5)])));
        assert_eq!(leader(&metadata, false), "1@5");
    }

    #[test]
    fn a_named_leader_is_taken_when_it_is_newer() {
        let mut metadata = Metadata::default();
        let hint = |broker, epoch| Leader { broker, epoch };
        assert!(!metadata.leader_is("t", 0, hint(2, 6)), "an unknown topic");
        metadata.learn(told(topic(1, &[(0, 1, 5)])));
        metadata.doubt("t", 0, hint(1, 5));
        assert!(!metadata.leader_is("t", 0, hint(2, 5)) && !metadata.leader_is("t", 0, hint(-1, 6)));
        assert!(metadata.leader_is("t", 0, hint(2, 6)));
        assert_eq!(leader(&metadata, false), "2@6");
    }

    #[test]
    fn what_is_not_known_is_asked_for_once() {
        let mut metadata = Metadata::default();
        assert_eq!(leader(&metadata, false), "ask");
        metadata.want("t");
        assert_eq!((metadata.wanted(), leader(&metadata, false)), (vec!["t".to_owned()], "ask".into()));
        metadata.learn(told(topic(1, &[(0, -1, 5)])));
        assert_eq!((leader(&metadata, false), leader(&metadata, true)), ("ask".into(), "Retriable".into()));
        metadata.learn(told(topic(1, &[(1, 1, 5)])));
        assert_eq!((leader(&metadata, false), leader(&metadata, true)), ("ask".into(), "Missing".into()));
        metadata.learn(told(topic(0, &[]).with_error_code(29)));
        assert_eq!((leader(&metadata, false), leader(&metadata, true)), ("ask".into(), "Denied".into()));
    }

    #[test]
    fn topics_and_brokers_are_as_last_told() {
        let mut metadata = Metadata::default();
        assert!(metadata.topic("t").is_none());
        let broker = |id, port| {
            let host = StrBytes::from_static_str("b");
            MetadataResponseBroker::default().with_node_id(BrokerId(id)).with_host(host).with_port(port)
        };
        let brokers = vec![broker(1, 9092), broker(2, 70_000)];
        metadata.learn(told(topic(7, &[(1, 1, 0), (0, 1, 0)])).with_brokers(brokers));
        let found = metadata.topic("t").unwrap().unwrap();
        assert_eq!((found.id, found.partitions), ([7; 16], vec![0, 1]));
        assert_eq!(metadata.brokers.keys().copied().collect::<Vec<_>>(), [1]);
        metadata.learn(told(topic(0, &[]).with_error_code(3)));
        assert_eq!(metadata.topic("t").unwrap().unwrap_err().cause, Cause::Missing);
    }
}
