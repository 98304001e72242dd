//! One transaction: records in, marker in, commit.

use super::claim::Claimed;
use super::segment::Reading;
use super::{limits, marker};
use crate::client::{Cause, Delivery, Failure, WriterSettings};
use crate::record::OutRecord;
use mailer_core::{Error, Marker};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Records whose acknowledgement is not awaited yet.
const UNAWAITED: usize = 16_384;

/// Why a transaction did not happen, or may not have happened.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// Said by the cluster; `topic` is what was written when it was said.
    Cluster { topic: String, failure: Failure },
    /// A topic takes only batches up to so many bytes. The client splits no batch in a transaction: the next producer
    /// must make smaller ones.
    SmallerBatches(usize),
    /// Found by us.
    Ours(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped::Ours(error)
    }
}

/// A transaction being filled.
pub(crate) struct Transmission {
    claimed: Arc<Claimed>,
    on_the_way: VecDeque<(String, Delivery)>,
    partitions: HashMap<String, i32>,
    writer: WriterSettings,
    sent: u64,
    /// The count at which the crash test strikes.
    half: u64,
}

impl Transmission {
    /// Begins a transaction of `total` records.
    pub(crate) async fn begin(claimed: Arc<Claimed>, total: u64, writer: WriterSettings) -> Result<Self, Stopped> {
        claimed.transactions.begin().map_err(|failure| at("", failure))?;
        fail::fail_point!("publish-begin");
        let (on_the_way, partitions) = (VecDeque::new(), HashMap::new());
        Ok(Self { claimed, on_the_way, partitions, writer, sent: 0, half: total / 2 })
    }

    /// Sends all records of a segment, in order.
    pub(crate) async fn segment(mut self, segment: Reading) -> Result<Self, Stopped> {
        let topic = segment.topic().to_owned();
        let partitions = self.partitions_of(&topic).await?;
        for record in segment {
            let record = record?;
            if record.partition.is_none_or(|partition| partition >= partitions) {
                return Err(shrunk(&topic, partitions).into());
            }
            self.send(&topic, record).await?;
            self.sent += 1;
            if self.sent == self.half {
                fail::fail_point!("publish-mid-produce");
            }
        }
        Ok(self)
    }

    /// Adds the marker and commits.
    pub(crate) async fn finish(mut self, marker: Marker) -> Result<(), Stopped> {
        let claimed = self.claimed.clone();
        let topic = &claimed.recorded.marker_topic;
        self.send(topic, marker::record(&claimed.recorded.transactional_id, &marker)?).await?;
        claimed.transactions.flush().await.map_err(|failure| at(topic, failure))?;
        while !self.on_the_way.is_empty() {
            self.await_oldest().await?;
        }
        fail::fail_point!("publish-before-commit");
        let committed = claimed.transactions.commit(|| fail::fail_point!("publish-commit-sent")).await;
        committed.map_err(|failure| at(topic, failure))?;
        fail::fail_point!("publish-after-commit");
        Ok(())
    }

    async fn send(&mut self, topic: &str, record: OutRecord) -> Result<(), Stopped> {
        match self.claimed.transactions.send(topic, record).await {
            Ok(delivery) => self.on_the_way.push_back((topic.to_owned(), delivery)),
            Err(failure) => return Err(self.reason(topic, failure).await),
        }
        if self.on_the_way.len() > UNAWAITED {
            self.await_oldest().await?;
        }
        Ok(())
    }

    async fn await_oldest(&mut self) -> Result<(), Stopped> {
        let Some((topic, delivery)) = self.on_the_way.pop_front() else { return Ok(()) };
        delivery.done().await.map_err(|failure| at(&topic, failure))
    }

    /// A record is refused when an earlier one failed: that one's failure is the reason.
    async fn reason(&mut self, topic: &str, refused: Failure) -> Stopped {
        if refused.cause == Cause::Other {
            while !self.on_the_way.is_empty() {
                if let Err(stopped) = self.await_oldest().await {
                    return stopped;
                }
            }
        }
        at(topic, refused)
    }

    /// Partitions may have been added since the producer last looked.
    async fn learn(&self, topic: &str, partitions: usize) -> Result<(), Failure> {
        match self.claimed.transactions.known_partitions(topic).await? < partitions {
            true => self.claimed.client.refresh().await,
            false => Ok(()),
        }
    }

    /// Looked up once in a transaction: a topic that is gone would otherwise be waited for.
    async fn partitions_of(&mut self, topic: &str) -> Result<i32, Stopped> {
        if let Some(partitions) = self.partitions.get(topic) {
            return Ok(*partitions);
        }
        let found = self.claimed.client.topic(topic).await.map_err(|failure| at(topic, failure))?;
        let found = found.ok_or_else(|| at(topic, Failure::new(Cause::Missing, "the topic is not in the cluster")))?;
        let limit = limits::max_bytes(&self.claimed.client, topic).await.map_err(|failure| at(topic, failure))?;
        if let Some(limit) = limit.filter(|limit| self.writer.shrink_batches(*limit)) {
            return Err(Stopped::SmallerBatches(limit));
        }
        self.learn(topic, found.partitions.len()).await.map_err(|failure| at(topic, failure))?;
        let partitions = i32::try_from(found.partitions.len()).unwrap_or(i32::MAX);
        self.partitions.insert(topic.to_owned(), partitions);
        Ok(partitions)
    }
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
