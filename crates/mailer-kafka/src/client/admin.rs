//! Metadata, offsets, configurations and topics.

use super::{At, Cause, Client, Cluster, Failure, Found, NewTopic, Topic};
use krafka::admin::{
    AlterConsumerGroupOffsetsOptions, ConfigResource, CreateTopicsOptions, DescribeClusterOptions,
    DescribeConfigsOptions, DescribeTopicsOptions, ListConsumerGroupOffsetsOptions, ListOffsetsOptions,
    ListTopicsOptions, OffsetForLeaderEpochOptions, OffsetSpec, TopicDescription,
};
use krafka::consumer::TopicPartition;
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// The name of a partition across the seam.
type Place<'a> = (&'a str, i32);

impl Client {
    /// The topic as it is now, or `None`.
    pub(crate) async fn topic(&self, name: &str) -> Result<Option<Topic>, Failure> {
        let answers = self.admin.describe_topics([name], DescribeTopicsOptions::default()).await?;
        match only(answers) {
            Ok(description) => Ok(Some(topic(description))),
            Err(failure) if failure.cause == Cause::Missing => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Fetches anew what producers and readers of this client route by. They keep it for minutes.
    pub(crate) async fn refresh(&self) -> Result<(), Failure> {
        self.admin.list_topics(ListTopicsOptions::default()).await?;
        Ok(())
    }

    /// The cluster's id and brokers.
    pub(crate) async fn cluster(&self) -> Result<Cluster, Failure> {
        match self.admin.describe_cluster(DescribeClusterOptions::default()).await.map_err(Failure::from) {
            Ok(cluster) => Ok(Cluster {
                id: Some(cluster.cluster_id).filter(|id| !id.is_empty()),
                brokers: cluster.brokers.iter().filter(|broker| !broker.is_fenced).map(|broker| broker.id).collect(),
            }),
            Err(failure) if failure.cause == Cause::Unsupported => self.brokers().await,
            Err(failure) => Err(failure),
        }
    }

    /// The brokers alone, where the cluster cannot be described.
    async fn brokers(&self) -> Result<Cluster, Failure> {
        let lookup = self.kafka.consumer_without_group().metrics_push(false).build().await?;
        let metadata = lookup.fetch_metadata(None).await;
        let _ = lookup.close().await;
        Ok(Cluster { id: None, brokers: metadata?.brokers.iter().map(|broker| broker.id()).collect() })
    }

    /// One offset of one partition.
    pub(crate) async fn offset(&self, (topic, partition): Place<'_>, at: At) -> Result<Found, Failure> {
        let options = ListOffsetsOptions::default().read_committed(at == At::LastStable);
        let place = TopicPartition::new(topic, partition);
        let found = only(self.admin.list_offsets([(place, spec(at))], options).await?)?;
        Ok(Found { offset: found.offset, leader_epoch: found.leader_epoch })
    }

    /// Offsets of many partitions, within `timeout`.
    pub(crate) async fn offsets(
        &self,
        places: &[Place<'_>],
        at: At,
        timeout: Duration,
    ) -> Result<HashMap<(String, i32), Result<Found, Failure>>, Failure> {
        let options = ListOffsetsOptions::default().read_committed(at == At::LastStable).timeout(timeout);
        let specs = places.iter().map(|(topic, partition)| (TopicPartition::new(*topic, *partition), spec(at)));
        let answers = self.admin.list_offsets(specs, options).await?;
        let found =
            |found: krafka::admin::ListedOffset| Found { offset: found.offset, leader_epoch: found.leader_epoch };
        let answers = answers.into_iter();
        Ok(answers.map(|(at, answer)| ((at.topic, at.partition), answer.map(found).map_err(Failure::from))).collect())
    }

    /// The first offset at or after a time; `None` when no record is so late.
    pub(crate) async fn offset_at(&self, place: Place<'_>, timestamp: i64) -> Result<Option<Found>, Failure> {
        // The client reports "none" as OFFSET_NOT_AVAILABLE and asks again until its deadline: look at the newest first.
        let end = self.offset(place, At::HighWatermark).await?.offset;
        let start = self.offset(place, At::Earliest).await?.offset;
        if start == end || !self.has_record_at(place, timestamp).await? {
            return Ok(None);
        }
        self.offset(place, At::Timestamp(timestamp)).await.map(Some)
    }

    /// Whether some record is as late as `timestamp`.
    async fn has_record_at(&self, (topic, partition): Place<'_>, timestamp: i64) -> Result<bool, Failure> {
        let place = TopicPartition::new(topic, partition);
        let spec = [(place, OffsetSpec::MaxTimestamp)];
        match only(self.admin.list_offsets(spec, ListOffsetsOptions::default()).await?) {
            Ok(newest) => Ok(newest.timestamp.is_none_or(|newest| newest >= timestamp)),
            Err(failure) if failure.cause == Cause::Unsupported => Ok(true),
            Err(failure) => Err(failure),
        }
    }

    /// Where the log of a leader epoch ends; `None` where the broker cannot say.
    pub(crate) async fn end_of_epoch(&self, (topic, partition): Place<'_>, epoch: i32) -> Result<Option<i64>, Failure> {
        let place = TopicPartition::new(topic, partition);
        let options = OffsetForLeaderEpochOptions::default();
        match only(self.admin.offset_for_leader_epoch([(place, epoch)], options).await?) {
            Ok(end) => Ok(Some(end.end_offset).filter(|offset| *offset >= 0)),
            Err(failure) if failure.cause == Cause::Unsupported => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// What a consumer group has committed for a partition.
    pub(crate) async fn group_offset(
        &self,
        group: &str,
        (topic, partition): Place<'_>,
    ) -> Result<Option<i64>, Failure> {
        let options =
            ListConsumerGroupOffsetsOptions::default().partitions(vec![TopicPartition::new(topic, partition)]);
        let answers = self.admin.list_consumer_group_offsets(group, options).await?;
        match answers.into_values().next() {
            Some(answer) => Ok(answer?.offset),
            None => Ok(None),
        }
    }

    /// Writes a group's offsets, for monitors.
    pub(crate) async fn set_group_offsets(&self, group: &str, offsets: Vec<(String, i32, i64)>) -> Result<(), Failure> {
        let offsets = offsets.into_iter().map(|(topic, partition, next)| (TopicPartition::new(topic, partition), next));
        let options = AlterConsumerGroupOffsetsOptions::default();
        let answers = self.admin.alter_consumer_group_offsets(group, offsets, options).await?;
        answers.into_values().try_for_each(|answer| answer.map_err(Failure::from))
    }

    /// Some settings of a topic; those the broker does not tell are absent.
    pub(crate) async fn topic_settings(&self, topic: &str, keys: &[&str]) -> Result<HashMap<String, String>, Failure> {
        self.settings(ConfigResource::topic(topic), keys).await
    }

    /// Some settings of a broker.
    pub(crate) async fn broker_settings(&self, broker: i32, keys: &[&str]) -> Result<HashMap<String, String>, Failure> {
        self.settings(ConfigResource::broker(broker), keys).await
    }

    async fn settings(&self, of: ConfigResource, keys: &[&str]) -> Result<HashMap<String, String>, Failure> {
        let names = keys.iter().map(|key| (*key).to_owned()).collect();
        let options = DescribeConfigsOptions::default().config_names(names);
        let entries = only(self.admin.describe_configs([of], options).await?)?;
        Ok(entries.into_iter().filter_map(|entry| Some((entry.name, entry.value?))).collect())
    }

    /// Creates a topic.
    pub(crate) async fn create_topic(&self, topic: &NewTopic) -> Result<(), Failure> {
        let mut request = krafka::admin::NewTopic::new(&topic.name, topic.partitions, topic.replication)?;
        for (key, value) in &topic.configs {
            request = request.with_config(*key, value);
        }
        only(self.admin.create_topics([request], CreateTopicsOptions::default()).await?)
    }
}

/// The answer of a call about one thing.
fn only<K: Eq + Hash, V>(answers: HashMap<K, krafka::Result<V>>) -> Result<V, Failure> {
    match answers.into_values().next() {
        Some(answer) => answer.map_err(Failure::from),
        None => Err(Failure::new(Cause::Other, "the broker gave no answer about what was asked")),
    }
}

fn topic(description: TopicDescription) -> Topic {
    Topic { id: description.topic_id, partitions: description.partitions.iter().map(|p| p.partition).collect() }
}

fn spec(at: At) -> OffsetSpec {
    match at {
        At::Earliest => OffsetSpec::Earliest,
        At::HighWatermark | At::LastStable => OffsetSpec::Latest,
        At::Timestamp(timestamp) => OffsetSpec::Timestamp(timestamp),
    }
}
