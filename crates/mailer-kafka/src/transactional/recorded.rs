//! A target as manifests remember it.

use super::marker;
use crate::client::TopicId;
use mailer_core::{Error, RecordedTarget, Result, codec};
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;

/// The identity under which recovery opens a target, whatever the program says now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// For people and messages; the connection is the program's.
    pub(crate) bootstrap: String,
    /// `None` until the target was opened, or where the broker tells none.
    pub(crate) cluster_id: Option<String>,
    pub(crate) transactional_id: String,
    pub(crate) job: String,
    pub(crate) marker_topic: String,
    /// All zero until the target was opened, or where the broker tells none.
    pub(crate) marker_topic_id: TopicId,
}

impl Recorded {
    /// A target that was never opened.
    pub(crate) fn fresh(bootstrap: &str, transactional_id: &str, job: &str) -> Result<Self> {
        if transactional_id.is_empty() {
            return Err(Error::invalid_plan("the transactional id of a Kafka sink is empty; give it a stable name"));
        }
        Ok(Self {
            bootstrap: bootstrap.to_owned(),
            cluster_id: None,
            transactional_id: transactional_id.to_owned(),
            job: job.to_owned(),
            marker_topic: marker::topic_of(job)?,
            marker_topic_id: TopicId::default(),
        })
    }

    pub(crate) fn encode(&self) -> RecordedTarget {
        let mut bytes = vec![VERSION];
        // Plain strings and bytes always encode; a failure would only make the record shorter, and `decode` refuse it.
        let _ = codec::encode(self, &mut bytes);
        RecordedTarget(bytes)
    }

    pub(crate) fn decode(recorded: &RecordedTarget) -> Result<Self> {
        let name = "the Kafka target recorded in the checkpoint";
        match recorded.0.split_first() {
            Some((&VERSION, bytes)) => codec::decode(bytes).map_err(|error| error.context(name)),
            Some((version, _)) => {
                Err(Error::corrupt(format!("{name} has version {version}; this release reads {VERSION}")))
            }
            None => Err(Error::corrupt(format!("{name} is empty"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_was() {
        let mut recorded = Recorded::fresh("localhost:9092", "totals", "orders").unwrap();
        recorded.cluster_id = Some("abc".into());
        recorded.marker_topic_id = [9; 16];
        assert_eq!(Recorded::decode(&recorded.encode()).unwrap(), recorded);
    }

    #[test]
    fn other_versions_and_damage_are_errors() {
        assert!(Recorded::decode(&RecordedTarget(vec![2, 0])).unwrap_err().message().contains("version 2"));
        assert!(Recorded::decode(&RecordedTarget(vec![1, 3])).is_err());
        assert!(Recorded::decode(&RecordedTarget(vec![])).is_err());
    }
}
