//! The cluster and its topics.

use super::{Client, Cluster, Failure, NewTopic, Topic, retry};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{CreateTopicsRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

impl Client {
    /// The topic as it is now, or `None`.
    pub(crate) async fn topic(&self, name: &str) -> Result<Option<Topic>, Failure> {
        retry::within(self.request_timeout, || self.net().topic(name)).await
    }

    /// The cluster's id and brokers.
    pub(crate) async fn cluster(&self) -> Result<Cluster, Failure> {
        retry::within(self.request_timeout, || self.net().refresh()).await?;
        let brokers = self.net().brokers().iter().map(|broker| broker.id).collect();
        Ok(Cluster { id: self.net().id(), brokers })
    }

    /// Creates a topic. After an answer that was lost, a second attempt may find its own topic: `Cause::Exists`.
    pub(crate) async fn create_topic(&self, topic: &NewTopic) -> Result<(), Failure> {
        retry::within(self.request_timeout, || self.create_once(topic)).await
    }

    async fn create_once(&self, topic: &NewTopic) -> Result<(), Failure> {
        let connection = self.net().controller().await?;
        let timeout = i32::try_from(self.request_timeout.as_millis()).unwrap_or(i32::MAX);
        let request = CreateTopicsRequest::default().with_topics(vec![creatable(topic)]).with_timeout_ms(timeout);
        let response = connection.call(&request).await?;
        let doing = format!("creating topic \"{}\" at {}", topic.name, connection.peer());
        let Some(told) = response.topics.first() else { return Err(Failure::unanswered(doing)) };
        let created = Failure::unless_ok(told.error_code, told.error_message.as_deref(), doing);
        if created.as_ref().is_err_and(|failure| failure.is(ResponseError::NotController)) {
            self.net().refresh().await?;
        }
        created
    }
}

fn creatable(topic: &NewTopic) -> CreatableTopic {
    let config = |(key, value): &(&'static str, String)| {
        let value = Some(StrBytes::from_string(value.clone()));
        CreatableTopicConfig::default().with_name(StrBytes::from_static_str(key)).with_value(value)
    };
    CreatableTopic::default()
        .with_name(TopicName(StrBytes::from_string(topic.name.clone())))
        .with_num_partitions(topic.partitions)
        .with_replication_factor(topic.replication)
        .with_configs(topic.configs.iter().map(config).collect())
}
