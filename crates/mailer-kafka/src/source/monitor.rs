//! Offsets for lag monitors: committed to a consumer group after a completed checkpoint, and never read back.

use crate::client::Client;
use crate::runtime::Io;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::watch;

type Offsets = Vec<(String, i32, i64)>;

/// Commits the offsets of one source instance, in order.
#[derive(Debug)]
pub(crate) struct Monitor {
    noted: Noted,
    committed: watch::Sender<Offsets>,
}

impl Monitor {
    /// Starts the task that commits; it ends when the monitor is dropped.
    pub(crate) fn start(io: &Io, client: Arc<Client>, group: String) -> Self {
        let (committed, commits) = watch::channel(Offsets::new());
        io.spawn(commit(client, group, commits));
        Self { noted: Noted::default(), committed }
    }

    /// A barrier may have taken this position.
    pub(crate) fn noted(&mut self, topic: &str, partition: i32, next: i64) {
        self.noted.add(topic, partition, next);
    }

    /// A checkpoint is completed.
    pub(crate) fn completed(&mut self) {
        self.committed.send_replace(self.noted.take());
    }
}

/// One after the other, so that an older commit never lands after a newer one. Only the newest waits.
async fn commit(client: Arc<Client>, group: String, mut commits: watch::Receiver<Offsets>) {
    while commits.changed().await.is_ok() {
        let offsets = commits.borrow_and_update().clone();
        if let Err(failure) = client.set_group_offsets(&group, offsets).await {
            tracing::warn!(group, %failure, "offsets for lag monitors could not be committed; nothing depends on them");
        }
    }
}

/// Which offsets may be told: those of a checkpoint that is completed for sure.
///
/// The next checkpoint's positions may be noted before this one is completed, and which of two noted ones completed is
/// not said. So the older of the last two is taken: never ahead of what is durable.
#[derive(Debug, Default)]
struct Noted(BTreeMap<(String, i32), VecDeque<i64>>);

impl Noted {
    fn add(&mut self, topic: &str, partition: i32, next: i64) {
        let offsets = self.0.entry((topic.to_owned(), partition)).or_default();
        if offsets.len() == 2 {
            offsets.pop_front();
        }
        offsets.push_back(next);
    }

    fn take(&mut self) -> Offsets {
        let oldest = |((topic, partition), offsets): (&(String, i32), &mut VecDeque<i64>)| {
            Some((topic.clone(), *partition, offsets.pop_front()?))
        };
        self.0.iter_mut().filter_map(oldest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monitors_are_never_told_more_than_is_durable() {
        let mut noted = Noted::default();
        noted.add("orders", 0, 10);
        noted.add("orders", 0, 20);
        assert_eq!(noted.take(), [("orders".to_owned(), 0, 10)], "20 may not be completed yet");
        assert_eq!(noted.take(), [("orders".to_owned(), 0, 20)]);
        assert_eq!(noted.take(), []);
    }
}
