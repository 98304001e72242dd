//! Offsets of consumer groups: read to start from, written for monitors. No group is ever joined.

use super::{Client, Failure, Place, retry};
use crate::net::{Connection, CoordinatorOf};
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::{GroupId, OffsetCommitRequest, OffsetFetchRequest, OffsetFetchResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::collections::BTreeMap;

/// The first version that asks for many groups.
const MANY: i16 = 8;
/// The first version that waits for open transactions.
const STABLE: i16 = 7;

impl Client {
    /// What a consumer group has committed for a partition: the next offset it would read.
    pub(crate) async fn group_offset(&self, group: &str, place: Place<'_>) -> Result<Option<i64>, Failure> {
        retry::within(self.request_timeout, || self.group_offset_once(group, place)).await
    }

    async fn group_offset_once(&self, group: &str, place: Place<'_>) -> Result<Option<i64>, Failure> {
        let connection = self.coordinator(group).await?;
        let version = connection.version::<OffsetFetchRequest>()?;
        let response = connection.call_at(version, &fetch(version, group, place)).await?;
        let doing = format!("reading the offsets of group \"{group}\" at {}", connection.peer());
        match told(response) {
            Told::Nothing => Ok(None),
            Told::Refused(code) => Err(Failure::of_code(code, doing)),
            Told::Offset(offset) => Ok(Some(offset).filter(|offset| *offset >= 0)),
        }
    }

    /// Writes a group's offsets, for monitors: each the next one to be read. As a consumer that is no member, which a group
    /// takes only while it has none.
    pub(crate) async fn set_group_offsets(&self, group: &str, offsets: Vec<(String, i32, i64)>) -> Result<(), Failure> {
        let request = commit(group, offsets);
        retry::within(self.request_timeout, || self.commit_once(group, &request)).await
    }

    async fn commit_once(&self, group: &str, request: &OffsetCommitRequest) -> Result<(), Failure> {
        let connection = self.coordinator(group).await?;
        let response = connection.call(request).await?;
        response.topics.iter().flat_map(|topic| topic.partitions.iter().map(|part| (&topic.name, part))).try_for_each(
            |(topic, part)| {
                let (topic, partition) = (topic.as_str(), part.partition_index);
                let doing = format!("committing {topic}-{partition} for group \"{group}\" at {}", connection.peer());
                Failure::unless_ok(part.error_code, None, doing)
            },
        )
    }

    async fn coordinator(&self, group: &str) -> Result<Connection, Failure> {
        let broker = self.net().coordinator(CoordinatorOf::Group(group)).await?;
        self.net().connection(broker).await
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn fetch(version: i16, group: &str, (topic, partition): Place<'_>) -> OffsetFetchRequest {
    let (group, topic, partitions) = (GroupId(text(group)), TopicName(text(topic)), vec![partition]);
    let request = OffsetFetchRequest::default().with_require_stable(version >= STABLE);
    if version < MANY {
        let topic = OffsetFetchRequestTopic::default().with_name(topic).with_partition_indexes(partitions);
        return request.with_group_id(group).with_topics(Some(vec![topic]));
    }
    let topic = OffsetFetchRequestTopics::default().with_name(topic).with_partition_indexes(partitions);
    let group = OffsetFetchRequestGroup::default().with_group_id(group).with_topics(Some(vec![topic]));
    request.with_groups(vec![group])
}

/// What was said about the one partition that was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    Refused(i16),
    Offset(i64),
}

fn told(response: OffsetFetchResponse) -> Told {
    let mut codes = vec![response.error_code];
    let mut offset = response.topics.iter().flat_map(|topic| &topic.partitions).next().map(|part| {
        codes.push(part.error_code);
        part.committed_offset
    });
    if let Some(group) = response.groups.first() {
        codes.push(group.error_code);
        offset = group.topics.iter().flat_map(|topic| &topic.partitions).next().map(|part| {
            codes.push(part.error_code);
            part.committed_offset
        });
    }
    match (codes.into_iter().find(|code| *code != 0), offset) {
        (Some(code), _) => Told::Refused(code),
        (None, Some(offset)) => Told::Offset(offset),
        (None, None) => Told::Nothing,
    }
}

fn commit(group: &str, offsets: Vec<(String, i32, i64)>) -> OffsetCommitRequest {
    let mut topics: BTreeMap<String, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
    for (topic, partition, next) in offsets {
        let part = OffsetCommitRequestPartition::default()
            .with_partition_index(partition)
            .with_committed_offset(next)
            .with_committed_metadata(Some(StrBytes::new()));
        topics.entry(topic).or_default().push(part);
    }
    let topic = |(name, parts): (String, Vec<_>)| {
        OffsetCommitRequestTopic::default().with_name(TopicName(StrBytes::from_string(name))).with_partitions(parts)
    };
    OffsetCommitRequest::default()
        .with_group_id(GroupId(text(group)))
        // No member, no generation.
        .with_generation_id_or_member_epoch(-1)
        .with_topics(topics.into_iter().map(topic).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Api;
    use bytes::BytesMut;
    use kafka_protocol::messages::offset_fetch_response as r;
    use kafka_protocol::protocol::Encodable;

    #[test]
    fn requests_can_be_written_in_every_version() {
        let offsets = vec![("a".to_owned(), 0, 5), ("b".to_owned(), 1, 6), ("a".to_owned(), 2, 7)];
        for version in OffsetCommitRequest::RANGE {
            commit("g", offsets.clone()).encode(&mut BytesMut::new(), version).unwrap();
        }
        assert_eq!(commit("g", offsets).topics.len(), 2);
        for version in OffsetFetchRequest::RANGE {
            fetch(version, "g", ("a", 0)).encode(&mut BytesMut::new(), version).unwrap();
        }
    }

    #[test]
    fn old_and_new_answers_say_the_same() {
        let old = |code, offset, error| {
            let part = r::OffsetFetchResponsePartition::default().with_committed_offset(offset).with_error_code(error);
            let topic = r::OffsetFetchResponseTopic::default().with_partitions(vec![part]);
            OffsetFetchResponse::default().with_error_code(code).with_topics(vec![topic])
        };
        let new = |code, offset, error| {
            let part = r::OffsetFetchResponsePartitions::default().with_committed_offset(offset).with_error_code(error);
            let topic = r::OffsetFetchResponseTopics::default().with_partitions(vec![part]);
            let group = r::OffsetFetchResponseGroup::default().with_error_code(code).with_topics(vec![topic]);
            OffsetFetchResponse::default().with_groups(vec![group])
        };
        for (answer, expected) in
            [((0, 7, 0), Told::Offset(7)), ((16, -1, 0), Told::Refused(16)), ((0, -1, 3), Told::Refused(3))]
        {
            assert_eq!(told(old(answer.0, answer.1, answer.2)), expected);
            assert_eq!(told(new(answer.0, answer.1, answer.2)), expected);
        }
        assert_eq!(told(OffsetFetchResponse::default()), Told::Nothing);
    }
}
