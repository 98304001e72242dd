//! Reading assigned partitions from given offsets.

use super::{Cause, Client, Failure};
use crate::record::KafkaRecord;
use krafka::ConsumerRecord;
use krafka::consumer::{AutoOffsetReset, Consumer, IsolationLevel};
use std::collections::BTreeMap;
use std::time::Duration;

/// How to read.
#[derive(Clone, Debug)]
pub(crate) struct ReaderSettings {
    /// Hide records of aborted and open transactions.
    pub(crate) committed: bool,
    /// Bytes of one partition in one response.
    pub(crate) partition_bytes: i32,
    /// Bytes of one response.
    pub(crate) response_bytes: i32,
    /// Bytes worth answering for.
    pub(crate) min_bytes: Option<i32>,
    /// How long the broker may hold a request that finds nothing.
    pub(crate) max_wait: Duration,
    /// Read from a replica of this rack.
    pub(crate) rack: Option<String>,
}

impl Default for ReaderSettings {
    fn default() -> Self {
        Self {
            committed: true,
            partition_bytes: 1 << 20,
            response_bytes: 8 << 20,
            min_bytes: None,
            max_wait: Duration::from_millis(250),
            rack: None,
        }
    }
}

/// Where the reader stands in one partition.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    /// The next offset it will hand out; control records and aborted records are behind it.
    pub(crate) next: i64,
    /// How far it may read, as last told by the broker.
    pub(crate) end: Option<i64>,
}

/// Reads partitions; used by one task.
pub(crate) struct Reader {
    consumer: Consumer,
    assigned: BTreeMap<String, Vec<i32>>,
    committed: bool,
}

impl Client {
    pub(crate) async fn reader(&self, settings: &ReaderSettings) -> Result<Reader, Failure> {
        let isolation = match settings.committed {
            true => IsolationLevel::ReadCommitted,
            false => IsolationLevel::ReadUncommitted,
        };
        let mut builder = self
            .krafka()
            .await?
            .consumer_without_group()
            .isolation_level(isolation)
            .auto_offset_reset(AutoOffsetReset::None)
            .enable_auto_commit(false)
            .max_partition_fetch_bytes(settings.partition_bytes)
            .fetch_max_bytes(settings.response_bytes)
            .fetch_max_wait(settings.max_wait)
            // A response is handed out whole: what is fetched is counted by our own budget, not kept twice.
            .max_poll_records(-1)
            .max_buffered_records(0)
            .metrics_push(false);
        if let Some(bytes) = settings.min_bytes {
            builder = builder.fetch_min_bytes(bytes);
        }
        if let Some(rack) = &settings.rack {
            builder = builder.client_rack(rack);
        }
        Ok(Reader { consumer: builder.build().await?, assigned: BTreeMap::new(), committed: settings.committed })
    }
}

impl Reader {
    /// Adds a partition, to be read from `offset`.
    pub(crate) async fn add(&mut self, topic: &str, partition: i32, offset: i64) -> Result<(), Failure> {
        let partitions = self.assigned.entry(topic.to_owned()).or_default();
        if !partitions.contains(&partition) {
            partitions.push(partition);
        }
        self.consumer.assign(topic, partitions.clone()).await?;
        Ok(self.consumer.seek(topic, partition, offset).await?)
    }

    /// Stops reading a partition.
    pub(crate) async fn remove(&mut self, topic: &str, partition: i32) -> Result<(), Failure> {
        let Some(partitions) = self.assigned.get_mut(topic) else { return Ok(()) };
        partitions.retain(|assigned| *assigned != partition);
        Ok(self.consumer.assign(topic, partitions.clone()).await?)
    }

    pub(crate) async fn seek(&self, topic: &str, partition: i32, offset: i64) -> Result<(), Failure> {
        Ok(self.consumer.seek(topic, partition, offset).await?)
    }

    /// The next records, grouped by partition and in order; empty when none came in time. Dropping the future loses nothing.
    ///
    /// A broker that does not answer looks like one that has nothing: the caller must ask elsewhere whether it lives.
    pub(crate) async fn poll(&self, wait: Duration) -> Result<Vec<KafkaRecord>, Failure> {
        let records = self.consumer.poll(wait).await?;
        Ok(records.into_iter().map(record).collect())
    }

    /// Where it stands in every partition.
    pub(crate) async fn progress(&self) -> Vec<Progress> {
        let mut all = Vec::new();
        for (place, lag) in self.consumer.lag().await {
            let end = if self.committed { lag.last_stable_offset } else { lag.high_watermark };
            if let Some(next) = lag.position {
                all.push(Progress { topic: place.topic, partition: place.partition, next, end });
            }
        }
        all
    }

    pub(crate) async fn close(&self) {
        let _ = self.consumer.close().await;
    }
}

fn record(record: ConsumerRecord) -> KafkaRecord {
    KafkaRecord {
        topic: record.topic,
        partition: record.partition,
        offset: record.offset,
        timestamp: record.timestamp,
        key: record.key,
        value: record.value,
        headers: record.headers,
        leader_epoch: record.leader_epoch.filter(|epoch| *epoch >= 0),
    }
}

impl Failure {
    /// Whether a partition's position is not in its log any more.
    pub(crate) fn is_out_of_range(&self) -> bool {
        self.cause == Cause::OutOfRange
    }
}
