//! Where a partition is read from: a configured start is looked up, a stored position is checked.

use super::{OnMissingOffset, Position, Settings, Start};
use crate::client::{At, Client, Topic, TopicId};
use mailer_core::{Error, Result, StartAt};

/// The offsets a partition holds now: `low` is the first record, `high` the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

/// Resolves and checks one partition at a time.
pub(crate) struct Resolver<'a> {
    pub(crate) client: &'a Client,
    pub(crate) settings: &'a Settings,
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
}

impl Resolver<'_> {
    pub(crate) async fn resolve(&self, start: StartAt<Position>) -> Result<Position> {
        let topic = self.topic().await?;
        match start {
            StartAt::Position(position) => self.check(position, &topic).await,
            StartAt::Discovered => Ok(Position::at(self.look_up(At::Earliest).await?, topic.id)),
            StartAt::Configured => self.configured(topic.id).await,
        }
    }

    /// Where reading ends in bounded mode.
    pub(crate) async fn end(&self) -> Result<i64> {
        let at = if self.settings.committed { At::LastStable } else { At::HighWatermark };
        self.look_up(at).await
    }

    /// Where reading goes on when `offset` is not in the partition; `None` when it is.
    pub(crate) async fn where_to_jump(&self, offset: i64) -> Result<Option<i64>> {
        Ok(Some(self.within(offset).await?).filter(|to| *to != offset))
    }

    async fn topic(&self) -> Result<Topic> {
        let found = self.client.topic(self.topic).await.map_err(|failure| failure.into_error(self.name()))?;
        let topic = found.ok_or_else(|| gone(&self.name()))?;
        match topic.partitions.contains(&self.partition) {
            true => Ok(topic),
            false => Err(gone(&self.name())),
        }
    }

    async fn configured(&self, id: TopicId) -> Result<Position> {
        let offset = match &self.settings.start {
            Start::Earliest => self.look_up(At::Earliest).await?,
            Start::Latest => self.end().await?,
            Start::Timestamp(timestamp) => self.at_time(*timestamp).await?,
            Start::Offsets(offsets) => self.chosen(offsets.get(&(self.topic.to_owned(), self.partition))).await?,
            Start::Group(group) => self.chosen(self.committed(group).await?.as_ref()).await?,
        };
        Ok(Position::at(offset, id))
    }

    async fn at_time(&self, timestamp: i64) -> Result<i64> {
        let found = self.client.offset_at((self.topic, self.partition), timestamp).await;
        match found.map_err(|failure| failure.into_error(self.name()))? {
            Some(found) => Ok(found.offset),
            None => self.end().await,
        }
    }

    async fn committed(&self, group: &str) -> Result<Option<i64>> {
        let found = self.client.group_offset(group, (self.topic, self.partition)).await;
        found.map_err(|failure| failure.into_error(format!("reading the offsets of group \"{group}\"")))
    }

    /// An offset somebody named, if it is there.
    async fn chosen(&self, offset: Option<&i64>) -> Result<i64> {
        match offset {
            Some(offset) => self.within(*offset).await,
            None => self.look_up(At::Earliest).await,
        }
    }

    async fn check(&self, position: Position, topic: &Topic) -> Result<Position> {
        check_identity(&self.name(), position.topic_id, topic.id)?;
        let offset = self.within(position.offset).await?;
        if offset != position.offset {
            return Ok(Position::at(offset, topic.id));
        }
        match self.truncated_at(position).await? {
            None => Ok(Position { topic_id: topic.id, ..position }),
            Some(end) => Ok(Position::at(self.truncated(position, end).await?, topic.id)),
        }
    }

    async fn within(&self, offset: i64) -> Result<i64> {
        let range = self.range().await?;
        match (range.low..=range.high).contains(&offset) {
            true => Ok(offset),
            false => decide_missing(self.settings.on_missing_offset, &self.name(), offset, range),
        }
    }

    /// Where the log of the position's leader epoch ends, when that is before the position.
    async fn truncated_at(&self, position: Position) -> Result<Option<i64>> {
        let Some(epoch) = position.leader_epoch else { return Ok(None) };
        let end = self.client.end_of_epoch((self.topic, self.partition), epoch).await;
        let end = end.map_err(|failure| failure.into_error(self.name()))?;
        Ok(end.filter(|end| *end < position.offset))
    }

    async fn truncated(&self, position: Position, end: i64) -> Result<i64> {
        let range = Range { high: end, ..self.range().await? };
        decide_missing(self.settings.on_missing_offset, &self.name(), position.offset, range)
    }

    async fn range(&self) -> Result<Range> {
        let (low, high) = tokio::try_join!(self.look_up(At::Earliest), self.look_up(At::HighWatermark))?;
        Ok(Range { low, high })
    }

    async fn look_up(&self, at: At) -> Result<i64> {
        let found = self.client.offset((self.topic, self.partition), at).await;
        Ok(found.map_err(|failure| failure.into_error(format!("looking up offsets of {}", self.name())))?.offset)
    }

    fn name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }
}

fn gone(name: &str) -> Error {
    Error::refused(format!(
        "Kafka partition {name} is in the checkpoint but not in the cluster: it was deleted, or this is another cluster"
    ))
}

/// Both ids known and different: what was read before is not what would be read now.
pub(crate) fn check_identity(name: &str, stored: TopicId, found: TopicId) -> Result<()> {
    let known = |id: TopicId| id != TopicId::default();
    if !known(stored) || !known(found) || stored == found {
        return Ok(());
    }
    Err(Error::refused(format!(
        "the topic of {name} was deleted and created again (topic id {} in the checkpoint, {} now): its offsets mean \
         other records; start the job afresh",
        hex(stored),
        hex(found)
    )))
}

fn decide_missing(policy: OnMissingOffset, name: &str, offset: i64, range: Range) -> Result<i64> {
    let Range { low, high } = range;
    let to = match policy {
        OnMissingOffset::Earliest => low,
        OnMissingOffset::Latest => high,
        OnMissingOffset::Fail => {
            return Err(Error::refused(format!(
                "{name}: offset {offset} is not in the partition, which holds {low} to {high}: records were deleted by \
                 retention or lost; `on_missing_offset(Earliest)` or `(Latest)` goes on without them"
            )));
        }
    };
    tracing::warn!(partition = name, offset, low, high, to, "records are missing; exactly-once does not hold for them");
    Ok(to)
}

/// The log has become shorter than what was read from it.
pub(crate) fn truncated(policy: OnMissingOffset, name: &str, next: i64, back_to: i64) -> Result<()> {
    if policy == OnMissingOffset::Fail {
        return Err(Error::refused(format!(
            "{name}: the partition's log was cut back to offset {back_to} after offset {next} had been reached (an \
             unclean leader election): records that were read do not exist any more; `on_missing_offset(Earliest)` or \
             `(Latest)` goes on with what is there"
        )));
    }
    tracing::warn!(partition = name, next, back_to, "the log was cut back; exactly-once does not hold here");
    Ok(())
}

pub(crate) fn hex(id: TopicId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Range = Range { low: 10, high: 20 };

    #[test]
    fn a_missing_offset_follows_the_policy() {
        assert_eq!(decide_missing(OnMissingOffset::Earliest, "orders-0", 3, RANGE).unwrap(), 10);
        assert_eq!(decide_missing(OnMissingOffset::Latest, "orders-0", 3, RANGE).unwrap(), 20);
        let error = decide_missing(OnMissingOffset::Fail, "orders-0", 3, RANGE).unwrap_err();
        for part in ["orders-0", "offset 3", "10 to 20", "`on_missing_offset"] {
            assert!(error.message().contains(part), "{error} lacks {part}");
        }
    }

    #[test]
    fn identities_are_compared_where_both_are_known() {
        check_identity("orders-0", [0; 16], [1; 16]).unwrap();
        check_identity("orders-0", [1; 16], [1; 16]).unwrap();
        assert!(check_identity("orders-0", [2; 16], [1; 16]).unwrap_err().message().contains("created again"));
    }
}
