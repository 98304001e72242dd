//! What is set about Kafka: defaults, ranges, and the names that Kafka's own configuration has for them.

use super::security::Security;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How the group shares partitions among its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupProtocol {
    /// The members do, by a strategy that all of them have: works with every broker. The default, cooperative-sticky.
    Classic(Balance),
    /// The broker does (KIP-848, Kafka 4): a slow member delays no other. `assignor` is `uniform` or `range`; `None`
    /// leaves it to the broker.
    Consumer {
        /// `group.remote.assignor`.
        assignor: Option<String>,
    },
}

impl Default for GroupProtocol {
    fn default() -> Self {
        Self::Classic(Balance::CooperativeSticky)
    }
}

/// The strategy of a classic group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Partitions stay where they are, and only those that move are given back.
    #[default]
    CooperativeSticky,
    /// Neighbouring partitions, the same numbers of each topic together. Every rebalance drains everything.
    Range,
    /// One after the other. Every rebalance drains everything.
    RoundRobin,
}

/// Where a partition begins that the group has committed nothing for, or whose offset is not in the log any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffsetReset {
    /// With the oldest record. The default: nothing is left out.
    #[default]
    Earliest,
    /// Behind the newest record.
    Latest,
    /// With the first record that is younger than this.
    Since(Duration),
    /// The consumer ends with an error: a person decides.
    Fail,
}

/// What is read of topics that transactions write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Records of committed transactions only. The default.
    #[default]
    ReadCommitted,
    /// Everything, also what is aborted later.
    ReadUncommitted,
}

/// Decides by name whether a topic is subscribed to.
pub(super) type TopicFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) brokers: String,
    pub(super) group: String,
    pub(super) topics: Vec<String>,
    pub(super) matching: Option<TopicFilter>,
    pub(super) protocol: GroupProtocol,
    pub(super) instance_id: Option<String>,
    pub(super) session_timeout: Duration,
    pub(super) heartbeat_interval: Duration,
    pub(super) rebalance_timeout: Duration,
    pub(super) offset_reset: OffsetReset,
    pub(super) isolation: Isolation,
    pub(super) client_id: String,
    pub(super) rack: Option<String>,
    pub(super) fetch_min_bytes: i32,
    pub(super) fetch_max_bytes: i32,
    pub(super) request_timeout: Duration,
    pub(super) metadata_max_age: Duration,
    pub(super) security: Security,
    /// What `client_option` did not understand.
    pub(super) wrong: Vec<String>,
}

impl Settings {
    pub(super) fn new(brokers: String, group: String) -> Self {
        Self {
            brokers,
            group,
            topics: Vec::new(),
            matching: None,
            protocol: GroupProtocol::default(),
            instance_id: None,
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            rebalance_timeout: Duration::from_secs(60),
            offset_reset: OffsetReset::default(),
            isolation: Isolation::default(),
            client_id: "mailer-parallel-consumer".to_owned(),
            rack: None,
            fetch_min_bytes: 1,
            fetch_max_bytes: 50 << 20,
            request_timeout: Duration::from_secs(30),
            metadata_max_age: Duration::from_secs(30),
            security: Security::default(),
            wrong: Vec::new(),
        }
    }

    /// Everything that is wrong with it.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        self.names(&mut wrong);
        self.ranges(&mut wrong);
        wrong.extend(self.security.problems());
        wrong
    }

    fn names(&self, wrong: &mut Vec<String>) {
        if self.brokers.trim().is_empty() {
            wrong.push("no brokers: give host:port, several separated by commas".to_owned());
        }
        if self.group.is_empty() {
            wrong.push("the group id is empty".to_owned());
        }
        if self.topics.is_empty() && self.matching.is_none() {
            wrong.push("no topics: .topics([\"orders\"]) or .topics_matching(..)".to_owned());
        }
        if self.instance_id.as_deref() == Some("") {
            wrong.push("the instance id is empty".to_owned());
        }
    }

    fn ranges(&self, wrong: &mut Vec<String>) {
        let mut range = |name: &str, value: Duration, least: u64, most: u64| {
            if value < Duration::from_secs(least) || value > Duration::from_secs(most) {
                wrong.push(format!("{name} is {value:?}, allowed is {least}s to {most}s"));
            }
        };
        range("session_timeout", self.session_timeout, 6, 1_800);
        range("heartbeat_interval", self.heartbeat_interval, 1, 600);
        range("rebalance_timeout", self.rebalance_timeout, 3, 3_600);
        range("request_timeout", self.request_timeout, 1, 300);
        range("metadata_max_age", self.metadata_max_age, 1, 3_600);
        if self.heartbeat_interval * 3 > self.session_timeout {
            let (beat, session) = (self.heartbeat_interval, self.session_timeout);
            wrong.push(format!("heartbeat_interval {beat:?} must be a third of session_timeout {session:?} at most"));
        }
        if self.fetch_min_bytes < 1 || self.fetch_max_bytes > 50 << 20 || self.fetch_min_bytes > self.fetch_max_bytes {
            let (least, most) = (self.fetch_min_bytes, self.fetch_max_bytes);
            wrong.push(format!("fetch_bytes {least} to {most}: allowed is 1 B to 50 MiB, rising"));
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { brokers, group, topics, protocol, instance_id, security, .. } = self;
        let mut text = f.debug_struct("Kafka");
        text.field("brokers", brokers).field("group", group).field("topics", topics).field("protocol", protocol);
        text.field("instance_id", instance_id).field("security", security).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings { topics: vec!["orders".into()], ..Settings::new("localhost:9092".into(), "g".into()) }
    }

    #[test]
    fn the_defaults_are_in_range() {
        assert_eq!(settings().problems(), Vec::<String>::new());
    }

    #[test]
    fn all_that_is_wrong_is_named() {
        let wrong = Settings {
            brokers: " ".into(),
            group: String::new(),
            topics: Vec::new(),
            session_timeout: Duration::from_secs(6),
            heartbeat_interval: Duration::from_secs(3),
            fetch_max_bytes: 51 << 20,
            instance_id: Some(String::new()),
            ..settings()
        };
        let problems = wrong.problems().join("; ");
        for word in ["no brokers", "group id", "no topics", "heartbeat_interval", "fetch_bytes", "instance id"] {
            assert!(problems.contains(word), "{word}: {problems}");
        }
    }
}
