//! A transactional producer. One value, one claim of the transactional id: after any failure it is dropped, never repaired.
//!
//! Two protocols. Version 1: partitions are announced by AddPartitionsToTxn, the epoch and the sequences go on from one
//! transaction to the next. Version 2 (KIP-890): producing announces the partition, every end hands out another epoch, and
//! sequences begin again at 0.

use super::deliver::{self, OnSent, Partitions, Patience, Sequences, Terms};
use super::producer::{self, Identity};
use super::{Cause, Client, Failure, WriterSettings};
use crate::gather::Parted;
use crate::net::{Api, Backoff, Connection, CoordinatorOf, TransactionVersion};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, EndTxnRequest, ProduceRequest, ProducerId, TopicName, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a dropped producer may take to say goodbye in the background.
const GOODBYE: Duration = Duration::from_secs(5);
/// The last version of Produce, and of EndTxn, that belongs to transaction version 1; one more is version 2.
const LAST_V1: (i16, i16) = (11, 4);

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// None is open.
    Ready,
    /// Begun, and nothing was written yet.
    Begun,
    /// Brokers know of it.
    Open,
    /// EndTxn was sent: whatever comes, this producer begins no other one (KAFKA-17754).
    Ending,
    /// Somebody has claimed the id after us, or the coordinator has ended the transaction: there is nothing left to end.
    Fenced,
}

/// Owns a transactional id until another claims it.
pub(crate) struct Transactions {
    client: Arc<Client>,
    id: Arc<str>,
    timeout: Duration,
    request_bytes: usize,
    version: TransactionVersion,
    pub(super) coordinator: Connection,
    identity: Identity,
    sequences: Sequences,
    /// Connections for producing, by broker.
    leaders: BTreeMap<i32, Connection>,
    /// Known to the coordinator as part of this transaction (version 1 asks it before anything is written).
    announced: Partitions,
    /// Written to in this transaction.
    written: Partitions,
    state: State,
}

impl Transactions {
    /// Claims `id`: fences every former owner and ends what it left open. One attempt.
    pub(crate) async fn claim(
        client: Arc<Client>,
        id: &str,
        timeout: Duration,
        settings: &WriterSettings,
    ) -> Result<Self, Failure> {
        let decision = client.net().transaction_version().await;
        if !decision.unheard.is_empty() {
            tracing::warn!(
                brokers = ?decision.unheard,
                "these brokers did not say which transactions they know; the next claim asks again"
            );
        }
        let (identity, coordinator) = client.claim(id, timeout).await?;
        Ok(Self {
            client,
            id: id.into(),
            timeout,
            request_bytes: settings.request_bytes(),
            version: decision.version,
            coordinator,
            identity,
            sequences: Sequences::default(),
            leaders: BTreeMap::new(),
            announced: Partitions::new(),
            written: Partitions::new(),
            state: State::Ready,
        })
    }

    /// 1 for brokers before 4.0, 2 since (KIP-890).
    pub(crate) fn version(&self) -> u8 {
        match self.version {
            TransactionVersion::V1 => 1,
            TransactionVersion::V2 => 2,
        }
    }

    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        if self.state != State::Ready {
            return Err(Failure::new(Cause::Other, "a transaction that did not end cannot be followed by another"));
        }
        self.state = State::Begun;
        Ok(())
    }

    /// Writes batches and waits until all are acknowledged. Each partition's keep their order.
    pub(crate) async fn write(&mut self, topic: &str, parts: Vec<Parted>, on_sent: OnSent) -> Result<(), Failure> {
        if parts.is_empty() {
            return Ok(());
        }
        let written = self.add(topic, parts, on_sent).await;
        if written.as_ref().is_err_and(is_fenced) {
            self.state = State::Fenced;
        }
        written
    }

    async fn add(&mut self, topic: &str, parts: Vec<Parted>, on_sent: OnSent) -> Result<(), Failure> {
        let topic: Arc<str> = topic.into();
        if self.version == TransactionVersion::V1 {
            self.announce(&topic, &parts).await?;
        }
        let partitions: BTreeSet<i32> = parts.iter().map(|parted| parted.partition).collect();
        let sender = (&mut self.sequences, self.identity);
        let routed = deliver::route(&self.client, &topic, parts, sender, &self.written).await?;
        let mut sending = JoinSet::new();
        // From here on the brokers may know of the transaction.
        self.state = State::Open;
        for (broker, lanes) in routed {
            let connection = self.leader(broker).await?;
            let terms = self.terms(&topic, &connection)?;
            sending.spawn(deliver::deliver(self.client.clone(), connection, terms, lanes, on_sent.clone()));
        }
        while let Some(done) = sending.join_next().await {
            done.unwrap_or_else(|_| Err(Failure::new(Cause::Other, "a task that wrote to Kafka panicked")))?;
        }
        self.written.extend(partitions.into_iter().map(|partition| (topic.clone(), partition)));
        Ok(())
    }

    fn terms(&self, topic: &Arc<str>, connection: &Connection) -> Result<Terms, Failure> {
        Ok(Terms {
            topic: topic.clone(),
            transactional_id: self.id.clone(),
            version: self.speak::<ProduceRequest>(connection, LAST_V1.0)?,
            timeout: self.client.request_timeout(),
            request_bytes: self.request_bytes,
        })
    }

    /// The version of a request that follows the transaction version. A broker that was not heard when that was decided may
    /// turn out not to know it: the next claim decides anew.
    fn speak<R: Api>(&self, connection: &Connection, last_v1: i16) -> Result<i16, Failure> {
        match self.version {
            TransactionVersion::V1 => Ok(connection.version::<R>()?.min(last_v1)),
            TransactionVersion::V2 if connection.offers().highest::<R>() > Some(last_v1) => Ok(last_v1 + 1),
            TransactionVersion::V2 => Err(Failure::new(
                Cause::Retriable,
                format!("{} does not know transactions of version 2, unlike the others", connection.peer()),
            )),
        }
    }

    async fn leader(&mut self, broker: i32) -> Result<Connection, Failure> {
        if let Some(connection) = self.leaders.get(&broker).filter(|connection| connection.is_open()) {
            return Ok(connection.clone());
        }
        let connection = self.client.net().open(broker).await?;
        self.leaders.insert(broker, connection.clone());
        Ok(connection)
    }

    /// Makes sure of a connection to the coordinator: it may have been idle for too long since the last transaction.
    async fn reach(&mut self) -> Result<(), Failure> {
        if !self.coordinator.is_open() {
            let broker = self.client.net().coordinator(CoordinatorOf::Transactions(&self.id)).await?;
            self.coordinator = self.client.net().open(broker).await?;
        }
        Ok(())
    }

    /// Version 1: tells the coordinator which partitions follow.
    async fn announce(&mut self, topic: &Arc<str>, parts: &[Parted]) -> Result<(), Failure> {
        let wanted: BTreeSet<i32> = parts.iter().map(|parted| parted.partition).collect();
        let new = wanted.into_iter().filter(|partition| !self.announced.contains(&(topic.clone(), *partition)));
        let new: Vec<i32> = new.collect();
        if new.is_empty() {
            return Ok(());
        }
        let named = AddPartitionsToTxnTopic::default()
            .with_name(TopicName(StrBytes::from_string(topic.to_string())))
            .with_partitions(new.clone());
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(self.transactional_id())
            .with_v3_and_below_producer_id(ProducerId(self.identity.id))
            .with_v3_and_below_producer_epoch(self.identity.epoch)
            .with_v3_and_below_topics(vec![named]);
        let mut patience = Patience::new();
        self.reach().await?;
        self.state = State::Open;
        loop {
            match self.added(&request).await {
                Err(failure) if patience.may_pass(&failure).await => {}
                done => {
                    done?;
                    break;
                }
            }
        }
        self.announced.extend(new.into_iter().map(|partition| (topic.clone(), partition)));
        Ok(())
    }

    async fn added(&self, request: &AddPartitionsToTxnRequest) -> Result<(), Failure> {
        let response = self.coordinator.call(request).await?;
        let doing = format!("AddPartitionsToTxn to {}", self.coordinator.peer());
        Failure::unless_ok(response.error_code, None, &doing)?;
        let topics = response.results_by_topic_v3_and_below.iter();
        let codes = topics.flat_map(|topic| &topic.results_by_partition).map(|part| part.partition_error_code);
        // What was attempted beside a refused partition is no reason of its own.
        let attempted = ResponseError::OperationNotAttempted.code();
        match codes.into_iter().find(|code| *code != 0 && *code != attempted) {
            Some(code) => Err(Failure::of_code(code, doing)),
            None => Ok(()),
        }
    }

    fn transactional_id(&self) -> TransactionalId {
        TransactionalId(StrBytes::from_string(self.id.to_string()))
    }

    /// Commits. An error leaves the outcome unknown.
    ///
    /// `answered` is called once, when the answer has arrived and before it is looked at: what a crash there does is what a lost
    /// answer does.
    pub(crate) async fn commit(&mut self, answered: fn()) -> Result<(), Failure> {
        if self.state == State::Begun {
            self.state = State::Ready;
            answered();
            return Ok(());
        }
        self.reach().await?;
        self.state = State::Ending;
        let ended = self.end(true, answered).await?;
        if self.version == TransactionVersion::V2 {
            self.identity = ended;
            self.sequences.clear();
        }
        self.announced.clear();
        self.written.clear();
        self.state = State::Ready;
        Ok(())
    }

    /// EndTxn; while the coordinator is busy with the same transaction it says "not now", and is asked again.
    async fn end(&self, commit: bool, answered: fn()) -> Result<Identity, Failure> {
        let version = self.speak::<EndTxnRequest>(&self.coordinator, LAST_V1.1)?;
        let request = EndTxnRequest::default()
            .with_transactional_id(self.transactional_id())
            .with_producer_id(ProducerId(self.identity.id))
            .with_producer_epoch(self.identity.epoch)
            .with_committed(commit);
        let mut backoff = Backoff::new();
        loop {
            let response = self.coordinator.call_at(version, &request).await;
            answered();
            let response = response?;
            let doing = format!("EndTxn to {}", self.coordinator.peer());
            let told = Failure::unless_ok(response.error_code, None, doing);
            match told {
                Ok(()) => return Ok(Identity { id: response.producer_id.0, epoch: response.producer_epoch }),
                Err(failure) if failure.is(ResponseError::ConcurrentTransactions) => backoff.pause().await,
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Ends what is open and was not decided, so that no reader waits for its timeout.
    pub(crate) async fn close(mut self) {
        if self.state != State::Open {
            return;
        }
        let goodbye = async {
            self.reach().await?;
            match self.version {
                TransactionVersion::V1 => self.abort_in_the_next_epoch().await,
                TransactionVersion::V2 => self.end(false, || ()).await.map(drop),
            }
        };
        if let Ok(Err(failure)) = tokio::time::timeout(GOODBYE, goodbye).await {
            tracing::debug!(%failure, transactional_id = &*self.id, "an unfinished transaction is left to its timeout");
        }
    }

    /// Version 1: EndTxn aborts in our own epoch. A batch of ours that is still on its way would be taken behind the end, into a
    /// transaction that nobody ends and behind which nobody reads. Asked for the next epoch, the coordinator aborts in that
    /// one, and what comes late is refused. (Version 2 does so at every end.)
    async fn abort_in_the_next_epoch(&mut self) -> Result<(), Failure> {
        let mut backoff = Backoff::new();
        loop {
            match producer::next_epoch(&self.coordinator, &self.id, self.timeout, self.identity).await {
                None => return self.end(false, || ()).await.map(drop),
                Some(Err(failure)) if failure.is(ResponseError::ConcurrentTransactions) => backoff.pause().await,
                // The request before has raised the epoch already.
                Some(Err(failure)) if is_fenced(&failure) => return Ok(()),
                Some(done) => return done.map(drop),
            }
        }
    }
}

fn is_fenced(failure: &Failure) -> bool {
    failure.is(ResponseError::ProducerFenced) || failure.is(ResponseError::InvalidProducerEpoch)
}
