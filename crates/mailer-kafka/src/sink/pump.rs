//! From the worker to the brokers and back: the worker appends records to batches, one task sends them and hears the answers.

use super::outbox::{Outbox, Outcome, Sending, Way};
use super::progress::{Progress, Target};
use crate::batch::BatchBuilder;
use crate::client::{Cause, Client, Failure, WriterSettings, produce_failure};
use crate::encode::Encoded;
use crate::gather::{Gather, Parted};
use crate::net::{Backoff, Batches, Connection, Leader, Produce};
use crate::runtime::Io;
use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_response::ProduceResponse;
use mailer_core::{Error, ErrorKind, Flush, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The last version of Produce outside of transactions: 12 belongs to transaction version 2, and adds nothing here.
const VERSION: i16 = 11;

/// What worker and task share.
pub(crate) struct Pump {
    /// Keeps the task alive while a flush waits for it.
    _io: Arc<Io>,
    state: Mutex<State>,
    /// The task has something to do.
    work: Notify,
    progress: Condvar,
    budget: usize,
    waker: Waker,
}

struct State {
    gather: Gather,
    /// Bytes sent, or about to be, and not acknowledged.
    outbox: usize,
    progress: Progress,
    /// The worker waits for room.
    blocked: bool,
    closed: bool,
    failure: Option<(ErrorKind, String)>,
}

impl Pump {
    pub(crate) fn start(
        io: Arc<Io>,
        client: Client,
        topic: String,
        settings: &WriterSettings,
        (budget, waker): (usize, Waker),
    ) -> Arc<Self> {
        let state = State {
            gather: Gather::new(settings.batch()),
            outbox: 0,
            progress: Progress::default(),
            blocked: false,
            closed: false,
            failure: None,
        };
        let (state, progress, work) = (Mutex::new(state), Condvar::new(), Notify::new());
        let pump = Arc::new(Self { _io: io.clone(), state, work, progress, budget: budget.max(1), waker });
        let task = run(pump.clone(), client, topic.clone(), settings.clone());
        io.spawn(supervise(pump.clone(), topic, task));
        pump
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends records as long as there is room: `next` fills in one, and says which partition, or `None` when there are no
    /// more. Returns how many were taken; when they were not all, the worker is woken once there is room.
    pub(crate) fn append(
        &self,
        mut next: impl FnMut(&mut Encoded) -> Result<Option<i32>>,
        scratch: &mut Encoded,
        now: i64,
    ) -> Result<usize> {
        let mut state = self.state();
        state.check()?;
        let mut taken = 0;
        while state.gather.bytes() + state.outbox < self.budget {
            let Some(partition) = next(scratch)? else {
                self.work.notify_one();
                return Ok(taken);
            };
            let timestamp = Some(scratch.timestamp()).filter(|timestamp| *timestamp >= 0).unwrap_or(now);
            state.gather.push(partition, timestamp, scratch)?;
            state.progress.appended(partition);
            taken += 1;
        }
        state.blocked = true;
        self.work.notify_one();
        Ok(taken)
    }

    pub(crate) fn flush(self: &Arc<Self>) -> Result<Flush> {
        let mut state = self.state();
        state.check()?;
        let target = state.progress.flush();
        if state.progress.has(&target) {
            return Ok(Flush::Done);
        }
        drop(state);
        self.work.notify_one();
        let pump = self.clone();
        Ok(Flush::Pending(Box::new(move || pump.wait(&target))))
    }

    /// Nothing more comes; what was appended is still sent.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.work.notify_one();
    }

    /// Every batch has an outcome within the delivery timeout, so this ends.
    fn wait(&self, target: &Target) -> Result<()> {
        let waiting = |state: &mut State| !state.progress.has(target) && state.failure.is_none();
        let state = self.progress.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner);
        state.check()
    }

    /// Records of these partitions are in the log; `outbox` bytes are not.
    fn acknowledged(&self, records: &[(i32, u64)], outbox: usize) {
        let mut state = self.state();
        state.outbox = outbox;
        records.iter().for_each(|(partition, records)| state.progress.acknowledged(*partition, *records));
        let wake = state.gather.bytes() + outbox < self.budget && std::mem::take(&mut state.blocked);
        drop(state);
        self.progress.notify_all();
        if wake {
            self.waker.wake_by_ref();
        }
    }

    fn fail(&self, topic: &str, failure: Failure) {
        let error = failure.into_error(format!("writing to Kafka topic \"{topic}\""));
        self.state().failure.get_or_insert_with(|| (error.kind(), error.message().to_owned()));
        self.progress.notify_all();
        self.waker.wake_by_ref();
    }
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.failure {
            Some((kind, message)) => Err(Error::new(*kind, message.clone())),
            None => Ok(()),
        }
    }
}

/// A request on its way: who was asked, with which batches.
type Answered = (Vec<(i32, i32, Leader)>, Result<ProduceResponse, Failure>);

/// The task: sends until the sink is closed and everything is acknowledged, or something cannot be written.
struct Sender {
    pump: Arc<Pump>,
    client: Client,
    topic: Arc<str>,
    settings: WriterSettings,
    outbox: Outbox,
    brokers: BTreeMap<i32, (Way, Connection)>,
    /// Connections ever opened.
    ways: Way,
    answers: JoinSet<Answered>,
    /// Open batches that wait for company, and since when.
    lingering: BTreeMap<i32, Instant>,
    started: Instant,
    backoff: Backoff,
    /// Not before: the brokers said "not now".
    pause: Option<Instant>,
}

/// A task that panics must not leave a worker or a flush waiting for it.
pub(super) async fn supervise(pump: Arc<Pump>, topic: String, task: impl Future<Output = ()> + Send + 'static) {
    if let Err(died) = tokio::spawn(task).await {
        pump.fail(&topic, Failure::new(Cause::Other, format!("the task that writes ended: {died}")));
    }
}

async fn run(pump: Arc<Pump>, client: Client, topic: String, settings: WriterSettings) {
    let outcome = match client.idempotent_identity().await {
        Ok(identity) => {
            let sender = Sender {
                pump: pump.clone(),
                client,
                topic: topic.as_str().into(),
                settings,
                outbox: Outbox::new(identity),
                brokers: BTreeMap::new(),
                ways: 0,
                answers: JoinSet::new(),
                lingering: BTreeMap::new(),
                started: Instant::now(),
                backoff: Backoff::new(),
                pause: None,
            };
            sender.run().await
        }
        Err(failure) => Err(failure),
    };
    if let Err(failure) = outcome {
        pump.fail(&topic, failure);
    }
}

impl Sender {
    async fn run(mut self) -> Result<(), Failure> {
        loop {
            let closed = self.collect()?;
            if closed && self.outbox.is_empty() {
                return Ok(());
            }
            self.check_age()?;
            if self.outbox.wants_identity() {
                self.renew().await?;
            }
            if self.pause.is_none_or(|until| until <= Instant::now()) {
                self.pause = None;
                self.send().await?;
            }
            self.wait().await?;
        }
    }

    /// Takes what the worker has appended: full batches, and those that need not wait. Whether the sink is closed.
    fn collect(&mut self) -> Result<bool, Failure> {
        let (full, open, closed) = {
            let mut state = self.pump.state();
            let full = state.gather.take_done();
            let now = Instant::now();
            let open: Vec<i32> = state.gather.open_partitions().collect();
            let due = open.into_iter().filter(|partition| {
                let since = *self.lingering.entry(*partition).or_insert(now);
                let full = full.iter().any(|parted| parted.partition == *partition);
                // A worker that has no room for more brings no company.
                let alone = state.blocked || now - since >= self.settings.linger();
                let idle = !full && self.outbox.is_idle(*partition) && alone;
                state.closed || state.progress.is_flushed(*partition) || idle
            });
            let due: Vec<i32> = due.collect();
            let open: Vec<_> = due.into_iter().filter_map(|p| Some((p, state.gather.take_open(p)?))).collect();
            // Counted as out before it stops being counted as gathered: the budget holds.
            state.outbox += full.iter().map(|parted| parted.batch.bytes()).sum::<usize>();
            state.outbox += open.iter().map(|(_, builder)| builder.bytes()).sum::<usize>();
            (full, open, state.closed)
        };
        let now = self.started.elapsed();
        full.into_iter().for_each(|parted| self.outbox.push(parted, now));
        for (partition, builder) in open {
            self.lingering.remove(&partition);
            self.seal(partition, builder, now)?;
        }
        self.pump.acknowledged(&[], self.outbox.bytes());
        Ok(closed)
    }

    /// Compressed here, not on the worker.
    fn seal(&mut self, partition: i32, mut builder: BatchBuilder, now: Duration) -> Result<(), Failure> {
        let sealed = builder.seal().map_err(|error| Failure::new(Cause::Poison, error.to_string()))?;
        sealed.into_iter().for_each(|batch| self.outbox.push(Parted { partition, batch }, now));
        Ok(())
    }

    /// A batch that was tried for too long fails the sink; whether it is in the log is not known.
    fn check_age(&self) -> Result<(), Failure> {
        let limit = self.settings.delivery_timeout();
        match self.outbox.oldest() {
            Some(since) if self.started.elapsed().saturating_sub(since) > limit => Err(Failure::new(
                Cause::Retriable,
                format!("a batch was not acknowledged within `delivery.timeout.ms` ({limit:?}); it may be in the log"),
            )),
            _ => Ok(()),
        }
    }

    async fn renew(&mut self) -> Result<(), Failure> {
        match self.client.idempotent_identity().await {
            Ok(identity) => self.outbox.renew(identity),
            Err(failure) => self.not_now(failure)?,
        }
        Ok(())
    }

    /// One request to every broker that leads a partition with something to send, again until nothing may be sent. A partition
    /// that nobody leads, or whose leader is away, holds back no other.
    async fn send(&mut self) -> Result<(), Failure> {
        let (mut away, mut sent) = (BTreeMap::new(), true);
        while std::mem::take(&mut sent) {
            for (broker, partitions) in self.by_leader(&mut away).await {
                match self.broker(broker).await {
                    Ok((way, connection)) => sent |= self.send_to(way, &connection, partitions).await?,
                    Err(failure) => self.unreachable(&partitions, &failure, &mut away),
                }
            }
        }
        away.into_values().try_for_each(|failure| self.not_now(failure))
    }

    /// What may be sent, by who leads it; those of which that is not known join `away`. The cluster is asked once: what it says
    /// of one partition it says of all, and when it says nothing, asking for each would take too long.
    async fn by_leader(&self, away: &mut BTreeMap<i32, Failure>) -> BTreeMap<i32, Vec<(i32, Leader)>> {
        let mut by_leader: BTreeMap<i32, Vec<(i32, Leader)>> = BTreeMap::new();
        for partition in self.outbox.ready() {
            if away.contains_key(&partition) {
                continue;
            }
            let found = match away.values().next() {
                None => self.client.net().leader(&self.topic, partition).await,
                Some(failure) => self.client.net().known_leader(&self.topic, partition).ok_or_else(|| failure.clone()),
            };
            match found {
                Ok(leader) => by_leader.entry(leader.broker).or_default().push((partition, leader)),
                Err(failure) => drop(away.insert(partition, failure)),
            }
        }
        by_leader
    }

    /// A leader that may be gone for good: the next look asks who leads now.
    fn unreachable(&self, led: &[(i32, Leader)], failure: &Failure, away: &mut BTreeMap<i32, Failure>) {
        for (partition, leader) in led {
            self.client.net().doubt(&self.topic, *partition, *leader);
            away.insert(*partition, failure.clone());
        }
    }

    /// Whether anything was sent.
    async fn send_to(
        &mut self,
        way: Way,
        connection: &Connection,
        partitions: Vec<(i32, Leader)>,
    ) -> Result<bool, Failure> {
        let version = connection.version::<ProduceRequest>()?.min(VERSION);
        let (mut sending, mut bytes) = (Vec::new(), 0);
        for (partition, leader) in partitions {
            if bytes >= self.settings.request_bytes() {
                break;
            }
            let Some(next) = self.outbox.send(partition, way) else { continue };
            bytes += next.batch.bytes();
            sending.push((next, leader));
        }
        if sending.is_empty() {
            return Ok(false);
        }
        let sent: Vec<_> = sending.iter().map(|(s, leader)| (s.partition, s.sequence, *leader)).collect();
        let batches = sending.into_iter().map(|(sending, _)| pieces(sending)).collect();
        let produce = Produce {
            transactional_id: None,
            timeout: self.client.request_timeout(),
            topics: vec![(&self.topic, batches)],
        };
        match connection.produce(version, &produce).await {
            Ok(answer) => drop(self.answers.spawn(async move { (sent, answer.wait().await) })),
            // Whether it left is not known: its batches come back as failed, like those of a lost answer.
            Err(failure) => drop(self.answers.spawn(async move { (sent, Err(failure)) })),
        }
        Ok(true)
    }

    async fn broker(&mut self, broker: i32) -> Result<(Way, Connection), Failure> {
        if let Some(known) = self.brokers.get(&broker).filter(|(_, connection)| connection.is_open()) {
            return Ok(known.clone());
        }
        let connection = self.client.net().open(broker).await?;
        self.ways += 1;
        self.brokers.insert(broker, (self.ways, connection.clone()));
        Ok((self.ways, connection))
    }

    /// Until there is an answer, something to send, or a time has come.
    async fn wait(&mut self) -> Result<(), Failure> {
        let lingering = self.lingering.values().min().map(|since| *since + self.settings.linger());
        let look = Instant::now() + Duration::from_secs(1);
        let until =
            [self.pause, lingering.filter(|at| *at > Instant::now())].into_iter().flatten().fold(look, Instant::min);
        let pump = self.pump.clone();
        tokio::select! {
            Some(answered) = self.answers.join_next() => self.answered(answered),
            () = pump.work.notified() => Ok(()),
            () = tokio::time::sleep_until(until) => Ok(()),
        }
    }

    fn answered(&mut self, answered: Result<Answered, tokio::task::JoinError>) -> Result<(), Failure> {
        let (sent, answer) = answered.map_err(|_| Failure::new(Cause::Other, "a task that wrote to Kafka panicked"))?;
        let mut records = Vec::with_capacity(sent.len());
        let mut not_now = None;
        for (partition, sequence, leader) in sent {
            let (outcome, failure) = judge(&answer, partition, &self.topic)?;
            if outcome == Outcome::Again {
                self.client.net().doubt(&self.topic, partition, leader);
            }
            not_now = failure.or(not_now);
            records.push((partition, self.outbox.answered(partition, sequence, outcome)));
        }
        match not_now {
            Some(failure) => self.not_now(failure)?,
            None => self.backoff.reset(),
        }
        self.pump.acknowledged(&records, self.outbox.bytes());
        Ok(())
    }

    /// A failure that may pass: a pause before the next sending. Any other ends the sink.
    fn not_now(&mut self, failure: Failure) -> Result<(), Failure> {
        if failure.cause != Cause::Retriable {
            return Err(failure);
        }
        tracing::debug!(topic = &*self.topic, %failure, "writing is tried again");
        self.pause = Some(Instant::now() + self.backoff.next());
        Ok(())
    }
}

fn pieces(sending: Sending) -> Batches {
    let (head, payload) = (Bytes::copy_from_slice(sending.batch.head()), sending.batch.payload().clone());
    Batches { partition: sending.partition, pieces: vec![head, payload] }
}

/// What an answer means for the batch of one partition; what can never be written is the error.
fn judge(
    answer: &Result<ProduceResponse, Failure>,
    partition: i32,
    topic: &str,
) -> Result<(Outcome, Option<Failure>), Failure> {
    let response = match answer {
        Ok(response) => response,
        Err(failure) if failure.cause == Cause::Retriable => return Ok((Outcome::Again, Some(failure.clone()))),
        Err(failure) => return Err(failure.clone()),
    };
    let parts = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    let Some(part) = parts.into_iter().find(|part| part.index == partition) else {
        let failure = Failure::unanswered(format_args!("writing to {topic}-{partition}"));
        return Ok((Outcome::Again, Some(failure)));
    };
    let unknown = [
        ResponseError::OutOfOrderSequenceNumber,
        ResponseError::UnknownProducerId,
        ResponseError::InvalidProducerEpoch,
        ResponseError::InvalidProducerIdMapping,
    ];
    let failure = produce_failure(part, topic);
    match part.error_code {
        0 => Ok((Outcome::Written, None)),
        code if code == ResponseError::DuplicateSequenceNumber.code() => Ok((Outcome::Written, None)),
        code if unknown.iter().any(|error| error.code() == code) => Ok((Outcome::Unknown, None)),
        // A topic that is being moved or created may be unknown to one broker for a while.
        _ if matches!(failure.cause, Cause::Retriable | Cause::Missing) => {
            Ok((Outcome::Again, Some(Failure { cause: Cause::Retriable, ..failure })))
        }
        _ => Err(failure),
    }
}
