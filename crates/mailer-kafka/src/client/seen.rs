//! What a tool asks: rights on topics, and the state of transactions.

use super::producer::Identity;
use super::retry::within;
use super::{Client, Failure};
use crate::admin::TopicSeen;
use crate::net::CoordinatorOf;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{DescribeTransactionsRequest, MetadataRequest, TopicName, TransactionalId};
use kafka_protocol::protocol::StrBytes;
use std::time::Duration;

/// Bits of `AclOperation`.
const READ: u32 = 3;
const WRITE: u32 = 4;
/// The first version of Metadata that tells rights.
const TELLS_RIGHTS: i16 = 8;
/// The timeout of the transaction that a take-over could open, and does not.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A transactional id as its coordinator sees it.
#[derive(Clone, Debug)]
pub(crate) struct TransactionSeen {
    pub(crate) state: String,
    pub(crate) identity: Identity,
    /// -1 while none is open.
    pub(crate) since: i64,
    pub(crate) timeout: Duration,
    pub(crate) partitions: Vec<String>,
}

impl Client {
    /// A topic, and our rights on it.
    pub(crate) async fn topic_seen(&self, name: &str) -> Result<Option<TopicSeen>, Failure> {
        within(self.request_timeout(), || self.topic_seen_once(name)).await
    }

    async fn topic_seen_once(&self, name: &str) -> Result<Option<TopicSeen>, Failure> {
        let connection = self.net().any().await?;
        let version = connection.version::<MetadataRequest>()?;
        let topic = TopicName(StrBytes::from_string(name.to_owned()));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![MetadataRequestTopic::default().with_name(Some(topic))]))
            .with_include_topic_authorized_operations(version >= TELLS_RIGHTS)
            .with_allow_auto_topic_creation(false);
        let response = connection.call_at(version, &request).await?;
        let doing = format!("reading topic \"{name}\" at {}", connection.peer());
        let Some(told) = response.topics.first() else { return Err(Failure::unanswered(doing)) };
        if told.error_code == ResponseError::UnknownTopicOrPartition.code() {
            return Ok(None);
        }
        Failure::unless_ok(told.error_code, None, doing)?;
        let bits = told.topic_authorized_operations;
        let may = |operation: u32| (version >= TELLS_RIGHTS && bits != i32::MIN).then(|| bits & (1 << operation) != 0);
        Ok(Some(TopicSeen { partitions: told.partitions.len(), may_read: may(READ), may_write: may(WRITE) }))
    }

    /// What the coordinator knows of a transactional id.
    pub(crate) async fn transaction_seen(&self, id: &str) -> Result<Option<TransactionSeen>, Failure> {
        within(self.request_timeout(), || self.transaction_seen_once(id)).await
    }

    async fn transaction_seen_once(&self, id: &str) -> Result<Option<TransactionSeen>, Failure> {
        let broker = self.net().coordinator(CoordinatorOf::Transactions(id)).await?;
        let connection = self.net().connection(broker).await?;
        let asked = TransactionalId(StrBytes::from_string(id.to_owned()));
        let request = DescribeTransactionsRequest::default().with_transactional_ids(vec![asked]);
        let response = connection.call(&request).await?;
        let doing = format!("describing transactional id \"{id}\" at {}", connection.peer());
        let Some(told) = response.transaction_states.into_iter().next() else {
            return Err(Failure::unanswered(doing));
        };
        if told.error_code == ResponseError::TransactionalIdNotFound.code() {
            return Ok(None);
        }
        Failure::unless_ok(told.error_code, None, doing)?;
        let topics = told.topics.iter();
        let partitions =
            topics.flat_map(|topic| topic.partitions.iter().map(|n| format!("{}-{n}", topic.topic.as_str())));
        Ok(Some(TransactionSeen {
            state: told.transaction_state.to_string(),
            identity: Identity { id: told.producer_id.0, epoch: told.producer_epoch },
            since: told.transaction_start_time_ms,
            timeout: Duration::from_millis(u64::try_from(told.transaction_timeout_ms).unwrap_or_default()),
            partitions: partitions.collect(),
        }))
    }

    /// Claims a transactional id and lets it go.
    pub(crate) async fn take_over(&self, id: &str) -> Result<(), Failure> {
        within(self.request_timeout(), || self.claim(id, TIMEOUT)).await.map(drop)
    }
}
