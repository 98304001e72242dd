//! Settings of topics and brokers.

use super::{Cause, Client, Failure, retry};
use crate::net::Connection;
use kafka_protocol::messages::DescribeConfigsRequest;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::protocol::StrBytes;
use std::collections::HashMap;

/// `ConfigResource.Type` of Kafka.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;

impl Client {
    /// Some settings of a topic; those the broker does not tell are absent.
    pub(crate) async fn topic_settings(&self, topic: &str, keys: &[&str]) -> Result<HashMap<String, String>, Failure> {
        retry::within(self.request_timeout, || async { settings(&self.net().any().await?, TOPIC, topic, keys).await })
            .await
    }

    /// Some settings of a broker, which only itself knows: of the first that answers. They are not asked twice, for one of them
    /// may be gone.
    pub(crate) async fn broker_settings(&self, keys: &[&str]) -> Result<HashMap<String, String>, Failure> {
        let mut last = Failure::new(Cause::Retriable, "the cluster has no brokers");
        for broker in self.net().brokers() {
            let ask = async {
                settings(&self.net().connection(broker.id).await?, BROKER, &broker.id.to_string(), keys).await
            };
            match ask.await {
                Err(failure) if failure.cause == Cause::Retriable => last = failure,
                told => return told,
            }
        }
        Err(last)
    }
}

async fn settings(
    connection: &Connection,
    kind: i8,
    name: &str,
    keys: &[&str],
) -> Result<HashMap<String, String>, Failure> {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let resource = DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configuration_keys(Some(keys.iter().copied().map(text).collect()));
    let response = connection.call(&DescribeConfigsRequest::default().with_resources(vec![resource])).await?;
    let doing = format!("reading the settings of {name} at {}", connection.peer());
    let Some(told) = response.results.into_iter().next() else { return Err(Failure::unanswered(doing)) };
    Failure::unless_ok(told.error_code, told.error_message.as_deref(), doing)?;
    let entries = told.configs.into_iter().filter_map(|entry| Some((entry.name.to_string(), entry.value?.to_string())));
    Ok(entries.collect())
}
