//! What the builder holds until `build` carries it out: settings of Kafka, then clients and tasks.

use super::client_option;
use super::commits::Committer;
use super::errors;
use super::fetcher::{Fetcher, Health};
use super::lookup::Lookup;
use super::member::{Listener, Member, Watching};
use super::positions::Positions;
use super::security::Security;
use super::settings::{Balance, GroupProtocol, Isolation, OffsetReset, Settings};
use super::shared::Shared;
use super::source::{Desk, KafkaSource};
use super::track::Tracks;
use crate::{Builder, Connect, Error, ErrorKind, Options, ParallelConsumer};
use krafka::admin::DescribeTopicsOptions;
use krafka::consumer::{AutoOffsetReset, Consumer, IsolationLevel, PartitionAssignmentStrategy};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Batches that wait for the owner task. More would only be memory: the next fetch is under way meanwhile.
const BATCHES: usize = 4;

/// A plan to become a member of a Kafka consumer group: what [`ParallelConsumer::builder`] begins with.
#[derive(Debug)]
pub struct Kafka {
    pub(super) settings: Settings,
}

impl ParallelConsumer {
    /// Begins with Kafka: `brokers` are `host:port`, several separated by commas; `group` is the id of the consumer
    /// group.
    ///
    /// ```no_run
    /// use mailer_parallel_consumer::{Context, DeadLetterTopic, HandlerError, ParallelConsumer, Record, handler_fn};
    ///
    /// async fn charge(_: &Record, _: &Context<'_>) -> Result<(), HandlerError> {
    ///     Ok(()) // call something
    /// }
    ///
    /// # async fn example() -> Result<(), mailer_parallel_consumer::Error> {
    /// let consumer = ParallelConsumer::builder("localhost:9092", "orders-svc")
    ///     .topics(["orders"])
    ///     .handler(handler_fn(charge))
    ///     .dead_letter(DeadLetterTopic::new("orders.dlq"))
    ///     .build()
    ///     .await?;
    /// println!("{}", consumer.run().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(brokers: impl Into<String>, group: impl Into<String>) -> Builder<Kafka, ()> {
        Builder::new(Kafka { settings: Settings::new(brokers.into(), group.into()) })
    }
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $type:ty),* $(,)?) => {
        $($(#[$doc])* pub fn $name(mut self, $name: $type) -> Self { self.connect.settings.$name = $name; self })*
    };
}

impl<W> Builder<Kafka, W> {
    settings! {
        /// How long the group waits for heartbeats before it gives this member's partitions to others: 45 s by default,
        /// 6 s to 30 min. With [`GroupProtocol::Consumer`] the broker sets it.
        session_timeout: Duration,
        /// Time between heartbeats: 3 s by default, at most a third of the session timeout. With
        /// [`GroupProtocol::Consumer`] the broker sets it.
        heartbeat_interval: Duration,
        /// How long the group waits for this member in a rebalance: 60 s by default, 3 s to 1 h, and longer than the drain
        /// timeout.
        rebalance_timeout: Duration,
        /// Where to begin without a committed offset: [`OffsetReset::Earliest`] by default.
        offset_reset: OffsetReset,
        /// What is read of transactions: [`Isolation::ReadCommitted`] by default.
        isolation: Isolation,
        /// How long one request may take: 30 s by default, 1 s to 5 min.
        request_timeout: Duration,
        /// How often topics and partitions are looked at anew: 30 s by default, 1 s to 1 h. A group of
        /// [`GroupProtocol::Consumer`] learns of new partitions by the broker, a classic group at its next rebalance.
        metadata_max_age: Duration,
        /// TLS and SASL: plaintext by default.
        security: Security,
    }

    /// Topics by name, in addition to those given before. They must be there when the consumer is built.
    pub fn topics(mut self, topics: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.connect.settings.topics.extend(topics.into_iter().map(Into::into));
        self
    }

    /// All topics whose name pleases `filter`, also those that are made later.
    pub fn topics_matching(mut self, filter: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.connect.settings.matching = Some(Arc::new(filter));
        self
    }

    /// How partitions are shared: classic and cooperative-sticky by default.
    pub fn group_protocol(mut self, protocol: GroupProtocol) -> Self {
        self.connect.settings.protocol = protocol;
        self
    }

    /// Static membership: a process that comes back under this id within the session timeout has its partitions again,
    /// and nobody else notices. Each process needs its own.
    pub fn instance_id(mut self, id: impl Into<String>) -> Self {
        self.connect.settings.instance_id = Some(id.into());
        self
    }

    /// What brokers log requests under: `mailer-parallel-consumer` by default.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.connect.settings.client_id = id.into();
        self
    }

    /// Where this process runs: brokers that know racks let it fetch from the closest replica.
    pub fn rack(mut self, rack: impl Into<String>) -> Self {
        self.connect.settings.rack = Some(rack.into());
        self
    }

    /// A fetch is answered when `least` bytes are there (1 by default) or the poll timeout is over, with `most` at most
    /// (50 MiB by default, which is also the limit).
    pub fn fetch_bytes(mut self, least: u32, most: u32) -> Self {
        let bytes = |bytes: u32| i32::try_from(bytes).unwrap_or(i32::MAX);
        (self.connect.settings.fetch_min_bytes, self.connect.settings.fetch_max_bytes) = (bytes(least), bytes(most));
        self
    }

    /// A setting by the name that Kafka's own configuration has for it, such as `session.timeout.ms`. A name that is not
    /// known, or has its place elsewhere, is an error of `build`.
    pub fn client_option(mut self, name: &str, value: &str) -> Self {
        if let Err(wrong) = client_option::set(&mut self.connect.settings, name, value) {
            self.connect.settings.wrong.push(wrong);
        }
        self
    }
}

impl Connect for Kafka {
    type Source = KafkaSource;

    async fn connect(self, options: &Options) -> Result<KafkaSource, Error> {
        let Self { settings } = self;
        let (group, fetching) = (client(&settings).await?, client(&settings).await?);
        topics_exist(&group, &settings.topics).await?;
        let (tell, told) = mpsc::unbounded_channel();
        let (fetch, commands) = mpsc::unbounded_channel();
        let (fetched, batches) = mpsc::channel(BATCHES);
        let (commits, committing) = mpsc::unbounded_channel();
        let (lookups, looking) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(tell, fetch));
        let positions = Arc::new(Positions::new(&group, &settings));
        let fetcher = Fetcher {
            client: fetching_consumer(&fetching, &settings, options).await?,
            positions: Arc::clone(&positions),
            shared: Arc::clone(&shared),
            commands,
            batches: fetched,
            poll_timeout: options.poll_timeout,
            piece: options.poll_bytes,
            is_committed_only: settings.isolation == Isolation::ReadCommitted,
            tracks: Tracks::default(),
            stale: HashSet::new(),
            health: Health::default(),
        };
        let listener = Arc::new(Listener { shared: Arc::clone(&shared), client: OnceLock::new(), lookups });
        let member = member(&group, &settings, options, listener).await?;
        let committer = Committer { client: Arc::clone(&member.client), shared: Arc::clone(&shared) };
        let mut tasks = JoinSet::new();
        tasks.spawn(Lookup { positions, shared: Arc::clone(&shared) }.run(looking));
        tasks.spawn(fetcher.run());
        tasks.spawn(committer.run(committing));
        tasks.spawn(member.run());
        Ok(KafkaSource { shared, told, batches, commits, desk: Desk::default(), tasks })
    }

    fn rebalance_timeout(&self) -> Option<Duration> {
        Some(self.settings.rebalance_timeout)
    }

    fn problems(&self) -> Vec<String> {
        self.settings.problems()
    }
}

/// The client in the group, subscribed; it joins when it is polled.
async fn member(
    kafka: &krafka::Kafka,
    settings: &Settings,
    options: &Options,
    listener: Arc<Listener>,
) -> Result<Member, Error> {
    let client = Arc::new(group_consumer(kafka, settings, options, Arc::clone(&listener)).await?);
    listener.client.get_or_init(|| Arc::downgrade(&client));
    let watching = settings.matching.as_ref().map(|matching| Watching {
        matching: Arc::clone(matching),
        named: settings.topics.clone(),
        admin: kafka.admin(),
        every: settings.metadata_max_age,
    });
    let refused = |error: krafka::KrafkaError| errors::unavailable("subscribing", &error);
    let topics = match &watching {
        Some(watching) => watching.topics().await.map_err(refused)?,
        None => settings.topics.clone(),
    };
    client.subscribe(&topics).await.map_err(refused)?;
    let (shared, poll_timeout) = (Arc::clone(&listener.shared), options.poll_timeout);
    Ok(Member { client, listener, shared, poll_timeout, watching, topics })
}

/// Connections to the cluster, on which credentials have been tried.
pub(super) async fn client(settings: &Settings) -> Result<krafka::Kafka, Error> {
    let refused =
        |error: &krafka::KrafkaError| errors::unavailable(&format!("connecting to {}", settings.brokers), error);
    let security = settings.security.auth().map_err(|error| refused(&error))?;
    let builder = krafka::Kafka::builder(settings.brokers.as_str())
        .client_id(settings.client_id.as_str())
        .security(security)
        .request_timeout(settings.request_timeout)
        .connect_timeout(settings.request_timeout.min(Duration::from_secs(10)))
        .metadata_max_age(settings.metadata_max_age)
        .metadata_topic_cache_ttl(None);
    builder.connect().await.map_err(|error| refused(&error))
}

/// Topics that are named must be there: a name that is spelt wrong would look like a quiet topic.
pub(super) async fn topics_exist(kafka: &krafka::Kafka, topics: &[String]) -> Result<(), Error> {
    let described = kafka.admin().describe_topics(topics, DescribeTopicsOptions::default()).await;
    for (topic, described) in described.map_err(|error| errors::unavailable("looking for topics", &error))? {
        if let Err(error) = described {
            let words = format!("topic {topic}: {error}: create it, or allow this user to DESCRIBE it");
            return Err(Error::new(ErrorKind::Refused, words).caused_by(error));
        }
    }
    Ok(())
}

fn isolation(settings: &Settings) -> IsolationLevel {
    match settings.isolation {
        Isolation::ReadCommitted => IsolationLevel::ReadCommitted,
        Isolation::ReadUncommitted => IsolationLevel::ReadUncommitted,
    }
}

async fn fetching_consumer(kafka: &krafka::Kafka, settings: &Settings, options: &Options) -> Result<Consumer, Error> {
    let mut builder = kafka
        .consumer_without_group()
        .auto_offset_reset(AutoOffsetReset::None) // a reset is told to the scheduler, so it is made here
        .enable_auto_commit(false)
        .isolation_level(isolation(settings))
        .fetch_min_bytes(settings.fetch_min_bytes)
        .fetch_max_bytes(settings.fetch_max_bytes)
        .max_partition_fetch_bytes(i32::try_from(options.poll_bytes).unwrap_or(i32::MAX))
        .fetch_max_wait(options.poll_timeout)
        .max_poll_records(-1)
        .max_buffered_records(0);
    if let Some(rack) = &settings.rack {
        builder = builder.client_rack(rack);
    }
    builder.build().await.map_err(|error| errors::unavailable("the fetching client", &error))
}

async fn group_consumer(
    kafka: &krafka::Kafka,
    settings: &Settings,
    options: &Options,
    listener: Arc<Listener>,
) -> Result<Consumer, Error> {
    let mut builder = kafka
        .consumer(settings.group.as_str())
        .auto_offset_reset(AutoOffsetReset::Earliest) // never used: positions are set before they are asked for
        .enable_auto_commit(false)
        .isolation_level(isolation(settings))
        .session_timeout(settings.session_timeout)
        .heartbeat_interval(settings.heartbeat_interval)
        .max_poll_interval(settings.rebalance_timeout)
        .idle_poll_backoff(options.poll_timeout)
        .rebalance_listener(listener);
    builder = match &settings.protocol {
        GroupProtocol::Classic(balance) => builder
            .group_protocol(krafka::consumer::GroupProtocol::Classic)
            .partition_assignment_strategy(strategy(*balance)),
        GroupProtocol::Consumer { assignor } => {
            let builder = builder.group_protocol(krafka::consumer::GroupProtocol::Consumer);
            match assignor {
                Some(assignor) => builder.group_remote_assignor(assignor),
                None => builder,
            }
        }
    };
    if let Some(id) = &settings.instance_id {
        builder = builder.group_instance_id(id);
    }
    if let Some(rack) = &settings.rack {
        builder = builder.client_rack(rack);
    }
    builder.build().await.map_err(|error| errors::unavailable("the group's client", &error))
}

fn strategy(balance: Balance) -> PartitionAssignmentStrategy {
    match balance {
        Balance::CooperativeSticky => PartitionAssignmentStrategy::CooperativeSticky,
        Balance::Range => PartitionAssignmentStrategy::Range,
        Balance::RoundRobin => PartitionAssignmentStrategy::RoundRobin,
    }
}
