//! What is asked of one broker: pure.

use crate::client::TopicId;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::{FetchResponse, PartitionData};
use kafka_protocol::messages::{BrokerId, FetchRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The first version that names topics by id.
const BY_ID: i16 = 13;
/// The first version that says where the reader is.
const RACK: i16 = 11;
/// Not a replica.
const CONSUMER: BrokerId = BrokerId(-1);
/// Outside of fetch sessions (KIP-227): every request is whole.
const NO_SESSION: i32 = -1;

/// How to read.
#[derive(Clone, Debug)]
pub(crate) struct FetchSettings {
    /// Hide records of aborted and open transactions.
    pub(crate) committed: bool,
    /// Bytes of one partition in one response.
    pub(crate) partition_bytes: i32,
    /// Bytes worth answering for.
    pub(crate) min_bytes: i32,
    /// How long the broker may hold a request that finds nothing.
    pub(crate) max_wait: Duration,
    /// Read from a replica of this rack.
    pub(crate) rack: Option<String>,
}

/// One partition in a request.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) slot: usize,
    pub(crate) topic: Arc<str>,
    pub(crate) topic_id: TopicId,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// -1: not known, and not compared.
    pub(crate) leader_epoch: i32,
    pub(crate) max_bytes: i32,
}

/// One request to one broker.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) parts: Vec<Part>,
    pub(crate) max_bytes: i32,
    pub(crate) max_wait: Duration,
}

impl Plan {
    /// The version to speak when the broker understands `offered`: ids only where all are known.
    pub(crate) fn version(&self, offered: i16) -> i16 {
        match self.parts.iter().all(|part| part.topic_id != TopicId::default()) {
            true => offered,
            false => offered.min(BY_ID - 1),
        }
    }

    pub(crate) fn request(&self, version: i16, settings: &FetchSettings) -> FetchRequest {
        let rack = settings.rack.clone().filter(|_| version >= RACK);
        FetchRequest::default()
            .with_replica_id(CONSUMER)
            .with_max_wait_ms(i32::try_from(self.max_wait.as_millis()).unwrap_or(i32::MAX))
            .with_min_bytes(settings.min_bytes)
            .with_max_bytes(self.max_bytes)
            .with_isolation_level(i8::from(settings.committed))
            .with_session_epoch(NO_SESSION)
            .with_rack_id(StrBytes::from_string(rack.unwrap_or_default()))
            .with_topics(self.topics(version))
    }

    fn topics(&self, version: i16) -> Vec<FetchTopic> {
        let mut topics: Vec<FetchTopic> = Vec::new();
        let mut found: HashMap<&str, usize> = HashMap::new();
        for part in &self.parts {
            let at = *found.entry(&part.topic).or_insert_with(|| {
                topics.push(topic(part, version));
                topics.len() - 1
            });
            topics[at].partitions.push(partition(part));
        }
        topics
    }

    /// The slots of an answer's partitions. Partitions that nobody asked for have none.
    pub(crate) fn sort(&self, response: FetchResponse) -> Vec<(usize, PartitionData)> {
        let named = |part: &Part| ((part.topic.to_string(), part.partition), part.slot);
        let by_name: HashMap<_, _> = self.parts.iter().map(named).collect();
        let by_id: HashMap<_, _> = self.parts.iter().map(|part| ((part.topic_id, part.partition), part.slot)).collect();
        let mut sorted = Vec::with_capacity(self.parts.len());
        for topic in response.responses {
            let (name, id) = (topic.topic.to_string(), *topic.topic_id.as_bytes());
            for told in topic.partitions {
                let slot = match name.is_empty() {
                    true => by_id.get(&(id, told.partition_index)),
                    false => by_name.get(&(name.clone(), told.partition_index)),
                };
                sorted.extend(slot.map(|slot| (*slot, told)));
            }
        }
        sorted
    }

    /// Whether an answer brought anything. Brokers fill it in the order of the request: who comes behind may have found no
    /// room, and that nothing came says nothing about them.
    pub(crate) fn is_full(told: &[(usize, PartitionData)]) -> bool {
        told.iter().any(|(_, data)| data.records.as_ref().is_some_and(|records| !records.is_empty()))
    }

    /// Whether a slot was asked for first, and so had all the room there is.
    pub(crate) fn is_first(&self, slot: usize) -> bool {
        self.parts.first().is_some_and(|part| part.slot == slot)
    }
}

fn topic(part: &Part, version: i16) -> FetchTopic {
    match version < BY_ID {
        true => FetchTopic::default().with_topic(TopicName(StrBytes::from_string(part.topic.to_string()))),
        false => FetchTopic::default().with_topic_id(uuid::Uuid::from_bytes(part.topic_id)),
    }
}

fn partition(part: &Part) -> FetchPartition {
    FetchPartition::default()
        .with_partition(part.partition)
        .with_current_leader_epoch(part.leader_epoch)
        .with_fetch_offset(part.offset)
        .with_partition_max_bytes(part.max_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Api;
    use bytes::BytesMut;
    use kafka_protocol::messages::fetch_response::FetchableTopicResponse;
    use kafka_protocol::protocol::Encodable;

    fn part(slot: usize, topic: &str, id: u8, partition: i32) -> Part {
        let topic_id = [id; 16];
        Part { slot, topic: topic.into(), topic_id, partition, offset: 7, leader_epoch: 3, max_bytes: 100 }
    }

    fn plan(ids: [u8; 3]) -> Plan {
        let parts = vec![part(0, "a", ids[0], 0), part(1, "b", ids[1], 0), part(2, "a", ids[2], 1)];
        Plan { parts, max_bytes: 1_000, max_wait: Duration::from_millis(250) }
    }

    fn settings() -> FetchSettings {
        let (partition_bytes, min_bytes, max_wait) = (100, 1, Duration::from_millis(250));
        FetchSettings { committed: true, partition_bytes, min_bytes, max_wait, rack: Some("r".into()) }
    }

    #[test]
    fn requests_can_be_written_in_every_version() {
        for version in FetchRequest::RANGE {
            let request = plan([1, 2, 1]).request(version, &settings());
            assert_eq!(request.topics.iter().map(|topic| topic.partitions.len()).collect::<Vec<_>>(), [2, 1]);
            assert_eq!(request.topics[0].topic.is_empty(), version >= 13);
            assert_eq!(request.rack_id.is_empty(), version < 11);
            request.encode(&mut BytesMut::new(), version).unwrap();
        }
    }

    #[test]
    fn topics_without_id_are_asked_for_by_name() {
        assert_eq!((plan([1, 2, 1]).version(16), plan([1, 0, 1]).version(16), plan([0; 3]).version(7)), (16, 12, 7));
    }

    #[test]
    fn answers_find_their_slots_by_name_and_by_id() {
        let told = |index| PartitionData::default().with_partition_index(index);
        let by_name = FetchableTopicResponse::default().with_topic(TopicName("a".into()));
        let by_id = FetchableTopicResponse::default().with_topic_id(uuid::Uuid::from_bytes([2; 16]));
        let responses = vec![by_name.with_partitions(vec![told(1), told(9)]), by_id.with_partitions(vec![told(0)])];
        let sorted = plan([1, 2, 1]).sort(FetchResponse::default().with_responses(responses));
        assert_eq!(sorted.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [2, 1], "nobody asked for partition 9");
    }

    #[test]
    fn who_was_asked_for_first_had_room_in_any_case() {
        let told = |slot: usize, records: &'static [u8]| {
            (slot, PartitionData::default().with_records(Some(bytes::Bytes::from_static(records))))
        };
        assert!(Plan::is_full(&[told(0, b""), told(1, b"batch")]));
        assert!(!Plan::is_full(&[told(0, b""), (1, PartitionData::default())]));
        let plan = plan([1, 2, 1]);
        assert_eq!([0, 1, 2].map(|slot| plan.is_first(slot)), [true, false, false]);
    }
}
