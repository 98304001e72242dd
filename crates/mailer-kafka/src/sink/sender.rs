//! The task that writes: takes batches from the worker, sends them to whoever leads their partitions, and hears the answers.
//!
//! Whatever may take time runs beside it and comes back as an `Event`: looking for leaders, opening a way to a broker, a
//! request that waits for its place (a broker that throttles us is not asked anything for a while), an answer. So no broker
//! holds back what goes to another.

use super::answers::judge;
use super::outbox::{Outbox, Outcome, Sending, Way};
use super::pump::{Pump, Taken};
use crate::batch::BatchBuilder;
use crate::client::{Cause, Client, Failure, Identity, WriterSettings};
use crate::gather::Parted;
use crate::net::{Answer, Batches, Connection, Leader, Pace, Produce};
use bytes::Bytes;
use kafka_protocol::messages::ProduceRequest;
use kafka_protocol::messages::produce_response::ProduceResponse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The last version of Produce outside of transactions: 12 belongs to transaction version 2, and adds nothing here.
const VERSION: i16 = 11;
/// How often deadlines are looked at when nothing else happens.
const LOOK: Duration = Duration::from_secs(1);

/// The batches of a request: partition, first sequence number, and who was thought to lead.
type Sent = Vec<(i32, i32, Leader)>;

/// Something that was done beside the task.
enum Event {
    /// The cluster was asked who leads.
    Located(Result<Leader, Failure>),
    /// A way to a broker, for these partitions.
    Opened {
        broker: i32,
        led: Vec<(i32, Leader)>,
        way: Result<Connection, Failure>,
    },
    /// A request has its place in the order of its connection; or it has none, and whether it left is not known.
    Sent {
        broker: i32,
        sent: Sent,
        answer: Result<Answer<ProduceRequest>, Failure>,
    },
    Answered {
        broker: i32,
        sent: Sent,
        answer: Result<ProduceResponse, Failure>,
    },
    Identity(Result<Identity, Failure>),
}

/// The way to one broker.
#[derive(Default)]
struct Link {
    way: Option<(Way, Connection)>,
    /// It is being opened, or a request waits for its place: the next one waits for that.
    busy: bool,
    pace: Pace,
}

/// Something that is asked for one at a time.
#[derive(Default)]
struct Errand {
    busy: bool,
    pace: Pace,
}

/// Sends until the sink is closed and everything is acknowledged, or something cannot be written.
pub(super) struct Sender {
    pump: Arc<Pump>,
    client: Arc<Client>,
    topic: Arc<str>,
    settings: WriterSettings,
    outbox: Outbox,
    links: BTreeMap<i32, Link>,
    /// Ways ever opened.
    ways: Way,
    locating: Errand,
    renewing: Errand,
    events: JoinSet<Event>,
    /// Open batches that wait for company, and since when.
    lingering: BTreeMap<i32, Instant>,
    started: Instant,
}

impl Sender {
    pub(super) fn new(
        pump: Arc<Pump>,
        client: Arc<Client>,
        topic: &str,
        settings: WriterSettings,
        identity: Identity,
    ) -> Self {
        Self {
            pump,
            client,
            topic: topic.into(),
            settings,
            outbox: Outbox::new(identity),
            links: BTreeMap::new(),
            ways: 0,
            locating: Errand::default(),
            renewing: Errand::default(),
            events: JoinSet::new(),
            lingering: BTreeMap::new(),
            started: Instant::now(),
        }
    }

    pub(super) async fn run(mut self) -> Result<(), Failure> {
        loop {
            let closed = self.collect()?;
            if closed && self.outbox.is_empty() {
                return Ok(());
            }
            self.check_age()?;
            self.launch();
            self.wait().await?;
        }
    }

    /// Takes what the worker has appended: full batches, and those that need not wait. Whether the sink is closed.
    fn collect(&mut self) -> Result<bool, Failure> {
        let (now, linger) = (Instant::now(), self.settings.linger());
        let Self { pump, lingering, outbox, .. } = self;
        let Taken { full, open, closed } = pump.take(|partition, company| {
            let since = *lingering.entry(partition).or_insert(now);
            let alone = company.alone || now - since >= linger;
            company.wanted || (alone && !company.full && outbox.is_idle(partition))
        });
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
    fn seal(&mut self, partition: i32, builder: BatchBuilder, now: Duration) -> Result<(), Failure> {
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

    // What is begun.

    /// Begins everything that can be begun now.
    fn launch(&mut self) {
        if self.outbox.wants_identity() {
            self.renew();
        }
        let mut by_leader: BTreeMap<i32, Vec<(i32, Leader)>> = BTreeMap::new();
        let mut unknown = None;
        for partition in self.outbox.ready() {
            match self.client.net().known_leader(&self.topic, partition) {
                Some(leader) => by_leader.entry(leader.broker).or_default().push((partition, leader)),
                None => unknown = unknown.or(Some(partition)),
            }
        }
        unknown.into_iter().for_each(|partition| self.locate(partition));
        by_leader.into_iter().for_each(|(broker, led)| self.serve(broker, led));
    }

    fn renew(&mut self) {
        if self.renewing.begins() {
            let client = self.client.clone();
            self.events.spawn(async move { Event::Identity(client.idempotent_identity().await) });
        }
    }

    /// The cluster is asked about one partition: what it says of that it says of all.
    fn locate(&mut self, partition: i32) {
        if self.locating.begins() {
            let (client, topic) = (self.client.clone(), self.topic.clone());
            self.events.spawn(async move { Event::Located(client.net().leader(&topic, partition).await) });
        }
    }

    /// The next request to a broker, or a way to it.
    fn serve(&mut self, broker: i32, led: Vec<(i32, Leader)>) {
        let link = self.links.entry(broker).or_default();
        if link.busy || !link.pace.is_due() {
            return;
        }
        match link.way.clone().filter(|(_, connection)| connection.is_open()) {
            Some((way, connection)) => self.send(broker, way, connection, led),
            None => {
                link.busy = true;
                let client = self.client.clone();
                self.events.spawn(async move { Event::Opened { broker, led, way: client.net().open(broker).await } });
            }
        }
    }

    fn send(&mut self, broker: i32, way: Way, connection: Connection, led: Vec<(i32, Leader)>) {
        let (mut sent, mut batches, mut bytes) = (Sent::new(), Vec::new(), 0);
        for (partition, leader) in led {
            if bytes >= self.settings.request_bytes() {
                break;
            }
            let Some(next) = self.outbox.send(partition, way) else { continue };
            bytes += next.batch.bytes();
            sent.push((next.partition, next.sequence, leader));
            batches.push(pieces(next));
        }
        if sent.is_empty() {
            return;
        }
        self.links.entry(broker).or_default().busy = true;
        let (topic, timeout) = (self.topic.clone(), self.client.request_timeout());
        self.events.spawn(async move {
            let produce = Produce { transactional_id: None, timeout, topics: vec![(&topic, batches)] };
            Event::Sent { broker, sent, answer: write(&connection, &produce).await }
        });
    }

    // What comes back.

    /// Until something has happened, or a time has come.
    async fn wait(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        let lingering = self.lingering.values().map(|since| *since + self.settings.linger());
        let paced = self.links.values().map(|link| link.pace.due());
        let paced = paced.chain([self.locating.pace.due(), self.renewing.pace.due()]);
        let until = lingering.chain(paced).filter(|at| *at > now).fold(now + LOOK, Instant::min);
        let pump = self.pump.clone();
        tokio::select! {
            Some(event) = self.events.join_next() => {
                self.take(event.map_err(|_| Failure::new(Cause::Other, "a task that wrote to Kafka panicked"))?)
            }
            () = pump.work() => Ok(()),
            () = tokio::time::sleep_until(until) => Ok(()),
        }
    }

    fn take(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Located(told) => {
                self.locating.busy = false;
                match told {
                    Ok(_) => self.locating.pace.worked(),
                    Err(failure) => not_now(failure, &mut self.locating.pace)?,
                }
                Ok(())
            }
            Event::Identity(told) => {
                self.renewing.busy = false;
                match told {
                    // Whether it worked is seen by what the brokers say to it.
                    Ok(identity) => self.outbox.renew(identity),
                    Err(failure) => not_now(failure, &mut self.renewing.pace)?,
                }
                Ok(())
            }
            Event::Opened { broker, led, way } => self.opened(broker, &led, way),
            Event::Sent { broker, sent, answer: Ok(answer) } => {
                self.links.entry(broker).or_default().busy = false;
                self.events.spawn(async move { Event::Answered { broker, sent, answer: answer.wait().await } });
                Ok(())
            }
            Event::Sent { broker, sent, answer: Err(failure) } => {
                self.links.entry(broker).or_default().busy = false;
                self.answered(broker, sent, Err(failure))
            }
            Event::Answered { broker, sent, answer } => self.answered(broker, sent, answer),
        }
    }

    /// A leader that cannot be reached may be gone for good: the next look asks who leads now.
    fn opened(&mut self, broker: i32, led: &[(i32, Leader)], way: Result<Connection, Failure>) -> Result<(), Failure> {
        let link = self.links.entry(broker).or_default();
        link.busy = false;
        match way {
            Ok(connection) => {
                self.ways += 1;
                link.way = Some((self.ways, connection));
                Ok(())
            }
            Err(failure) => {
                led.iter().for_each(|(partition, leader)| self.client.net().doubt(&self.topic, *partition, *leader));
                not_now(failure, &mut link.pace)
            }
        }
    }

    fn answered(&mut self, broker: i32, sent: Sent, answer: Result<ProduceResponse, Failure>) -> Result<(), Failure> {
        let mut records = Vec::with_capacity(sent.len());
        let (mut failed, mut unknown) = (None, false);
        for (partition, sequence, leader) in sent {
            let (outcome, failure) = judge(&answer, partition, &self.topic)?;
            unknown |= outcome == Outcome::Unknown;
            if outcome == Outcome::Again {
                self.client.net().doubt(&self.topic, partition, leader);
            }
            failed = failure.or(failed);
            records.push((partition, self.outbox.answered(partition, sequence, outcome)));
        }
        match unknown {
            true => self.renewing.pace.failed(),
            // Not sooner: one partition may take what another always refuses.
            false if self.outbox.is_empty() => self.renewing.pace.worked(),
            false => {}
        }
        let pace = &mut self.links.entry(broker).or_default().pace;
        match failed {
            Some(failure) => not_now(failure, pace)?,
            None => pace.worked(),
        }
        self.pump.acknowledged(&records, self.outbox.bytes());
        Ok(())
    }
}

impl Errand {
    /// Whether it is begun by this.
    fn begins(&mut self) -> bool {
        let begins = !self.busy && self.pace.is_due();
        self.busy |= begins;
        begins
    }
}

/// A failure that may pass: a pause. Any other ends the sink.
fn not_now(failure: Failure, pace: &mut Pace) -> Result<(), Failure> {
    if failure.cause != Cause::Retriable {
        return Err(failure);
    }
    tracing::debug!(%failure, "writing is tried again");
    pace.failed();
    Ok(())
}

async fn write(connection: &Connection, produce: &Produce<'_>) -> Result<Answer<ProduceRequest>, Failure> {
    let version = connection.version::<ProduceRequest>()?.min(VERSION);
    connection.produce(version, produce).await
}

fn pieces(sending: Sending) -> Batches {
    let (head, payload) = (Bytes::copy_from_slice(sending.batch.head()), sending.batch.payload().clone());
    Batches { partition: sending.partition, pieces: vec![head, payload] }
}
