//! The marker topic: one compacted partition per job, in which every transaction says which checkpoint it published.

use super::newest::{Found, newest};
use crate::client::{At, Cause, Client, Cluster, Failure, NewTopic, Topic};
use crate::record::OutRecord;
use crate::topics;
use mailer_core::{CheckpointId, Error, Marker, Nonce, OwnerEpoch, PublishedId, Result};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const PREFIX: &str = "__mailer_marker.";
/// Kafka's longest topic name.
const NAME: usize = 249;
const POLICY: &str = "cleanup.policy";
const VERSION: u32 = 1;
/// Most jobs find their newest marker among the last so many offsets.
const RECENT: i64 = 1_024;
/// Between two looks for a topic that was just created.
const PAUSE: Duration = Duration::from_millis(100);

/// The marker topic of a job.
pub(crate) fn topic_of(job: &str) -> Result<String> {
    let name = format!("{PREFIX}{job}");
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if job.is_empty() || name.len() > NAME || !job.bytes().all(legal) {
        return Err(Error::invalid_plan(format!(
            "the job name {job:?} cannot name a Kafka topic ({PREFIX}<job>): use letters, digits, '.', '_' and '-', at \
             most {} of them",
            NAME - PREFIX.len()
        )));
    }
    Ok(name)
}

// Its records.

/// The value of a marker record: JSON, to be read by people too.
#[derive(Debug, Serialize, Deserialize)]
struct Value {
    version: u32,
    job: String,
    checkpoint: u64,
    /// Sixteen hex digits.
    nonce: String,
    owner_epoch: u64,
}

/// The record that says what a transaction publishes.
pub(crate) fn record(transactional_id: &str, marker: &Marker) -> Result<OutRecord> {
    let value = Value {
        version: VERSION,
        job: marker.job.clone(),
        checkpoint: marker.published.checkpoint.0,
        nonce: format!("{:016x}", marker.published.nonce.0),
        owner_epoch: marker.epoch.0,
    };
    let value = serde_json::to_vec(&value).map_err(|e| Error::internal("a marker does not encode").caused_by(e))?;
    let record = OutRecord::value(value).with_key(transactional_id.to_owned());
    Ok(OutRecord { partition: Some(0), ..record })
}

fn parse(topic: &str, record: &Found) -> Result<Marker> {
    let bytes = record.value.as_deref().ok_or_else(|| unreadable(topic, record, "it was deleted by a tombstone"))?;
    let value: Value = serde_json::from_slice(bytes).map_err(|e| unreadable(topic, record, &e.to_string()))?;
    if value.version != VERSION {
        return Err(unreadable(topic, record, &format!("it has version {}", value.version)));
    }
    let nonce = u64::from_str_radix(&value.nonce, 16).map_err(|e| unreadable(topic, record, &e.to_string()))?;
    let published = PublishedId { checkpoint: CheckpointId(value.checkpoint), nonce: Nonce(nonce) };
    Ok(Marker { job: value.job, published, epoch: OwnerEpoch(value.owner_epoch) })
}

fn unreadable(topic: &str, record: &Found, why: &str) -> Error {
    Error::refused(format!(
        "the marker in {topic} at offset {} cannot be read ({why}), so it is not known what was published; restore it, or \
         start a new lineage under another transactional id",
        record.offset
    ))
}

// Reading it.

/// The newest marker of a transactional id, as read-committed readers see it. Call it only after the id was claimed: the
/// fate of every earlier transaction is final then, and their control records are in the log.
pub(crate) async fn last(client: &Client, topic: &str, transactional_id: &str) -> Result<Option<Marker>> {
    let failed = |failure: Failure| failure.into_error(format!("reading the marker in {topic}"));
    let low = client.offset((topic, 0), At::Earliest).await.map_err(failed)?.offset;
    let high = client.offset((topic, 0), At::HighWatermark).await.map_err(failed)?.offset;
    let recent = low.max(high - RECENT);
    let mut found = newest(client, topic, transactional_id, recent, high).await?;
    if found.is_none() && recent > low {
        found = newest(client, topic, transactional_id, low, recent).await?;
    }
    found.map(|record| parse(topic, &record)).transpose()
}

// The topic.

/// Finds or creates the marker topic and refuses one that would lose markers.
pub(crate) async fn ensure(client: &Client, cluster: &Cluster, name: &str, must_exist: bool) -> Result<Topic> {
    let failed = |failure: Failure| failure.into_error(format!("looking for marker topic {name}"));
    let topic = match client.topic(name).await.map_err(failed)? {
        Some(topic) => topic,
        None if must_exist => return Err(lost(name)),
        None => create(client, cluster, name).await?,
    };
    check(client, name, &topic).await?;
    Ok(topic)
}

fn lost(name: &str) -> Error {
    Error::refused(format!(
        "marker topic {name} is recorded in the checkpoint but not in the cluster, so it is not known what was published; \
         going on would risk repeating output. Start a new lineage under another transactional id"
    ))
}

async fn check(client: &Client, name: &str, topic: &Topic) -> Result<()> {
    if topic.partitions.len() != 1 {
        return Err(Error::invalid_plan(format!(
            "marker topic {name} has {} partitions and needs exactly 1; delete it, it is created again",
            topic.partitions.len()
        )));
    }
    match client.topic_settings(name, &[POLICY]).await {
        Ok(settings) => check_policy(name, settings.get(POLICY).map(String::as_str)),
        Err(failure) if matches!(failure.cause, Cause::Denied | Cause::Unsupported) => {
            tracing::warn!(topic = name, %failure, "the settings of the marker topic cannot be read: assuming compaction");
            Ok(())
        }
        Err(failure) => Err(failure.into_error(format!("reading the settings of marker topic {name}"))),
    }
}

fn check_policy(name: &str, policy: Option<&str>) -> Result<()> {
    match policy {
        None | Some("compact") => Ok(()),
        Some(policy) => Err(Error::refused(format!(
            "marker topic {name} has {POLICY}={policy}, so the marker of a job at rest would be deleted; set it: \
             kafka-configs.sh --bootstrap-server <brokers> --alter --topic {name} --add-config {POLICY}=compact"
        ))),
    }
}

async fn create(client: &Client, cluster: &Cluster, name: &str) -> Result<Topic> {
    let topic = wanted(name, cluster.brokers.len());
    match client.create_topic(&topic).await {
        Ok(()) => {}
        Err(failure) if failure.cause == Cause::Exists => {}
        Err(failure) if failure.cause == Cause::Retriable => {
            return Err(failure.into_error(format!("creating marker topic {name}")));
        }
        Err(failure) => return Err(cannot_create(client.bootstrap(), &topic, &failure)),
    }
    appeared(client, name).await
}

fn wanted(name: &str, brokers: usize) -> NewTopic {
    let replication = brokers.clamp(1, 3);
    let mut configs = vec![(POLICY, "compact".to_owned())];
    if replication >= 2 {
        configs.push(("min.insync.replicas", "2".to_owned()));
    }
    NewTopic { name: name.to_owned(), partitions: 1, replication: replication as i16, configs }
}

fn cannot_create(bootstrap: &str, topic: &NewTopic, failure: &Failure) -> Error {
    let command = topics::create_command(bootstrap, &topic.name, 1, &topic.configs);
    Error::invalid_plan(format!(
        "marker topic {} does not exist and could not be created ({failure}); create it: {command} \
         --replication-factor {}",
        topic.name, topic.replication
    ))
}

/// A created topic is known to every broker a little later.
async fn appeared(client: &Client, name: &str) -> Result<Topic> {
    let looking = async {
        loop {
            if let Ok(Some(topic)) = client.topic(name).await
                && client.offset((name, 0), At::Earliest).await.is_ok()
            {
                return topic;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(client.request_timeout(), looking)
        .await
        .map_err(|_| Error::unavailable(format!("marker topic {name} was created but does not appear")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Option<&str>) -> Result<Marker> {
        let record = Found { offset: 9, value: value.map(|text| bytes::Bytes::from(text.to_owned())) };
        parse("m", &record)
    }

    fn marker() -> Marker {
        let published = PublishedId { checkpoint: CheckpointId(7), nonce: Nonce(u64::MAX - 1) };
        Marker { job: "orders".into(), published, epoch: OwnerEpoch(3) }
    }

    /// Markers live as long as the job: this text is read by every later release.
    #[test]
    fn the_stored_form_stays() {
        let record = record("totals", &marker()).unwrap();
        let text = r#"{"version":1,"job":"orders","checkpoint":7,"nonce":"fffffffffffffffe","owner_epoch":3}"#;
        assert_eq!(record.value.as_deref(), Some(text.as_bytes()));
        assert_eq!(record.key.as_deref(), Some(&b"totals"[..]));
        assert_eq!(read(Some(text)).unwrap(), marker());
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_never_none() {
        for value in [None, Some("{}"), Some(r#"{"version":2,"job":"o","checkpoint":7,"nonce":"0","owner_epoch":3}"#)] {
            let error = read(value).unwrap_err();
            assert_eq!(error.kind(), mailer_core::ErrorKind::Refused, "{error}");
        }
    }

    #[test]
    fn a_job_name_must_fit_a_topic() {
        assert_eq!(topic_of("orders").unwrap(), "__mailer_marker.orders");
        for job in ["", "my job", &"x".repeat(300)] {
            assert!(topic_of(job).unwrap_err().message().contains("letters, digits"));
        }
    }

    #[test]
    fn replication_follows_the_number_of_brokers() {
        let replication = |brokers| (wanted("m", brokers).replication, wanted("m", brokers).configs.len());
        assert_eq!([1, 2, 3, 9].map(replication), [(1, 1), (2, 2), (3, 2), (3, 2)]);
    }

    #[test]
    fn a_policy_that_deletes_is_refused() {
        check_policy("m", Some("compact")).unwrap();
        for policy in ["delete", "compact,delete"] {
            assert!(check_policy("m", Some(policy)).unwrap_err().message().contains(policy));
        }
    }
}
