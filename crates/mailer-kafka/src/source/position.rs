//! Where a partition stands, as checkpoints keep it.

use crate::client::TopicId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Resume here: the next offset to hand out, and what proves that it is still the same log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The next offset.
    pub offset: i64,
    /// The leader epoch of the batch just before; `None` when nothing before was read (a start offset). Reveals a truncated
    /// log.
    pub leader_epoch: Option<i32>,
    /// The topic's id; all zero where the broker tells none. Reveals a topic that was deleted and created again.
    pub topic_id: [u8; 16],
}

impl Position {
    pub(crate) fn at(offset: i64, topic_id: TopicId) -> Self {
        Self { offset, leader_epoch: None, topic_id }
    }
}

/// Where the first start of a job begins.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Start {
    /// At the first record that is left.
    #[default]
    Earliest,
    /// At the end: only what is written from now on.
    Latest,
    /// At the first record at or after this time, in ms since the Unix epoch; at the end when none is so late.
    Timestamp(i64),
    /// At these offsets, by topic and partition; partitions that are not named begin at the first record.
    Offsets(BTreeMap<(String, i32), i64>),
    /// At the offsets a consumer group has committed; partitions it has none for begin at the first record.
    Group(String),
}

impl Start {
    /// Offsets of one topic.
    ///
    /// ```
    /// use mailer_kafka::Start;
    /// let start = Start::offsets("orders", [(0, 17), (1, 4)]);
    /// ```
    pub fn offsets(topic: impl Into<String>, offsets: impl IntoIterator<Item = (i32, i64)>) -> Self {
        let topic = topic.into();
        Self::Offsets(offsets.into_iter().map(|(partition, offset)| ((topic.clone(), partition), offset)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::codec;

    /// Checkpoints hold these bytes.
    #[test]
    fn the_stored_form_stays() {
        let position = Position { offset: 42, leader_epoch: Some(3), topic_id: [7; 16] };
        let mut bytes = Vec::new();
        codec::encode(&position, &mut bytes).unwrap();
        let expected: Vec<u8> = [vec![84, 1, 6], vec![7; 16]].concat();
        assert_eq!(bytes, expected);
        assert_eq!(codec::decode::<Position>(&bytes).unwrap(), position);
    }
}
