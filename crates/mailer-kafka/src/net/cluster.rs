//! A cluster: its brokers, who leads what, and a connection to each.

use super::backoff::Backoff;
use super::metadata::{Known, Metadata};
use super::nodes::{Node, Nodes};
use super::single::SingleFlight;
use super::transaction_version::{self, Decision};
use super::{Broker, Connection, Leader, Settings};
use crate::client::{Cause, Failure, Topic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a broker may take to let us in before another is asked, too.
const HESITATION: Duration = Duration::from_millis(500);

/// A cluster that was reached. Shared by everything of one connector.
pub(crate) struct Cluster {
    settings: Arc<Settings>,
    metadata: Mutex<Metadata>,
    nodes: Nodes,
    refreshing: SingleFlight,
}

impl Cluster {
    /// Finds the cluster through its bootstrap servers: each of them and each of their addresses in turn, with growing pauses,
    /// until the request timeout has passed. What waiting cannot change (a refused login) ends it at once.
    ///
    /// Must be called on a tokio runtime, which keeps metadata fresh as long as the cluster is held.
    pub(crate) async fn connect(settings: Settings) -> Result<Arc<Self>, Failure> {
        let settings = Arc::new(settings);
        let mut last = Failure::new(Cause::Retriable, "no answer");
        let found = tokio::time::timeout(settings.request_timeout, find(&settings, &mut last)).await;
        let mut metadata = Metadata::default();
        metadata.learn(found.unwrap_or(Err(last))?);
        let nodes = Nodes::new(Arc::clone(&settings));
        let cluster =
            Arc::new(Self { settings, metadata: Mutex::new(metadata), nodes, refreshing: SingleFlight::new() });
        tokio::spawn(keep_fresh(Arc::downgrade(&cluster)));
        Ok(cluster)
    }

    /// The connection to a broker that all share: for short questions.
    pub(crate) async fn connection(&self, broker: i32) -> Result<Connection, Failure> {
        self.node(broker).await?.shared().await
    }

    /// A connection of the caller's own: for fetching and producing. Attempts after a failure are paced with growing pauses.
    pub(crate) async fn open(&self, broker: i32) -> Result<Connection, Failure> {
        self.node(broker).await?.open().await
    }

    async fn node(&self, broker: i32) -> Result<Arc<Node>, Failure> {
        if self.broker(broker).is_none() {
            self.refresh().await?;
        }
        let unknown =
            || Failure::new(Cause::Retriable, format!("broker {broker} is not among the brokers of the cluster now"));
        self.broker(broker).map(|broker| self.nodes.node(&broker)).ok_or_else(unknown)
    }

    fn broker(&self, id: i32) -> Option<Broker> {
        self.metadata().brokers.get(&id).cloned()
    }

    /// A shared connection to any broker: one that is there already, else to the first broker, or bootstrap server, that lets us
    /// in. Nobody waits for a broker that is gone.
    pub(crate) async fn any(&self) -> Result<Connection, Failure> {
        let nodes: Vec<Arc<Node>> = self.brokers().iter().map(|broker| self.nodes.node(broker)).collect();
        if let Some(ready) = nodes.iter().find_map(|node| node.ready()) {
            return Ok(ready);
        }
        let mut last = match first_of(nodes).await {
            Err(failure) if failure.cause == Cause::Retriable => failure,
            reached => return reached,
        };
        for address in &self.settings.bootstrap {
            match Connection::open(address, None, &self.settings).await {
                Err(failure) if failure.cause == Cause::Retriable => last = failure,
                reached => return reached,
            }
        }
        Err(last)
    }

    /// The connection to the controller, or to any broker where none is known.
    pub(crate) async fn controller(&self) -> Result<Connection, Failure> {
        let controller = self.metadata().controller;
        match controller {
            Some(broker) => self.connection(broker).await,
            None => self.any().await,
        }
    }

    /// How old metadata may become before it is asked for anew.
    pub(crate) fn metadata_max_age(&self) -> Duration {
        self.settings.metadata_max_age
    }

    /// The brokers as last told.
    pub(crate) fn brokers(&self) -> Vec<Broker> {
        self.metadata().brokers.values().cloned().collect()
    }

    /// The cluster's id, where brokers tell it.
    pub(crate) fn id(&self) -> Option<String> {
        self.metadata().cluster_id.clone()
    }

    /// A topic as it is now: id and partitions; `None` when there is none. Never creates it.
    pub(crate) async fn topic(&self, name: &str) -> Result<Option<Topic>, Failure> {
        self.metadata().want(name);
        self.ask(vec![name.to_owned()]).await?;
        let told = self.metadata().topic(name);
        match told {
            Some(Ok(topic)) => Ok(Some(topic)),
            Some(Err(failure)) if failure.cause == Cause::Missing => Ok(None),
            Some(Err(failure)) => Err(failure),
            None => Err(Failure::new(Cause::Retriable, format!("the broker's answer leaves topic \"{name}\" out"))),
        }
    }

    /// Who leads a partition, from the cache; asks when it is not there or was told to be wrong. A partition between two leaders
    /// is `Cause::Retriable`.
    pub(crate) async fn leader(&self, topic: &str, partition: i32) -> Result<Leader, Failure> {
        let known = self.metadata().leader(topic, partition, false);
        if let Known::Leader(leader) = known {
            return Ok(leader);
        }
        self.metadata().want(topic);
        self.refresh().await?;
        let known = self.metadata().leader(topic, partition, true);
        match known {
            Known::Leader(leader) => Ok(leader),
            Known::Failed(failure) => Err(failure),
            Known::Ask => Err(Failure::new(Cause::Retriable, format!("nothing is known of topic \"{topic}\""))),
        }
    }

    /// Who leads a partition, when nothing has to be asked for that.
    pub(crate) fn known_leader(&self, topic: &str, partition: i32) -> Option<Leader> {
        match self.metadata().leader(topic, partition, false) {
            Known::Leader(leader) => Some(leader),
            Known::Ask | Known::Failed(_) => None,
        }
    }

    /// A broker said (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION, or no answer at all) that `seen`
    /// leads no more: the next look asks anew, unless a newer leader is known by then.
    pub(crate) fn doubt(&self, topic: &str, partition: i32, seen: Leader) {
        self.metadata().doubt(topic, partition, seen);
    }

    /// A broker named the new leader beside its error (KIP-951); taken when its epoch is newer. Returns whether it was.
    pub(crate) fn leader_is(&self, topic: &str, partition: i32, leader: Leader) -> bool {
        self.metadata().leader_is(topic, partition, leader)
    }

    /// A broker named another broker's address beside an answer.
    pub(crate) fn broker_is(&self, broker: Broker) {
        self.metadata().brokers.insert(broker.id, broker);
    }

    /// Asks anew about all topics that were asked for. Callers at the same time share one request, and requests are paced.
    pub(crate) async fn refresh(&self) -> Result<(), Failure> {
        self.refreshing.run(|| self.ask(self.metadata().wanted())).await
    }

    async fn ask(&self, topics: Vec<String>) -> Result<(), Failure> {
        let told = metadata_of(&self.any().await?, topics).await?;
        self.metadata().learn(told);
        Ok(())
    }

    /// Which transactions the cluster speaks, by what every broker offers now. Brokers that cannot be reached within the time to
    /// connect are reported.
    pub(crate) async fn transaction_version(&self) -> Decision {
        let mut asked = JoinSet::new();
        for broker in self.brokers() {
            let (node, limit) = (self.nodes.node(&broker), self.settings.connect_timeout);
            asked.spawn(async move {
                let reached = tokio::time::timeout(limit, node.shared()).await;
                (broker.id, reached.ok().and_then(Result::ok))
            });
        }
        let mut heard = asked.join_all().await;
        heard.sort_unstable_by_key(|(id, _)| *id);
        transaction_version::decide(heard.iter().map(|(id, reached)| (*id, reached.as_ref().map(Connection::offers))))
    }

    fn metadata(&self) -> MutexGuard<'_, Metadata> {
        self.metadata.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first that can be reached: another is tried when one has failed, or has let us wait.
async fn first_of(nodes: Vec<Arc<Node>>) -> Result<Connection, Failure> {
    let mut last = Failure::new(Cause::Retriable, "the cluster has no brokers");
    let (mut nodes, mut tried) = (nodes.into_iter(), JoinSet::new());
    loop {
        let patience = match nodes.next() {
            Some(node) => {
                tried.spawn(async move { node.shared().await });
                HESITATION
            }
            None if tried.is_empty() => return Err(last),
            None => Duration::MAX,
        };
        match tokio::time::timeout(patience, tried.join_next()).await {
            Ok(Some(Ok(Err(failure)))) if failure.cause == Cause::Retriable => last = failure,
            Ok(Some(Ok(reached))) => return reached,
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
}

/// Tries the bootstrap servers, over and over; `last` is what went wrong last.
async fn find(settings: &Arc<Settings>, last: &mut Failure) -> Result<MetadataResponse, Failure> {
    let mut backoff = Backoff::new();
    loop {
        for address in &settings.bootstrap {
            let asked = async { metadata_of(&Connection::open(address, None, settings).await?, Vec::new()).await };
            match asked.await {
                Err(failure) if failure.cause == Cause::Retriable => *last = failure,
                reached => return reached,
            }
        }
        backoff.pause().await;
    }
}

/// No topics means brokers alone.
async fn metadata_of(connection: &Connection, topics: Vec<String>) -> Result<MetadataResponse, Failure> {
    let topic = |name: String| MetadataRequestTopic::default().with_name(Some(TopicName(StrBytes::from_string(name))));
    let request = MetadataRequest::default()
        .with_topics(Some(topics.into_iter().map(topic).collect()))
        .with_allow_auto_topic_creation(false);
    let response = connection.call(&request).await?;
    match response.error_code {
        0 => Ok(response),
        code => Err(Failure::of_code(code, format_args!("Metadata to {}", connection.peer()))),
    }
}

/// Asks anew whenever metadata is old, until nobody holds the cluster.
async fn keep_fresh(cluster: Weak<Cluster>) {
    while let Some(age) = cluster.upgrade().map(|cluster| cluster.metadata_max_age()) {
        tokio::time::sleep(age).await;
        let Some(cluster) = cluster.upgrade() else { return };
        if let Err(failure) = cluster.refresh().await {
            tracing::debug!(%failure, "metadata could not be refreshed");
        }
    }
}
