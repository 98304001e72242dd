//! For tools: a look at a cluster from outside of any job.

use crate::client::{Cause, Client, Failure, TransactionSeen};
use crate::connection::Connection;
use crate::options;
use crate::runtime::{self, Io};
use mailer_core::{Error, Result};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How long a cluster may take to answer a person.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at a cluster, and ends transactions that somebody has left behind.
///
/// ```no_run
/// use mailer_kafka::KafkaAdmin;
/// let cluster = KafkaAdmin::connect("localhost:9092")?;
/// let orders = cluster.topic("orders")?.expect("somebody has created it");
/// println!("{} partitions, may write: {:?}", orders.partitions, orders.may_write);
/// # Ok::<(), mailer_core::Error>(())
/// ```
pub struct KafkaAdmin {
    io: Arc<Io>,
    client: Arc<Client>,
}

/// A topic, and what we may do with it: `None` where the brokers do not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSeen {
    /// How many partitions it has.
    pub partitions: usize,
    /// Whether this user may read it.
    pub may_read: Option<bool>,
    /// Whether this user may write to it.
    pub may_write: Option<bool>,
}

/// What the coordinator knows of a transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaTransaction {
    /// Kafka's own word: `Empty`, `Ongoing`, `PrepareCommit`, `PrepareAbort`, `CompleteCommit`, `CompleteAbort`.
    pub state: String,
    /// The producer that owns the id.
    pub producer: i64,
    /// Its epoch.
    pub epoch: i16,
    /// When the transaction began, in milliseconds since 1970; nothing while none is open.
    pub since: Option<i64>,
    /// After which time the brokers end it by themselves.
    pub timeout: Duration,
    /// Partitions in it, as `topic-3`.
    pub partitions: Vec<String>,
}

impl KafkaTransaction {
    /// Whether it is open: readers of committed records wait for its end.
    pub fn is_open(&self) -> bool {
        matches!(self.state.as_str(), "Ongoing" | "PrepareCommit" | "PrepareAbort")
    }
}

impl KafkaAdmin {
    /// Reaches a cluster, within ten seconds.
    pub fn connect(bootstrap: impl Into<String>) -> Result<Self> {
        Self::connect_with(bootstrap, [])
    }

    /// The same, with the options of a source or sink: those that say whom to trust and who we are, such as
    /// `security.protocol`, count, others do not.
    pub fn connect_with(
        bootstrap: impl Into<String>,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let mut connection = Connection::new(bootstrap);
        connection.request_timeout = PATIENCE;
        connection.options.extend(options.into_iter().filter(|(name, _)| options::is_security(name)));
        connection.check(options::Role::Source)?;
        let io = runtime::shared()?;
        let client = io.wait(async move { Client::connect(&connection).await })?;
        Ok(Self { io, client: Arc::new(client) })
    }

    /// A topic; `None` when there is no such.
    pub fn topic(&self, name: &str) -> Result<Option<TopicSeen>> {
        let (client, topic) = (self.client.clone(), name.to_owned());
        self.ask(format!("reading Kafka topic \"{name}\""), async move { client.topic_seen(&topic).await })
    }

    /// The longest that a transaction may stay open (`transaction.max.timeout.ms`); `None` where the brokers do not tell.
    pub fn longest_transaction(&self) -> Result<Option<Duration>> {
        const KEY: &str = "transaction.max.timeout.ms";
        let client = self.client.clone();
        let settings = self.ask("reading the settings of a Kafka broker".into(), async move {
            match client.broker_settings(&[KEY]).await {
                Err(failure) if matches!(failure.cause, Cause::Denied | Cause::Unsupported) => Ok(None),
                settings => settings.map(Some),
            }
        })?;
        let millis = settings.and_then(|settings| settings.get(KEY)?.parse().ok());
        Ok(millis.map(Duration::from_millis))
    }

    /// What is known of a transactional id; `None` when nobody has used it yet, or long ago.
    pub fn transaction(&self, id: &str) -> Result<Option<KafkaTransaction>> {
        let (client, asked) = (self.client.clone(), id.to_owned());
        let seen =
            self.ask(
                format!("describing transactional id \"{id}\""),
                async move { client.transaction_seen(&asked).await },
            )?;
        Ok(seen.map(|TransactionSeen { state, identity, since, timeout, partitions }| KafkaTransaction {
            state,
            producer: identity.id,
            epoch: identity.epoch,
            since: (since >= 0).then_some(since),
            timeout,
            partitions,
        }))
    }

    /// Claims a transactional id: what its owner has left open is aborted, and an owner that still runs is fenced and stops.
    /// Output of a checkpoint that was decided is not lost by it: the job publishes it at its next start.
    pub fn abort(&self, id: &str) -> Result<()> {
        let (client, claimed) = (self.client.clone(), id.to_owned());
        self.ask(format!("claiming transactional id \"{id}\""), async move { client.take_over(&claimed).await })
    }

    fn ask<T, F>(&self, doing: String, answer: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = std::result::Result<T, Failure>> + Send + 'static,
    {
        self.io.wait(async move {
            match tokio::time::timeout(PATIENCE * 2, answer).await {
                Ok(answer) => answer.map_err(|failure| failure.into_error(doing)),
                Err(_) => Err(Error::unavailable(format!("{doing}: no answer within {:?}", PATIENCE * 2))),
            }
        })
    }
}

impl std::fmt::Debug for KafkaAdmin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaAdmin").field("bootstrap", &self.client.bootstrap()).finish_non_exhaustive()
    }
}
