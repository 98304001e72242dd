//! Commits: one request at a time, with everything that waits meanwhile in the next one.

use super::errors;
use super::holdings::Number;
use super::member::name_of;
use super::shared::Shared;
use crate::source::{CommitError, CommitErrorKind, Event, OffsetCommit};
use krafka::KrafkaError;
use krafka::consumer::{Consumer, OffsetAndMetadata, TopicPartition};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Partitions of one request.
const MOST: usize = 1_000;

pub(super) struct Committer {
    pub(super) client: Arc<Consumer>,
    pub(super) shared: Arc<Shared>,
}

impl Committer {
    pub(super) async fn run(self, mut commits: mpsc::UnboundedReceiver<(Number, OffsetCommit)>) {
        let mut batch = Vec::new();
        while commits.recv_many(&mut batch, MOST).await > 0 {
            let waiting = std::mem::take(&mut batch);
            self.commit(self.still_ours(waiting).await).await;
        }
    }

    /// Answers those whose partition has gone since, without asking the broker: it only looks at who commits, and would
    /// take them.
    async fn still_ours(&self, commits: Vec<(Number, OffsetCommit)>) -> Vec<(Number, OffsetCommit)> {
        let Some(name) = name_of(&self.client).await else {
            let error = CommitError { kind: CommitErrorKind::Retriable, message: "not a member at the moment".into() };
            commits.into_iter().for_each(|commit| self.answer(commit, Err(error.clone())));
            return Vec::new();
        };
        let (ours, gone): (Vec<_>, Vec<_>) = commits
            .into_iter()
            .partition(|(number, commit)| self.shared.holdings().may_commit(&commit.partition, *number, &name));
        gone.into_iter().for_each(|commit| self.answer(commit, Err(errors::not_owned())));
        ours
    }

    async fn commit(&self, commits: Vec<(Number, OffsetCommit)>) {
        let result = self.send(&commits).await;
        match result {
            // One of them is to blame; the client does not say which.
            Err(error) if commits.len() > 1 && errors::is_of_one_partition(&error) => {
                for commit in commits {
                    let result = self.send(std::slice::from_ref(&commit)).await;
                    self.answer(commit, result.map_err(|error| errors::commit(&error)));
                }
            }
            result => {
                let result = result.map_err(|error| errors::commit(&error));
                commits.into_iter().for_each(|commit| self.answer(commit, result.clone()));
            }
        }
    }

    async fn send(&self, commits: &[(Number, OffsetCommit)]) -> Result<(), KrafkaError> {
        let offsets = commits.iter().map(|(_, commit)| {
            let place = TopicPartition::new(&*commit.partition.topic, commit.partition.index);
            (place, OffsetAndMetadata::with_metadata(commit.offset, &*commit.metadata))
        });
        let offsets: HashMap<_, _> = offsets.collect();
        self.client.commit_offsets(&offsets).await
    }

    /// Tells first: a revoke goes on when the last answer is counted.
    fn answer(&self, (number, commit): (Number, OffsetCommit), result: Result<(), CommitError>) {
        let OffsetCommit { partition, offset, .. } = commit;
        self.shared.tell(Event::Committed { partition: partition.clone(), offset, result });
        self.shared.holdings().end_commit(&partition, number);
        self.shared.progress.notify_waiters();
    }
}
