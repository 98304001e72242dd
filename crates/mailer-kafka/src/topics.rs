//! Messages about topics that are not there or not as they must be: they end in a command that can be copied.

use mailer_core::Error;

/// The command that creates a topic.
pub(crate) fn create_command(bootstrap: &str, topic: &str, partitions: usize, configs: &[(&str, String)]) -> String {
    let configs: String = configs.iter().map(|(key, value)| format!(" --config {key}={value}")).collect();
    format!(
        "kafka-topics.sh --bootstrap-server {bootstrap} --create --topic {topic} --partitions {partitions}{configs}"
    )
}

/// A topic that a source or a sink needs does not exist.
pub(crate) fn missing(bootstrap: &str, topic: &str) -> Error {
    Error::invalid_plan(format!(
        "Kafka topic \"{topic}\" does not exist at {bootstrap}; create it, for example: {}",
        create_command(bootstrap, topic, 4, &[])
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_topic_comes_with_the_command() {
        let error = missing("localhost:9092", "orders");
        assert!(error.message().contains("\"orders\" does not exist"), "{error}");
        assert!(error.message().contains("--create --topic orders --partitions 4"), "{error}");
    }
}
