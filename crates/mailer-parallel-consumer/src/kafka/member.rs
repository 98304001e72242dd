//! Membership: one task that polls the group's client, which fetches nothing, and applies what the group decides.
//!
//! The client calls back from inside of its `poll`: partitions that come are paused there and handed to the task that
//! looks up their positions; partitions that go are waited for, until the scheduler has drained, committed and released
//! them. Meanwhile the client goes on with heartbeats, and the other client with fetching: whoever keeps its partitions
//! does not notice.

use super::errors;
use super::holdings::Number;
use super::settings::TopicFilter;
use super::shared::{Fetch, Shared};
use crate::Partition;
use crate::source::Event;
use krafka::admin::{AdminClient, ListTopicsOptions};
use krafka::consumer::{Consumer, ConsumerRebalanceListener, TopicPartition};
use krafka::{CloseOptions, KrafkaError};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// Between two attempts, while something does not work.
const RETRY: Duration = Duration::from_millis(250);
/// How long leaving the group may take.
const LEAVE: Duration = Duration::from_secs(4);
/// How long a loss waits for the answers of commits that are under way, so that none is repeated under another name.
const ANSWERS: Duration = Duration::from_secs(5);

/// What is called back.
pub(super) struct Listener {
    pub(super) shared: Arc<Shared>,
    /// The client that calls back; set once it is there.
    pub(super) client: OnceLock<Weak<Consumer>>,
    pub(super) lookups: mpsc::UnboundedSender<Vec<(Partition, Number)>>,
}

impl ConsumerRebalanceListener for Listener {
    async fn on_partitions_assigned(&self, partitions: &[TopicPartition]) {
        let Some(client) = self.client.get().and_then(Weak::upgrade) else { return };
        // This client is a member and nothing else. Paused and somewhere, it neither fetches nor asks for offsets.
        for place in partitions {
            client.pause(&place.topic, &[place.partition]).await;
            if let Err(error) = client.seek(&place.topic, place.partition, 0).await {
                tracing::debug!(%error, "a partition went while it came");
            }
        }
        let partitions = ours(partitions);
        if partitions.is_empty() {
            return self.shared.tell(Event::Assigned(Vec::new())); // joined, and standing by or as before
        }
        self.look_up(&client, &partitions).await;
    }

    async fn on_partitions_revoked(&self, partitions: &[TopicPartition]) {
        let partitions = ours(partitions);
        let told = self.shared.holdings().revoked(&partitions);
        if self.shared.is_closing() {
            return;
        }
        self.shared.fetch(Fetch::Remove(partitions));
        if told.is_empty() {
            return;
        }
        self.shared.tell(Event::Revoked(told.clone()));
        self.wait(|shared| !shared.holdings().is_waiting_for(&told)).await;
    }

    async fn on_partitions_lost(&self, partitions: &[TopicPartition]) {
        self.lose(&ours(partitions));
        let quiet = self.wait(|shared| shared.holdings().is_quiet());
        if timeout(ANSWERS, quiet).await.is_err() {
            tracing::warn!("partitions are lost while commits have no answer");
        }
    }
}

impl Listener {
    fn lose(&self, partitions: &[Partition]) {
        let told = self.shared.holdings().lost(partitions);
        self.shared.fetch(Fetch::Remove(partitions.to_vec()));
        if !told.is_empty() {
            self.shared.tell(Event::Lost(told));
        }
    }

    async fn look_up(&self, client: &Consumer, partitions: &[Partition]) {
        let member = name_of(client).await.unwrap_or_default();
        let assigned = self.shared.holdings().assigned(partitions, &member);
        drop(self.lookups.send(assigned)); // without a receiver the source has gone
    }

    /// Returns when it is so, or when the member leaves.
    async fn wait(&self, is_so: impl Fn(&Shared) -> bool) {
        loop {
            let progress = self.shared.progress.notified();
            if is_so(&self.shared) || self.shared.is_closing() {
                return;
            }
            progress.await;
        }
    }
}

fn ours(partitions: &[TopicPartition]) -> Vec<Partition> {
    partitions.iter().map(|place| Partition::new(&*place.topic, place.partition)).collect()
}

/// As whom the group knows this process; `None` while it is nobody.
pub(super) async fn name_of(client: &Consumer) -> Option<String> {
    client.group_metadata().await.map(|me| me.member_id().to_owned())
}

/// Topics that a pattern chooses, looked at from time to time.
pub(super) struct Watching {
    pub(super) matching: TopicFilter,
    pub(super) named: Vec<String>,
    pub(super) admin: AdminClient,
    pub(super) every: Duration,
}

impl Watching {
    /// All topics to subscribe to now.
    pub(super) async fn topics(&self) -> Result<Vec<String>, KrafkaError> {
        let all = self.admin.list_topics(ListTopicsOptions::default()).await?;
        let chosen = all.into_iter().filter(|topic| (self.matching)(topic));
        let mut topics: Vec<String> = chosen.chain(self.named.iter().cloned()).collect();
        topics.sort();
        topics.dedup();
        Ok(topics)
    }
}

/// The membership task.
pub(super) struct Member {
    pub(super) client: Arc<Consumer>,
    pub(super) listener: Arc<Listener>,
    pub(super) shared: Arc<Shared>,
    pub(super) poll_timeout: Duration,
    pub(super) watching: Option<Watching>,
    pub(super) topics: Vec<String>,
}

impl Member {
    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        tokio::select! {
            () = shared.closing() => {}
            () = self.stay() => {}
        }
        // Ownership is over: callbacks of the client have nothing to wait for.
        if let Err(error) = self.client.close_with(CloseOptions::new().timeout(LEAVE)).await {
            tracing::warn!(%error, "leaving the group; it will notice by itself");
        }
        shared.tell(Event::Closed);
    }

    /// Polls until a fatal error, and then until somebody asks to leave.
    async fn stay(&mut self) {
        let mut looked = Instant::now();
        let mut was_failing = false;
        loop {
            match self.client.poll(self.poll_timeout).await {
                Ok(_) => {
                    if std::mem::take(&mut was_failing) {
                        self.shared.tell(Event::Healthy);
                    }
                    self.check_name().await;
                }
                Err(error) => {
                    was_failing = true;
                    let is_fatal = errors::fatal(&error).is_some();
                    self.shared.tell_failure(errors::unavailable("the group", &error), is_fatal);
                    if is_fatal {
                        return self.shared.closing().await;
                    }
                    sleep(RETRY).await;
                }
            }
            if self.watching.as_ref().is_some_and(|watching| looked.elapsed() >= watching.every) {
                looked = Instant::now();
                self.look_for_topics().await;
            }
        }
    }

    /// A member that was forgotten and joined again under another name may find its old partitions assigned to it, and
    /// meanwhile they may have been another member's: they are lost, and come anew.
    async fn check_name(&self) {
        let Some(name) = name_of(&self.client).await else { return };
        let others = self.shared.holdings().of_others(&name);
        if !others.is_empty() {
            tracing::warn!(partitions = ?others, "joined again as another member: its partitions begin anew");
            self.listener.lose(&others);
            self.listener.look_up(&self.client, &others).await;
        }
    }

    async fn look_for_topics(&mut self) {
        let Some(watching) = &self.watching else { return };
        let topics = match watching.topics().await {
            Ok(topics) if !topics.is_empty() && topics != self.topics => topics,
            Ok(_) => return,
            Err(error) => return tracing::warn!(%error, "topics could not be listed; those known are consumed"),
        };
        tracing::info!(?topics, "other topics match now");
        match self.client.subscribe(&topics).await {
            Ok(()) => self.topics = topics,
            Err(error) => tracing::warn!(%error, "the subscription could not be changed; tried again later"),
        }
    }
}
