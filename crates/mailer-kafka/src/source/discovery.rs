//! Which partitions there are: looked up when the source starts, and again from time to time.

use super::Settings;
use super::queue::Queue;
use super::resolve::check_identity;
use crate::client::{Client, Topic, TopicId};
use crate::topics;
use mailer_core::{Result, SplitId};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// The partitions known now. Shared by the worker, which reads it, and the task that looks for new ones.
pub(crate) struct Known {
    topics: Vec<(String, TopicId)>,
    splits: Mutex<Vec<SplitId>>,
}

impl Known {
    /// The first look; a topic that is not there is an error.
    pub(crate) async fn look(client: &Client, settings: &Settings) -> Result<Self> {
        let mut known = Self { topics: Vec::new(), splits: Mutex::default() };
        for name in &settings.topics {
            let found = client.topic(name).await.map_err(|f| f.into_error(format!("reading topic \"{name}\"")))?;
            let topic = found.ok_or_else(|| topics::missing(client.bootstrap(), name))?;
            known.topics.push((name.clone(), topic.id));
            known.add(known.topics.len() - 1, settings.topics.len(), &topic);
        }
        Ok(known)
    }

    pub(crate) fn splits(&self) -> Vec<SplitId> {
        self.splits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The topic and partition a split name stands for.
    pub(crate) fn place(&self, split: &SplitId) -> Option<(&str, i32)> {
        let (topic, partition) = split.name.rsplit_once('-')?;
        let (topic, _) = self.topics.iter().find(|(name, _)| name == topic)?;
        Some((topic, partition.parse().ok()?))
    }

    /// Adds what is new; whether something was. A partition's number stays when others are added.
    fn add(&self, position: usize, topics: usize, topic: &Topic) -> bool {
        let name = &self.topics[position].0;
        let mut splits = self.splits.lock().unwrap_or_else(PoisonError::into_inner);
        let before = splits.len();
        for partition in &topic.partitions {
            let index = *partition as u32 * topics as u32 + position as u32;
            let split = SplitId::new(format!("{name}-{partition}"), index);
            if !splits.contains(&split) {
                splits.push(split);
            }
        }
        splits.len() > before
    }

    async fn refresh(&self, client: &Client) -> Result<bool> {
        let mut grown = false;
        for (position, (name, id)) in self.topics.iter().enumerate() {
            match client.topic(name).await {
                Ok(Some(topic)) => {
                    check_identity(name, *id, topic.id)?;
                    grown |= self.add(position, self.topics.len(), &topic);
                }
                Ok(None) => tracing::warn!(topic = name, "the topic is not in the cluster any more"),
                Err(failure) => tracing::warn!(topic = name, %failure, "looking for new partitions failed"),
            }
        }
        Ok(grown)
    }
}

/// Looks for new partitions until the source is closed.
pub(crate) async fn watch(
    known: Arc<Known>,
    client: Arc<Client>,
    settings: Arc<Settings>,
    queue: Arc<Queue>,
    waker: Waker,
) {
    loop {
        tokio::time::sleep(settings.discovery_interval).await;
        if queue.is_closed() {
            return;
        }
        match known.refresh(&client).await {
            Ok(true) => waker.wake_by_ref(),
            Ok(false) => {}
            Err(error) => return queue.fail(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(partitions: i32) -> Topic {
        Topic { id: [1; 16], partitions: (0..partitions).collect() }
    }

    fn known() -> Known {
        let topics = vec![("orders".to_owned(), [1; 16]), ("pay-ments".to_owned(), [2; 16])];
        Known { topics, splits: Mutex::default() }
    }

    #[test]
    fn numbers_stay_when_partitions_are_added() {
        let known = known();
        assert!(known.add(0, 2, &topic(1)));
        assert!(known.add(1, 2, &topic(1)));
        let before = known.splits();
        assert!(known.add(0, 2, &topic(2)));
        assert!(!known.add(0, 2, &topic(2)), "nothing new");
        assert_eq!(known.splits()[..2], before);
        assert_eq!(known.splits()[2], SplitId::new("orders-1", 2));
    }

    #[test]
    fn a_split_name_leads_back_to_its_partition() {
        assert_eq!(known().place(&SplitId::new("pay-ments-12", 25)), Some(("pay-ments", 12)));
        assert_eq!(known().place(&SplitId::new("other-1", 1)), None);
    }
}
