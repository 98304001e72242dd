//! Offsets of partitions: first, last, by time, by leader epoch. Each is asked of its partition's leader.

use super::{At, Cause, Client, Failure, Found, Place, retry};
use crate::net::{Backoff, Cluster, Leader};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::list_offsets_response::ListOffsetsPartitionResponse;
use kafka_protocol::messages::offset_for_leader_epoch_request::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use kafka_protocol::messages::{BrokerId, ListOffsetsRequest, OffsetForLeaderEpochRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Says that a consumer asks, not a replica.
const CONSUMER: BrokerId = BrokerId(-1);
/// The first version of ListOffsets that compares leader epochs.
const EPOCHS: i16 = 4;
/// Answered where no record is as late as asked.
const NONE: i64 = -1;

/// A partition by its owned name.
type Owned = (String, i32);
type Answers = HashMap<Owned, Result<Option<Found>, Failure>>;

impl Client {
    /// One offset of one partition.
    pub(crate) async fn offset(&self, place: Place<'_>, at: At) -> Result<Found, Failure> {
        let (topic, partition) = place;
        let none = || Failure::new(Cause::OutOfRange, format!("{topic}-{partition} has no record so late"));
        self.found(place, at).await?.ok_or_else(none)
    }

    /// The first offset at or after a time; `None` when no record is so late.
    pub(crate) async fn offset_at(&self, place: Place<'_>, timestamp: i64) -> Result<Option<Found>, Failure> {
        self.found(place, At::Timestamp(timestamp)).await
    }

    async fn found(&self, (topic, partition): Place<'_>, at: At) -> Result<Option<Found>, Failure> {
        let answers = self.ask_offsets(vec![(topic.to_owned(), partition)], at, self.request_timeout).await;
        answers
            .into_values()
            .next()
            .unwrap_or_else(|| Err(Failure::unanswered(format!("offsets of {topic}-{partition}"))))
    }

    /// Asks until every partition has an answer that stands, or the time is over. Every partition is in the result.
    async fn ask_offsets(&self, mut open: Vec<Owned>, at: At, timeout: Duration) -> Answers {
        let late = || Failure::new(Cause::Retriable, format!("the leader did not tell its offsets within {timeout:?}"));
        let mut answers: Answers = open.iter().map(|place| (place.clone(), Err(late()))).collect();
        let _ = tokio::time::timeout(timeout, async {
            let mut backoff = Backoff::new();
            loop {
                answers.extend(ask_leaders(self.net(), &open, at).await);
                open.retain(|place| answers.get(place).is_some_and(may_change));
                if open.is_empty() {
                    return;
                }
                backoff.pause().await;
            }
        })
        .await;
        answers
    }

    /// Where the log of a leader epoch ends; `None` where the broker cannot say.
    pub(crate) async fn end_of_epoch(&self, place: Place<'_>, epoch: i32) -> Result<Option<i64>, Failure> {
        let answer = retry::within(self.request_timeout, || end_of_epoch(self.net(), place, epoch)).await;
        match answer {
            Err(failure) if failure.cause == Cause::Unsupported => Ok(None),
            answer => answer,
        }
    }
}

fn may_change(answer: &Result<Option<Found>, Failure>) -> bool {
    answer.as_ref().is_err_and(|failure| failure.cause == Cause::Retriable)
}

/// One request to each leader, all at the same time.
async fn ask_leaders(cluster: &Arc<Cluster>, places: &[Owned], at: At) -> Answers {
    let (mut answers, mut by_broker) = (Answers::new(), BTreeMap::<i32, Vec<(Owned, Leader)>>::new());
    for place in places {
        match cluster.leader(&place.0, place.1).await {
            Ok(leader) => by_broker.entry(leader.broker).or_default().push((place.clone(), leader)),
            Err(failure) => drop(answers.insert(place.clone(), Err(failure))),
        }
    }
    let mut asked = JoinSet::new();
    for (broker, places) in by_broker {
        let cluster = Arc::clone(cluster);
        asked.spawn(async move { ask_leader(&cluster, broker, places, at).await });
    }
    asked.join_all().await.into_iter().for_each(|some| answers.extend(some));
    answers
}

async fn ask_leader(cluster: &Cluster, broker: i32, places: Vec<(Owned, Leader)>, at: At) -> Answers {
    let told = list_offsets(cluster, broker, &places, at).await;
    let mut answers = Answers::new();
    for (place, leader) in places {
        let answer = match &told {
            Ok((peer, told)) => answer(told.get(&place), &place, peer),
            Err(failure) => Err(failure.clone()),
        };
        if may_change(&answer) {
            cluster.doubt(&place.0, place.1, leader);
        }
        answers.insert(place, answer);
    }
    answers
}

type Told = HashMap<Owned, ListOffsetsPartitionResponse>;

/// The broker's answers by partition, and who it is.
async fn list_offsets(
    cluster: &Cluster,
    broker: i32,
    places: &[(Owned, Leader)],
    at: At,
) -> Result<(String, Told), Failure> {
    let connection = cluster.connection(broker).await?;
    let version = connection.version::<ListOffsetsRequest>()?;
    let response = connection.call_at(version, &request(version, places, at)).await?;
    let mut told = HashMap::new();
    for topic in response.topics {
        let name = topic.name.to_string();
        told.extend(topic.partitions.into_iter().map(|part| ((name.clone(), part.partition_index), part)));
    }
    Ok((connection.peer().to_owned(), told))
}

fn request(version: i16, places: &[(Owned, Leader)], at: At) -> ListOffsetsRequest {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for ((topic, partition), leader) in places {
        let epoch = if version >= EPOCHS { leader.epoch } else { -1 };
        let part = ListOffsetsPartition::default()
            .with_partition_index(*partition)
            .with_current_leader_epoch(epoch)
            .with_timestamp(timestamp(at));
        topics.entry(topic).or_default().push(part);
    }
    let topic = |(name, parts): (&str, Vec<_>)| {
        ListOffsetsTopic::default().with_name(TopicName(StrBytes::from_string(name.to_owned()))).with_partitions(parts)
    };
    ListOffsetsRequest::default()
        .with_replica_id(CONSUMER)
        .with_isolation_level(i8::from(at == At::LastStable))
        .with_topics(topics.into_iter().map(topic).collect())
}

/// The words of ListOffsets: -1 is the end, -2 the beginning.
fn timestamp(at: At) -> i64 {
    match at {
        At::Earliest => -2,
        At::HighWatermark | At::LastStable => -1,
        At::Timestamp(timestamp) => timestamp,
    }
}

fn answer(
    told: Option<&ListOffsetsPartitionResponse>,
    (topic, partition): &Owned,
    peer: &str,
) -> Result<Option<Found>, Failure> {
    let doing = || format!("offsets of {topic}-{partition} at {peer}");
    let told = told.ok_or_else(|| Failure::unanswered(doing()))?;
    leader_code(told.error_code, doing)?;
    let found = Found { offset: told.offset, leader_epoch: Some(told.leader_epoch).filter(|epoch| *epoch >= 0) };
    Ok(Some(found).filter(|found| found.offset != NONE))
}

/// A leader that does not know its partition has lost it to another, or it is gone: metadata decides which.
fn leader_code(code: i16, doing: impl FnOnce() -> String) -> Result<(), Failure> {
    let unknown = [ResponseError::UnknownTopicOrPartition, ResponseError::UnknownTopicId];
    if unknown.iter().any(|unknown| unknown.code() == code) {
        return Err(Failure { cause: Cause::Retriable, ..Failure::of_code(code, doing()) });
    }
    if code == 0 { Ok(()) } else { Err(Failure::of_code(code, doing())) }
}

async fn end_of_epoch(cluster: &Cluster, (topic, partition): Place<'_>, epoch: i32) -> Result<Option<i64>, Failure> {
    let leader = cluster.leader(topic, partition).await?;
    let connection = cluster.connection(leader.broker).await?;
    let part = OffsetForLeaderPartition::default()
        .with_partition(partition)
        .with_current_leader_epoch(leader.epoch)
        .with_leader_epoch(epoch);
    let topics = OffsetForLeaderTopic::default()
        .with_topic(TopicName(StrBytes::from_string(topic.to_owned())))
        .with_partitions(vec![part]);
    let request = OffsetForLeaderEpochRequest::default().with_replica_id(CONSUMER).with_topics(vec![topics]);
    let asked = connection.call(&request).await;
    let doing = || format!("the end of leader epoch {epoch} of {topic}-{partition} at {}", connection.peer());
    let end = asked.and_then(|response| {
        let told = response.topics.into_iter().flat_map(|topic| topic.partitions).next();
        let told = told.ok_or_else(|| Failure::unanswered(doing()))?;
        leader_code(told.error_code, doing)?;
        Ok(Some(told.end_offset).filter(|offset| *offset >= 0))
    });
    if end.as_ref().is_err_and(|failure| failure.cause == Cause::Retriable) {
        cluster.doubt(topic, partition, leader);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Api;
    use bytes::BytesMut;
    use kafka_protocol::protocol::Encodable;

    fn place() -> Owned {
        ("t".into(), 3)
    }

    fn told(code: i16, offset: i64, epoch: i32) -> Result<Option<Found>, Cause> {
        let told = ListOffsetsPartitionResponse::default();
        let told = told.with_error_code(code).with_offset(offset).with_leader_epoch(epoch);
        answer(Some(&told), &place(), "broker 1 (b:1)").map_err(|failure| failure.cause)
    }

    #[test]
    fn answers_are_offsets_nothing_or_failures() {
        assert_eq!(told(0, 7, 2), Ok(Some(Found { offset: 7, leader_epoch: Some(2) })));
        assert_eq!(told(0, 0, -1), Ok(Some(Found { offset: 0, leader_epoch: None })));
        assert_eq!(told(0, -1, -1), Ok(None), "no record so late");
        for (code, cause) in [(3, Cause::Retriable), (6, Cause::Retriable), (74, Cause::Retriable), (29, Cause::Denied)]
        {
            assert_eq!(told(code, -1, -1), Err(cause), "{code}");
        }
        let failure = answer(None, &place(), "broker 1 (b:1)").unwrap_err();
        assert!(failure.message.contains("t-3 at broker 1 (b:1)"), "{failure}");
    }

    #[test]
    fn requests_can_be_written_in_every_version() {
        let places = [(place(), Leader { broker: 1, epoch: 5 }), (("u".into(), 0), Leader { broker: 1, epoch: -1 })];
        for version in ListOffsetsRequest::RANGE {
            for at in [At::Earliest, At::HighWatermark, At::LastStable, At::Timestamp(9)] {
                request(version, &places, at).encode(&mut BytesMut::new(), version).unwrap();
            }
        }
        let stable = request(7, &places, At::LastStable);
        assert_eq!((stable.isolation_level, stable.topics.len(), stable.topics[0].partitions[0].timestamp), (1, 2, -1));
    }
}
