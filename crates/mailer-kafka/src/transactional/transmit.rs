//! One transaction: batches in, marker in, commit.

use super::claim::Claimed;
use super::segment::{self, Segment};
use super::{limits, marker};
use crate::batch::Settings;
use crate::client::{Cause, Failure, OnSent};
use crate::encode::Encoded;
use crate::gather::{Gather, Parted};
use mailer_core::{Clock, Error, Marker, Result, SystemClock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a transaction did not happen, or may not have happened.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// Said by the cluster; `topic` is what was written when it was said.
    Cluster { topic: String, failure: Failure },
    /// Found by us.
    Ours(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped::Ours(error)
    }
}

/// What a topic is now.
#[derive(Clone, Copy, Debug)]
struct Room {
    partitions: i32,
    max_bytes: usize,
}

/// A transaction being filled.
pub(crate) struct Transmission {
    claimed: Claimed,
    topics: HashMap<String, Room>,
    batch: Settings,
    on_sent: OnSent,
}

impl Transmission {
    /// A transaction of `total` records.
    pub(crate) fn new(claimed: Claimed, total: u64, batch: Settings) -> Self {
        Self { claimed, topics: HashMap::new(), batch, on_sent: strike_at(total / 2) }
    }

    pub(crate) fn begin(&mut self) -> std::result::Result<(), Stopped> {
        self.claimed.transactions.begin().map_err(|failure| at("", failure))?;
        fail::fail_point!("publish-begin");
        Ok(())
    }

    /// Sends all batches of a segment, in the order of each partition, and waits until they are acknowledged.
    pub(crate) async fn segment(&mut self, segment: Segment) -> std::result::Result<(), Stopped> {
        let Segment { topic, parts } = segment;
        let room = self.room(&topic).await?;
        if parts.iter().any(|parted| parted.partition >= room.partitions) {
            return Err(shrunk(&topic, room.partitions).into());
        }
        let parts = self.fit(parts, room.max_bytes)?;
        let sent = self.claimed.transactions.write(&topic, parts, self.on_sent.clone()).await;
        sent.map_err(|failure| at(&topic, failure))
    }

    /// Batches that were staged while the topic took larger ones are split.
    fn fit(&self, parts: Vec<Parted>, max_bytes: usize) -> Result<Vec<Parted>> {
        if parts.iter().all(|parted| parted.batch.bytes() <= max_bytes) {
            return Ok(parts);
        }
        let smaller = Settings { max_bytes: self.batch.max_bytes.min(max_bytes), ..self.batch };
        let mut fitting = Vec::new();
        for parted in parts {
            match parted.batch.bytes() <= max_bytes {
                true => fitting.push(parted),
                false => fitting.extend(segment::split(&parted, smaller)?),
            }
        }
        Ok(fitting)
    }

    /// Adds the marker and commits.
    pub(crate) async fn finish(&mut self, marker: &Marker) -> std::result::Result<(), Stopped> {
        let recorded = self.claimed.recorded.clone();
        let topic = &recorded.marker_topic;
        let parts = self.marker(&recorded.transactional_id, marker)?;
        let transactions = &mut self.claimed.transactions;
        transactions.write(topic, parts, Arc::new(|_| ())).await.map_err(|failure| at(topic, failure))?;
        fail::fail_point!("publish-before-commit");
        let committed = transactions.commit(|| fail::fail_point!("publish-commit-sent")).await;
        committed.map_err(|failure| at(topic, failure))?;
        fail::fail_point!("publish-after-commit");
        Ok(())
    }

    fn marker(&self, id: &str, marker: &Marker) -> Result<Vec<Parted>> {
        let (mut gather, mut encoded) = (Gather::new(self.batch), Encoded::default());
        encoded.begin(SystemClock::default().wall().0);
        encoded.copy(marker::record(id, marker)?);
        gather.push(0, encoded.timestamp(), &encoded)?;
        gather.close()?;
        Ok(gather.take_done())
    }

    /// The producer, for the next transaction or to be given up.
    pub(crate) fn into_claimed(self) -> Claimed {
        self.claimed
    }

    /// Looked up once in a transaction: a topic that is gone would otherwise be waited for.
    async fn room(&mut self, topic: &str) -> std::result::Result<Room, Stopped> {
        if let Some(room) = self.topics.get(topic) {
            return Ok(*room);
        }
        let client = &self.claimed.client;
        let found = client.topic(topic).await.map_err(|failure| at(topic, failure))?;
        let found = found.ok_or_else(|| at(topic, Failure::new(Cause::Missing, "the topic is not in the cluster")))?;
        let max_bytes = limits::max_bytes(client, topic).await.map_err(|failure| at(topic, failure))?;
        let partitions = i32::try_from(found.partitions.len()).unwrap_or(i32::MAX);
        let room = Room { partitions, max_bytes: max_bytes.unwrap_or(usize::MAX) };
        self.topics.insert(topic.to_owned(), room);
        Ok(room)
    }
}

/// The crash test strikes when half of the records have left.
fn strike_at(half: u64) -> OnSent {
    let sent = AtomicU64::new(0);
    Arc::new(move |records| {
        let before = sent.fetch_add(records, Relaxed);
        if before < half.max(1) && before + records >= half {
            fail::fail_point!("publish-mid-produce");
        }
    })
}

fn at(topic: &str, failure: Failure) -> Stopped {
    Stopped::Cluster { topic: topic.to_owned(), failure }
}

fn shrunk(topic: &str, partitions: i32) -> Error {
    Error::blocked(format!(
        "staged output goes to a partition that Kafka topic \"{topic}\" does not have: it has {partitions}; was it deleted \
         and created again with fewer? Add partitions, then start the job again"
    ))
}
