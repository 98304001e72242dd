//! Where partitions begin: what the group has committed, or where the reset policy says.

use super::settings::{Isolation, OffsetReset, Settings};
use crate::Partition;
use crate::clock::unix_millis;
use crate::source::Assignment;
use krafka::KrafkaError;
use krafka::admin::{
    AdminClient, DescribeTopicsOptions, GroupOffset, ListConsumerGroupOffsetsOptions, ListOffsetsOptions, OffsetSpec,
};
use krafka::consumer::TopicPartition;
use std::collections::{BTreeSet, HashMap};

/// Asks the cluster for offsets. One client, on connections that no fetch keeps busy.
pub(super) struct Positions {
    admin: AdminClient,
    group: String,
    reset: OffsetReset,
    isolation: Isolation,
}

/// What is known of some partitions; those that are missing could not be asked for.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) assignments: Vec<Assignment>,
    /// Why others are missing.
    pub(super) missing: Option<KrafkaError>,
}

impl Positions {
    pub(super) fn new(kafka: &krafka::Kafka, settings: &Settings) -> Self {
        Self {
            admin: kafka.admin(),
            group: settings.group.clone(),
            reset: settings.offset_reset,
            isolation: settings.isolation,
        }
    }

    /// Where partitions begin that this member was given. `is_patient` waits for the end of the log too, without which no
    /// offset map is believed.
    pub(super) async fn of_group(&self, partitions: &[Partition], is_patient: bool) -> Result<Found, KrafkaError> {
        let ids = self.topic_ids(partitions).await?;
        let mut committed = self.committed(partitions).await?;
        let mut ends = self.offsets(partitions, OffsetSpec::Latest).await?;
        let (kept, fresh): (Vec<_>, Vec<_>) =
            partitions.iter().cloned().partition(|partition| committed.get(partition).is_some_and(Option::is_some));
        let mut found = Found::default();
        for partition in kept {
            let Some(Some((position, metadata))) = committed.remove(&partition) else { continue };
            let log_end = match ends.remove(&partition) {
                Some(Ok(end)) => Some(end),
                Some(Err(error)) if is_patient => {
                    found.missing = Some(error);
                    continue;
                }
                Some(Err(_)) | None => None,
            };
            let topic_id = ids.get(&*partition.topic).copied().unwrap_or_default();
            found.assignments.push(Assignment { partition, topic_id, position, metadata, log_end });
        }
        for (partition, position) in self.fresh(&fresh).await? {
            match position {
                Ok(position) => {
                    let topic_id = ids.get(&*partition.topic).copied().unwrap_or_default();
                    let log_end = ends.remove(&partition).and_then(Result::ok);
                    let metadata = String::new();
                    found.assignments.push(Assignment { partition, topic_id, position, metadata, log_end });
                }
                Err(error) => found.missing = Some(error),
            }
        }
        Ok(found)
    }

    /// Where partitions begin for which nothing is committed, or whose offset is not in the log.
    pub(super) async fn fresh(
        &self,
        partitions: &[Partition],
    ) -> Result<HashMap<Partition, Result<i64, KrafkaError>>, KrafkaError> {
        if partitions.is_empty() {
            return Ok(HashMap::new());
        }
        match self.reset {
            OffsetReset::Earliest => self.offsets(partitions, OffsetSpec::Earliest).await,
            OffsetReset::Latest => self.offsets(partitions, OffsetSpec::Latest).await,
            OffsetReset::Since(age) => {
                self.since(partitions, unix_millis().saturating_sub(age.as_millis() as i64)).await
            }
            OffsetReset::Fail => {
                let place = |p: &Partition| (p.topic.to_string(), p.index);
                Err(KrafkaError::NoOffset { partitions: partitions.iter().map(place).collect() })
            }
        }
    }

    /// The first records from a time on, or the end where there are none.
    async fn since(
        &self,
        partitions: &[Partition],
        millis: i64,
    ) -> Result<HashMap<Partition, Result<i64, KrafkaError>>, KrafkaError> {
        let mut offsets = self.offsets(partitions, OffsetSpec::Timestamp(millis)).await?;
        let none: Vec<Partition> =
            offsets.iter().filter(|(_, offset)| matches!(offset, Ok(..0))).map(|(p, _)| p.clone()).collect();
        if !none.is_empty() {
            offsets.extend(self.offsets(&none, OffsetSpec::Latest).await?);
        }
        Ok(offsets)
    }

    /// Offset and metadata of the group's commits; `None` where there is none.
    async fn committed(
        &self,
        partitions: &[Partition],
    ) -> Result<HashMap<Partition, Option<(i64, String)>>, KrafkaError> {
        let options = ListConsumerGroupOffsetsOptions::default()
            .require_stable(self.isolation == Isolation::ReadCommitted)
            .partitions(partitions.iter().map(place).collect());
        let mut offsets = self.admin.list_consumer_group_offsets(&self.group, options).await?;
        let mut committed = HashMap::new();
        for partition in partitions {
            let commit = match offsets.remove(&place(partition)) {
                Some(commit) => commit?,
                None => continue,
            };
            let GroupOffset { offset, metadata, .. } = commit;
            committed.insert(partition.clone(), offset.map(|offset| (offset, metadata.unwrap_or_default())));
        }
        Ok(committed)
    }

    async fn offsets(
        &self,
        partitions: &[Partition],
        which: OffsetSpec,
    ) -> Result<HashMap<Partition, Result<i64, KrafkaError>>, KrafkaError> {
        let options = ListOffsetsOptions::default().read_committed(self.isolation == Isolation::ReadCommitted);
        let wanted = partitions.iter().map(|partition| (place(partition), which));
        let mut listed = self.admin.list_offsets(wanted, options).await?;
        let answer = |partition: &Partition| {
            let listed = listed.remove(&place(partition))?;
            Some((partition.clone(), listed.map(|listed| listed.offset)))
        };
        Ok(partitions.iter().filter_map(answer).collect())
    }

    async fn topic_ids(&self, partitions: &[Partition]) -> Result<HashMap<String, [u8; 16]>, KrafkaError> {
        let topics: BTreeSet<&str> = partitions.iter().map(|partition| &*partition.topic).collect();
        let described = self.admin.describe_topics(topics, DescribeTopicsOptions::default()).await?;
        described.into_iter().map(|(name, topic)| Ok((name, topic?.topic_id))).collect()
    }
}

fn place(partition: &Partition) -> TopicPartition {
    TopicPartition::new(&*partition.topic, partition.index)
}
