//! How a connector reaches its cluster: what source and sink have in common.

use crate::io::within;
use mailer_core::{Error, Result};
use rskafka::BackoffConfig;
use rskafka::client::partition::{PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use std::time::Duration;

/// Bootstrap servers and the topic of one connector.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) bootstrap: String,
    pub(crate) topic: String,
    pub(crate) client_id: String,
    pub(crate) request_timeout: Duration,
}

impl Connection {
    pub(crate) fn new(bootstrap: String, topic: String) -> Self {
        Self { bootstrap, topic, client_id: "mailer".into(), request_timeout: Duration::from_secs(30) }
    }

    /// `kafka orders@localhost:9092, by rskafka`.
    pub(crate) fn describe(&self) -> String {
        format!("kafka {}@{}, by rskafka", self.topic, self.bootstrap)
    }

    pub(crate) fn partition_name(&self, partition: i32) -> String {
        format!("{}-{partition}", self.topic)
    }

    fn addresses(&self) -> Result<Vec<String>> {
        let addresses = self.bootstrap.split(',').map(str::trim).filter(|address| !address.is_empty());
        let addresses: Vec<String> = addresses.map(str::to_owned).collect();
        if addresses.is_empty() || addresses.iter().any(|address| !is_address(address)) {
            let given = &self.bootstrap;
            return Err(Error::invalid_plan(format!(
                "the Kafka bootstrap servers {given:?} are no addresses: give host:port, or several with commas between"
            )));
        }
        Ok(addresses)
    }

    pub(crate) async fn connect(&self) -> Result<Client> {
        // rskafka's own limits: it retries without end and pauses up to 500 s.
        let backoff_config = BackoffConfig {
            max_backoff: Duration::from_secs(1),
            deadline: Some(self.request_timeout),
            ..BackoffConfig::default()
        };
        let client =
            ClientBuilder::new(self.addresses()?).client_id(self.client_id.as_str()).backoff_config(backoff_config);
        within(self.limit(), &format!("connecting to {}", self.bootstrap), client.build()).await
    }

    /// The partitions of the topic, in order.
    pub(crate) async fn partitions(&self, client: &Client) -> Result<Vec<i32>> {
        let topics = within(self.limit(), "listing Kafka topics", client.list_topics()).await?;
        let topic = topics.into_iter().find(|topic| topic.name == self.topic).ok_or_else(|| self.missing())?;
        Ok(topic.partitions.into_iter().collect())
    }

    pub(crate) async fn partition(&self, client: &Client, partition: i32) -> Result<PartitionClient> {
        let made = client.partition_client(self.topic.as_str(), partition, UnknownTopicHandling::Retry);
        within(self.limit(), &format!("connecting to the leader of {}", self.partition_name(partition)), made).await
    }

    /// Behind rskafka's own deadline, which does not end the wait for an answer.
    pub(crate) fn limit(&self) -> Duration {
        self.request_timeout * 2
    }

    fn missing(&self) -> Error {
        let Self { topic, bootstrap, .. } = self;
        Error::invalid_plan(format!(
            "Kafka topic \"{topic}\" does not exist at {bootstrap}; create it, for example: kafka-topics.sh \
             --bootstrap-server {bootstrap} --create --topic {topic} --partitions 4"
        ))
    }
}

fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        let addresses = |text: &str| Connection::new(text.into(), "orders".into()).addresses();
        assert_eq!(addresses("a:1, [::1]:9092,").unwrap(), ["a:1", "[::1]:9092"]);
        for bad in ["", "localhost", "a:1,b", "a:70000", ":1"] {
            assert!(addresses(bad).unwrap_err().message().contains("host:port"), "{bad}");
        }
    }
}
