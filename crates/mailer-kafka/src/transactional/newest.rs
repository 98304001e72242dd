//! The newest record of a key in a range of a partition, as read-committed readers see it: for markers.
//!
//! It ends when the *position* reaches the end: the last offsets are usually control records, which are never handed out.

use crate::batch::{AbortedFilter, Batches, Malformed};
use crate::client::{Cause, Client, Failure};
use crate::net::{Backoff, Leader};
use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::{BrokerId, FetchRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use mailer_core::{Error, Result};

/// The last version that names topics by name: the caller has compared the topic's id.
const BY_NAME: i16 = 12;
/// How long the broker may hold a request that finds nothing, in ms.
const HOLD: i32 = 100;
/// Bytes of one answer. A batch that is larger comes whole all the same.
const ANSWER: i32 = 1 << 20;

/// A record of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) offset: i64,
    /// `None` is a tombstone.
    pub(crate) value: Option<Bytes>,
}

/// The newest committed record of `key` in partition 0 of `topic`, from offset `from` up to `to`.
pub(crate) async fn newest(client: &Client, topic: &str, key: &str, from: i64, to: i64) -> Result<Option<Found>> {
    let mut reading = Reading { key: key.as_bytes(), next: from, to, newest: None };
    let limit = client.request_timeout();
    match tokio::time::timeout(limit, read(client, topic, &mut reading)).await {
        Ok(Ok(())) => Ok(reading.newest),
        Ok(Err(failure)) => Err(failure.into_error(format!("reading the marker in {topic}"))),
        Err(_) => Err(Error::unavailable(format!(
            "the marker in {topic} could not be read up to offset {to} within {limit:?}, only to {}; an open transaction of \
             another transactional id in this topic would explain it",
            reading.next
        ))),
    }
}

async fn read(client: &Client, topic: &str, reading: &mut Reading<'_>) -> std::result::Result<(), Failure> {
    let mut backoff = Backoff::new();
    while reading.next < reading.to {
        let leader = client.net().leader(topic, 0).await;
        let told = match leader {
            Ok(leader) => fetch(client, topic, leader, reading.next).await,
            Err(failure) => Err(failure),
        };
        match told {
            Ok(data) => reading.take(data).map_err(|why| {
                Failure::new(Cause::Other, format!("{topic}-0@{} does not decode: {why}", reading.next))
            })?,
            Err(failure) if failure.cause == Cause::Retriable => backoff.pause().await,
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

async fn fetch(
    client: &Client,
    topic: &str,
    leader: Leader,
    offset: i64,
) -> std::result::Result<PartitionData, Failure> {
    let connection = client.net().connection(leader.broker).await;
    let connection = connection.inspect_err(|_| client.net().doubt(topic, 0, leader))?;
    let partition =
        FetchPartition::default().with_partition(0).with_fetch_offset(offset).with_partition_max_bytes(ANSWER);
    let named = FetchTopic::default().with_topic(TopicName(StrBytes::from_string(topic.to_owned())));
    let request = FetchRequest::default()
        .with_replica_id(BrokerId(-1))
        .with_max_wait_ms(HOLD)
        .with_min_bytes(1)
        .with_max_bytes(ANSWER)
        .with_isolation_level(1)
        .with_session_epoch(-1)
        .with_topics(vec![named.with_partitions(vec![partition])]);
    let version = connection.version::<FetchRequest>()?.min(BY_NAME);
    let response = connection.call_at(version, &request).await?;
    let doing = format!("reading {topic}-0 from {}", connection.peer());
    Failure::unless_ok(response.error_code, None, &doing)?;
    let data = response.responses.into_iter().flat_map(|topic| topic.partitions).next();
    let data = data.ok_or_else(|| Failure::unanswered(&doing))?;
    let told = Failure::unless_ok(data.error_code, None, &doing);
    if told.as_ref().is_err_and(|failure| failure.cause == Cause::Retriable) {
        client.net().doubt(topic, 0, leader);
    }
    told.map(|()| data)
}

/// How far it was read, and what was found.
struct Reading<'a> {
    key: &'a [u8],
    next: i64,
    to: i64,
    newest: Option<Found>,
}

impl Reading<'_> {
    fn take(&mut self, data: PartitionData) -> std::result::Result<(), Malformed> {
        let aborted = data.aborted_transactions.unwrap_or_default();
        let aborted = aborted.into_iter().map(|aborted| (aborted.producer_id.0, aborted.first_offset));
        let mut filter = AbortedFilter::new(aborted);
        for batch in Batches::new(data.records.unwrap_or_default()) {
            let batch = batch?;
            let header = *batch.header();
            if filter.admits(&header, batch.control_kind()?) {
                self.look(batch.records()?)?;
            }
            self.next = self.next.max(header.next_offset());
        }
        Ok(())
    }

    fn look(&mut self, mut records: crate::batch::Records) -> std::result::Result<(), Malformed> {
        while let Some(record) = records.next_record() {
            let record = record?;
            if record.offset >= self.next && record.offset < self.to && record.key == Some(self.key) {
                // A marker is small, and lives longer than the answer it came in.
                let value = record.value.map(Bytes::copy_from_slice);
                self.newest = Some(Found { offset: record.offset, value });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchBuilder, Codec, Settings, Stamp};
    use kafka_protocol::messages::ProducerId;
    use kafka_protocol::messages::fetch_response::AbortedTransaction;

    /// A batch at an offset, written by a producer in a transaction.
    fn batch(offset: i64, producer_id: i64, records: &[(&str, Option<&str>)]) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Settings { codec: Codec::None, max_bytes: 10_000 });
        for (key, value) in records {
            builder.append(0, Some(key.as_bytes()), value.map(str::as_bytes), &[]).unwrap();
        }
        let mut sealed = builder.seal().unwrap().unwrap();
        sealed.stamp(Stamp { producer_id, epoch: 0, sequence: 0, transactional: true });
        let mut bytes = sealed.to_bytes().to_vec();
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes
    }

    fn taken(to: i64, aborted: &[(i64, i64)], batches: &[Vec<u8>]) -> (i64, Option<Found>) {
        let mut reading = Reading { key: b"ours", next: 5, to, newest: None };
        let aborted = aborted.iter().map(|(producer, first)| {
            AbortedTransaction::default().with_producer_id(ProducerId(*producer)).with_first_offset(*first)
        });
        let data = PartitionData::default()
            .with_aborted_transactions(Some(aborted.collect()))
            .with_records(Some(batches.concat().into()));
        reading.take(data).unwrap();
        (reading.next, reading.newest)
    }

    #[test]
    fn the_newest_of_the_key_counts_and_what_was_aborted_does_not() {
        let ours = |value| [("ours", Some(value)), ("other", Some("x"))];
        let batches = [batch(4, 1, &ours("before")), batch(6, 1, &ours("old")), batch(8, 2, &ours("aborted"))];
        let (next, newest) = taken(100, &[(2, 8)], &batches);
        assert_eq!((next, newest.map(|found| found.offset)), (10, Some(6)));
        let (next, newest) = taken(100, &[], &batches);
        assert_eq!((next, newest.unwrap().value.as_deref()), (10, Some(&b"aborted"[..])));
    }

    #[test]
    fn what_is_before_the_start_or_at_the_end_is_not_looked_at() {
        let (next, newest) = taken(6, &[], &[batch(4, 1, &[("ours", Some("a"))]), batch(6, 1, &[("ours", Some("b"))])]);
        assert_eq!((next, newest), (7, None));
        let (_, newest) = taken(9, &[], &[batch(6, 1, &[("ours", None)])]);
        assert_eq!(newest, Some(Found { offset: 6, value: None }), "a tombstone is found, and refused by who reads it");
    }
}
