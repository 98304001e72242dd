//! The tables that Kafka's tools print, as values.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// One line of `TransactionsCommand list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The transactional id.
    pub id: String,
    /// Its producer id.
    pub producer_id: i64,
    /// The coordinator's word for where it stands: `Empty`, `Ongoing`, `CompleteCommit`, …
    pub state: String,
}

impl Transaction {
    /// Whether readers of committed records have to wait for it.
    pub fn is_open(&self) -> bool {
        !matches!(self.state.as_str(), "Empty" | "CompleteCommit" | "CompleteAbort" | "Dead")
    }
}

/// One line of `GetOffsetShell`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndOffset {
    pub(super) topic: String,
    pub(super) partition: i32,
    /// Where the next record would go.
    pub(super) end: i64,
}

/// One line of `ConsumerGroupCommand --describe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPosition {
    /// The group.
    pub group: String,
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The committed position, if there is one.
    pub position: Option<i64>,
    /// The end of the log.
    pub end: Option<i64>,
}

/// `Feature: transaction.version  SupportedMinVersion: 0 … FinalizedVersionLevel: 2  Epoch: 15`
pub(super) fn features(text: &str) -> BTreeMap<String, String> {
    let value_after = |words: &[&str], label: &str| {
        let at = words.iter().position(|word| *word == label)?;
        words.get(at + 1).map(|word| (*word).to_owned())
    };
    text.lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Some((value_after(&words, "Feature:")?, value_after(&words, "FinalizedVersionLevel:")?))
        })
        .collect()
}

/// A heading, then `id <TAB> coordinator <TAB> producer id <TAB> state <TAB>`, padded with spaces.
pub(super) fn transactions(text: &str) -> Result<Vec<Transaction>> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    if !lines.next().is_some_and(|heading| heading.starts_with("TransactionalId")) {
        bail!("not a table of transactions: {text:?}");
    }
    lines.map(transaction).collect()
}

fn transaction(line: &str) -> Result<Transaction> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    let [id, _coordinator, producer_id, state, ..] = fields[..] else {
        bail!("not a line of the table of transactions: {line:?}");
    };
    let producer_id = producer_id.parse().with_context(|| format!("not a producer id: {producer_id:?}"))?;
    Ok(Transaction { id: id.to_owned(), producer_id, state: state.to_owned() })
}

/// `topic:partition:offset`
pub(super) fn offsets(text: &str) -> Result<Vec<EndOffset>> {
    text.lines().filter(|line| !line.trim().is_empty()).map(offset).collect()
}

fn offset(line: &str) -> Result<EndOffset> {
    let mut parts = line.trim().rsplitn(3, ':');
    let row = || format!("not a line with an offset: {line:?}");
    let mut part = || parts.next().with_context(row);
    let (end, partition, topic) = (part()?, part()?, part()?);
    let (end, partition) = (end.parse().with_context(row)?, partition.parse().with_context(row)?);
    Ok(EndOffset { topic: topic.to_owned(), partition, end })
}

/// The topics with a partition whose end no group has reached, or that have no partition at all.
pub(super) fn fell_short(topics: &[&str], ends: &[EndOffset], positions: &[GroupPosition]) -> BTreeSet<String> {
    let reached = |end: &EndOffset| {
        let here = |at: &GroupPosition| at.topic == end.topic && at.partition == end.partition;
        end.end == 0 || positions.iter().any(|at| here(at) && at.position == Some(end.end))
    };
    let read = |topic: &str| {
        let mut partitions = ends.iter().filter(|end| end.topic == topic).peekable();
        partitions.peek().is_some() && partitions.all(reached)
    };
    topics.iter().filter(|topic| !read(topic)).map(|topic| (*topic).to_owned()).collect()
}

/// A heading, then `group  topic  partition  position  end  …`, with `-` for what is not known. A group that nobody has joined
/// has no positions: its reader was too slow.
pub(super) fn group_positions(text: &str) -> Result<Vec<GroupPosition>> {
    let lines = text.lines().filter(|line| !line.contains("GroupIdNotFoundException"));
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.filter(|words| words.len() >= 5 && words[0] != "GROUP").map(|words| group_position(&words)).collect()
}

fn group_position(words: &[&str]) -> Result<GroupPosition> {
    Ok(GroupPosition {
        group: words[0].to_owned(),
        topic: words[1].to_owned(),
        partition: words[2].parse().with_context(|| format!("not a line of a group: {words:?}"))?,
        position: words[3].parse().ok(),
        end: words[4].parse().ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a machine that is busy a reader may end before it has joined its group.
    #[test]
    fn a_group_that_nobody_has_joined_has_no_positions() {
        let text = "\nError: Executing consumer group command failed due to \
                    org.apache.kafka.common.errors.GroupIdNotFoundException: Group xtask-reader-1 not found.\n";
        assert!(group_positions(text).unwrap().is_empty());
        assert!(group_positions("Error: Executing consumer group command failed").is_err());
    }

    #[test]
    fn finalized_features_are_read() {
        let text = "Feature: group.version      SupportedMinVersion: 0  SupportedMaxVersion: 1  FinalizedVersionLevel: 1  Epoch: 15\n\
                    Feature: transaction.version  SupportedMinVersion: 0  SupportedMaxVersion: 2  FinalizedVersionLevel: 2  Epoch: 15\n";
        assert_eq!(features(text)["transaction.version"], "2");
        assert!(features("").is_empty());
    }

    #[test]
    fn transactions_are_open_until_their_end_is_complete() {
        let text = "TransactionalId\tCoordinator\tProducerId\tTransactionState\t\n\
                    orders\t1          \t1000      \tCompleteCommit  \t\nmy id\t1\t1001\tOngoing\t\n";
        let found = transactions(text).unwrap();
        assert_eq!((found[0].id.as_str(), found[0].producer_id, found[0].is_open()), ("orders", 1000, false));
        assert_eq!((found[1].id.as_str(), found[1].is_open()), ("my id", true));
        assert!(transactions("").is_err());
    }

    fn end(topic: &str, partition: i32, end: i64) -> EndOffset {
        EndOffset { topic: topic.into(), partition, end }
    }

    #[test]
    fn offsets_are_read_from_the_right() {
        assert_eq!(offsets("t:0:3\na.b:1:0\n").unwrap(), [end("t", 0, 3), end("a.b", 1, 0)]);
        assert!(offsets("nonsense").is_err());
    }

    #[test]
    fn a_topic_is_read_when_every_partition_with_records_is() {
        let ends = [end("a", 0, 3), end("a", 1, 0), end("b", 0, 1)];
        let at = |position| {
            let (group, topic) = ("g".to_owned(), "a".to_owned());
            GroupPosition { group, topic, partition: 0, position: Some(position), end: Some(3) }
        };
        assert!(fell_short(&["a"], &ends, &[at(3)]).is_empty());
        assert_eq!(fell_short(&["a"], &ends, &[at(2)]), BTreeSet::from(["a".to_owned()]));
        let both = BTreeSet::from(["b".to_owned(), "unknown".to_owned()]);
        assert_eq!(fell_short(&["a", "b", "unknown"], &ends, &[at(3)]), both);
    }

    #[test]
    fn a_group_without_a_position_says_so() {
        let text = "\nGROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG\ng1  t1  0  3  4  1 - - -\ng1  t1  1  -  0  - - - -\n";
        let found = group_positions(text).unwrap();
        assert_eq!((found[0].position, found[0].end), (Some(3), Some(4)));
        assert_eq!((found[1].partition, found[1].position), (1, None));
    }
}
