//! The task that fetches: one per source instance, on the connector's own runtime.
//!
//! Each broker has a connection of its own and at most one request on it. When an answer is there, the headers of its batches
//! say where the next request begins; it is sent at once, while the worker unpacks what came. A partition of which much is
//! waiting for the worker is left out until that is read. Everything that may take time (looking for leaders, requests) runs
//! beside this task and comes back as [`Done`]; all decisions are made here.

use super::Settings;
use super::health::Answer;
use super::link::{self, Fetched, Link};
use super::locate::{self, Located, Wanted};
use super::partition::{Partition, Served, State};
use super::queue::{Chunk, Queue};
use super::request::{FetchSettings, Plan};
use super::resolve::{Resolver, truncated};
use super::told::{Told, told};
use super::unpack::scan;
use crate::client::{Client, Failure, TopicId};
use crate::net::Leader;
use bytes::Bytes;
use kafka_protocol::messages::fetch_response::PartitionData;
use mailer_core::{Clock, Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How often waiting partitions and deadlines are looked at when nothing else happens.
const TICK: Duration = Duration::from_millis(100);
/// After trouble.
const PAUSE: Duration = Duration::from_millis(200);
/// A fetch that brings nothing of what the broker says is there is tried over a new connection after this time.
const STALLED: Duration = Duration::from_secs(2);
/// How long a nearer replica is asked before the leader is asked for one again.
const REPLICA: Duration = Duration::from_secs(300);

/// A partition the worker was given.
#[derive(Debug)]
pub(crate) struct Assigned {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    pub(crate) topic_id: TopicId,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: Option<i32>,
    /// There is nothing to read: it ends where it begins.
    pub(crate) finished: bool,
}

/// What the worker wants.
#[derive(Debug)]
pub(crate) enum Order {
    /// Read these too; they get the next slots.
    Read(Vec<Assigned>),
    /// This slot has reached its end.
    Finish { slot: usize },
}

/// Something that was done beside the task.
enum Done {
    Located(Vec<(usize, Located)>),
    Fetched(Fetched),
    /// Where to go on with a slot whose position was not in its log.
    Jumped(usize, Result<Option<i64>>),
}

pub(crate) struct Fetcher {
    pub(crate) client: Arc<Client>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) fetch: Arc<FetchSettings>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) clock: Arc<dyn Clock>,
    slots: Vec<Partition>,
    links: BTreeMap<i32, Link>,
    tasks: JoinSet<Done>,
    locating: bool,
    /// Whose turn it is to be asked for first: an answer is filled in the order of the request.
    turn: usize,
}

impl Fetcher {
    pub(crate) fn new(
        client: Arc<Client>,
        settings: Arc<Settings>,
        fetch: Arc<FetchSettings>,
        queue: Arc<Queue>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (slots, links, tasks) = (Vec::new(), BTreeMap::new(), JoinSet::new());
        Self { client, settings, fetch, queue, clock, slots, links, tasks, locating: false, turn: 0 }
    }

    /// Reads until the source is dropped or cannot go on.
    pub(crate) async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        while !self.queue.is_closed() {
            if let Err(error) = self.step(&mut orders).await {
                return self.queue.fail(&error);
            }
        }
    }

    async fn step(&mut self, orders: &mut mpsc::UnboundedReceiver<Order>) -> Result<()> {
        while let Ok(order) = orders.try_recv() {
            self.obey(order);
        }
        self.launch();
        tokio::select! {
            Some(order) = orders.recv() => self.obey(order),
            Some(done) = self.tasks.join_next() => {
                self.take(done.map_err(|e| Error::internal("a task of the Kafka source panicked").caused_by(e))?)?;
            }
            () = self.queue.changed() => {}
            () = tokio::time::sleep(TICK) => {}
        }
        let (deadline, now) = (self.settings.retry_deadline, self.now());
        let mut open = self.slots.iter().filter(|slot| !slot.is_finished());
        open.try_for_each(|slot| slot.health.check(&slot.name(), deadline, now))
    }

    fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Read(assigned) => assigned.into_iter().for_each(|assigned| self.add(assigned)),
            Order::Finish { slot } => self.slots[slot].state = State::Finished,
        }
    }

    fn add(&mut self, assigned: Assigned) {
        self.queue.add_slot();
        self.slots.push(Partition {
            topic: assigned.topic,
            partition: assigned.partition,
            topic_id: assigned.topic_id,
            next: assigned.offset,
            leader_epoch: assigned.leader_epoch,
            end: None,
            state: if assigned.finished { State::Finished } else { State::Lost { suspect: false } },
            health: Default::default(),
            not_before: Duration::ZERO,
            reconnect_at: Duration::ZERO,
            needs: None,
        });
    }

    // What is sent.

    fn launch(&mut self) {
        let now = self.now();
        self.locate(now);
        let brokers = self.brokers(now);
        let (held, share) = (self.queue.held(), (self.settings.read_ahead / brokers.len().max(1)).max(1));
        for (broker, slots) in brokers {
            if let Some(plan) = self.plan(broker, &slots, &held, share) {
                let link = self.links.entry(broker).or_default();
                link.busy = true;
                let connection = link.connection.take();
                let fetch = link::fetch(self.client.clone(), self.fetch.clone(), broker, connection, plan);
                self.tasks.spawn(async move { Done::Fetched(fetch.await) });
            }
        }
    }

    fn locate(&mut self, now: Duration) {
        if self.locating {
            return;
        }
        let mut wanted = Vec::new();
        for (slot, partition) in self.slots.iter_mut().enumerate().filter(|(_, slot)| slot.not_before <= now) {
            if let State::Lost { suspect } = partition.state {
                wanted.push(Wanted::new(slot, partition, suspect));
                partition.state = State::Asked;
            }
        }
        if !wanted.is_empty() {
            self.locating = true;
            let locating = locate::locate(self.client.clone(), wanted);
            self.tasks.spawn(async move { Done::Located(locating.await) });
        }
    }

    /// The brokers that serve something, and what.
    fn brokers(&self, now: Duration) -> BTreeMap<i32, Vec<usize>> {
        let mut brokers: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for (slot, partition) in self.slots.iter().enumerate() {
            if let Some(broker) = partition.broker(now) {
                brokers.entry(broker).or_default().push(slot);
            }
        }
        brokers
    }

    /// The next request to a broker, if one is due. `share` is how many bytes of this broker may wait for the worker. When
    /// they do, those of which nothing waits are asked for all the same, for their fair part: what waits may be of splits
    /// that are paused until these have caught up.
    fn plan(&mut self, broker: i32, slots: &[usize], held: &[usize], share: usize) -> Option<Plan> {
        let now = self.now();
        let link = self.links.entry(broker).or_default();
        let used: usize = slots.iter().map(|slot| held[*slot]).sum();
        if link.busy || now < link.not_before {
            return None;
        }
        let fair = (share / slots.len()).max(1);
        let enough = if used < share { fair } else { 1 };
        let (paused, mut ready): (Vec<_>, Vec<_>) = slots.iter().copied().partition(|slot| held[*slot] >= enough);
        // A request that waits for the quiet partitions would keep the busy ones waiting with it.
        let max_wait = if paused.is_empty() { self.fetch.max_wait } else { Duration::ZERO };
        if !paused.is_empty() {
            if now < link.hold_until {
                return None;
            }
            link.hold_until = now + TICK;
        }
        self.turn = self.turn.wrapping_add(1);
        let first = self.turn % ready.len().max(1);
        ready.rotate_left(first);
        let bytes = self.fetch.partition_bytes;
        let parts: Vec<_> = ready.into_iter().filter_map(|slot| self.slots[slot].join(slot, bytes)).collect();
        let largest = parts.iter().map(|part| part.max_bytes).filter(|needed| *needed > bytes).max();
        let room = if used < share { share - used } else { fair };
        let room = i32::try_from(room).unwrap_or(i32::MAX).max(largest.unwrap_or(1));
        (!parts.is_empty()).then_some(Plan { parts, max_bytes: room, max_wait })
    }

    // What comes back.

    fn take(&mut self, done: Done) -> Result<()> {
        match done {
            Done::Located(located) => {
                self.locating = false;
                located.into_iter().try_for_each(|(slot, located)| self.located(slot, located))?;
            }
            Done::Fetched(fetched) => self.fetched(fetched)?,
            Done::Jumped(slot, to) => self.jumped(slot, to)?,
        }
        self.queue.set_caught_up(self.slots.iter().all(Partition::is_caught_up));
        Ok(())
    }

    fn located(&mut self, slot: usize, located: Located) -> Result<()> {
        if self.slots[slot].is_finished() {
            return Ok(());
        }
        match located {
            Located::At(leader) => self.slots[slot].state = State::Ready(Served { leader, replica: None }),
            Located::Truncated(end) => {
                truncated(self.settings.on_missing_offset, &self.slots[slot].name(), self.slots[slot].next, end)?;
                self.jump(slot, end);
            }
            Located::Failed(failure) => self.lose(slot, &failure),
            Located::Refused(error) => return Err(error),
        }
        Ok(())
    }

    fn fetched(&mut self, fetched: Fetched) -> Result<()> {
        let Fetched { broker, plan, connection, answer } = fetched;
        let link = self.links.entry(broker).or_default();
        (link.busy, link.connection) = (false, connection);
        let mut served: BTreeMap<usize, Served> = BTreeMap::new();
        for part in &plan.parts {
            served.extend(self.slots[part.slot].leave().map(|by| (part.slot, by)));
        }
        match answer {
            // A broker that wants quiet says nothing else: the next request waits for that long.
            Ok(response) if response.throttle_time_ms > 0 && response.responses.is_empty() => {}
            Ok(response) => {
                let told = plan.sort(response);
                let is_full = Plan::is_full(&told);
                for (slot, data) in told {
                    if let Some(by) = served.remove(&slot) {
                        let crowded_out = is_full && !plan.is_first(slot);
                        self.told(slot, by, (broker, crowded_out), data)?;
                    }
                }
                let silent = Failure::unanswered(format_args!("Fetch from broker {broker}"));
                served.into_iter().for_each(|(slot, by)| self.moved(slot, by, broker, &silent));
            }
            Err(failure) if failure.is_final() => {
                return Err(failure.into_error(format_args!("reading {}", self.settings.topics.join(", "))));
            }
            Err(failure) => served.into_iter().for_each(|(slot, by)| self.moved(slot, by, broker, &failure)),
        }
        Ok(())
    }

    fn told(&mut self, slot: usize, by: Served, from: (i32, bool), data: PartitionData) -> Result<()> {
        let (broker, crowded_out) = from;
        let doing = format_args!("Fetch of {} from broker {broker}", self.slots[slot].name()).to_string();
        match told(data, self.fetch.committed, doing) {
            Told::Read { records, aborted, end } => {
                self.read(slot, (broker, crowded_out), (records, aborted), end)?;
            }
            Told::Elsewhere(replica) => {
                let replica = Some((replica, self.now() + REPLICA));
                self.slots[slot].state = State::Ready(Served { replica, ..by });
            }
            Told::Moved(failure, leader) => {
                self.moved(slot, by, broker, &failure);
                self.hint(slot, leader);
            }
            // A replica may lag behind: only the leader knows what the log holds.
            Told::OutOfRange if by.broker(self.now()) != by.leader.broker => {
                self.slots[slot].state = State::Ready(Served { replica: None, ..by });
            }
            Told::OutOfRange => self.look_where_to_jump(slot),
            Told::Refused(failure) => return Err(failure.into_error("reading")),
        }
        Ok(())
    }

    fn read(
        &mut self,
        slot: usize,
        (broker, crowded_out): (i32, bool),
        (records, aborted): (Bytes, Vec<(i64, i64)>),
        end: i64,
    ) -> Result<()> {
        let scan = scan(records.clone());
        let now = self.now();
        let partition = &mut self.slots[slot];
        partition.end = Some(end);
        self.queue.set_end(slot, end);
        if let Some(next) = scan.next.filter(|next| *next > partition.next) {
            (partition.next, partition.leader_epoch, partition.needs) = (next, scan.leader_epoch, None);
            partition.health.moved();
            let (records, leader_epoch) = (records.slice(..scan.bytes), scan.leader_epoch);
            self.queue.push(Chunk { slot, records, aborted, next, leader_epoch });
        } else if let Some(needs) = scan.needs {
            let needs = i32::try_from(needs).unwrap_or(i32::MAX);
            partition.health.answered(Answer::None(format!("a batch of {needs} bytes does not arrive")), 0, now);
            partition.needs = Some(needs);
        } else if end <= partition.next || !crowded_out {
            partition.health.answered(Answer::End(end), partition.next, now);
            self.watch_stall(slot, broker, now);
        }
        let partition = &self.slots[slot];
        let bad = scan.malformed.map(|bad| bad.into_error(format_args!("{}@{}", partition.name(), partition.next)));
        bad.map_or(Ok(()), Err)
    }

    // Trouble.

    /// The broker says that there is more, and nothing comes: another connection may do better, or another leader.
    fn watch_stall(&mut self, slot: usize, broker: i32, now: Duration) {
        let patience = STALLED.min(self.settings.retry_deadline / 4);
        let partition = &mut self.slots[slot];
        if partition.health.is_well() {
            return;
        }
        let link = self.links.entry(broker).or_default();
        link.not_before = now + PAUSE;
        if partition.health.lasting(now) >= patience && now >= partition.reconnect_at {
            tracing::warn!(partition = partition.name(), broker, "a fetch has stalled; connecting anew");
            link.connection = None;
            partition.reconnect_at = now + patience;
            if let Some(State::Ready(by)) = Some(partition.state) {
                self.client.net().doubt(&partition.topic, partition.partition, by.leader);
                partition.state = State::Lost { suspect: true };
            }
        }
    }

    /// Not served by this broker now: the leader is looked for anew.
    fn moved(&mut self, slot: usize, by: Served, broker: i32, failure: &Failure) {
        let partition = &self.slots[slot];
        self.client.net().doubt(&partition.topic, partition.partition, by.leader);
        self.links.entry(broker).or_default().not_before = self.now() + PAUSE;
        self.lose(slot, failure);
    }

    fn lose(&mut self, slot: usize, failure: &Failure) {
        let now = self.now();
        let partition = &mut self.slots[slot];
        partition.health.answered(Answer::None(failure.message.clone()), partition.next, now);
        partition.state = State::Lost { suspect: true };
        partition.not_before = now + PAUSE;
    }

    /// The broker named the new leader beside its refusal: no need to wait for metadata to learn it.
    fn hint(&mut self, slot: usize, leader: Option<Leader>) {
        let partition = &mut self.slots[slot];
        let taken =
            leader.is_some_and(|leader| self.client.net().leader_is(&partition.topic, partition.partition, leader));
        if taken {
            partition.not_before = Duration::ZERO;
        }
    }

    fn look_where_to_jump(&mut self, slot: usize) {
        let partition = &mut self.slots[slot];
        partition.state = State::Asked;
        let (client, settings) = (self.client.clone(), self.settings.clone());
        let (topic, partition, next) = (partition.topic.clone(), partition.partition, partition.next);
        self.tasks.spawn(async move {
            let resolver = Resolver { client: &client, settings: &settings, topic: &topic, partition };
            Done::Jumped(slot, resolver.where_to_jump(next).await)
        });
    }

    fn jumped(&mut self, slot: usize, to: Result<Option<i64>>) -> Result<()> {
        if self.slots[slot].is_finished() {
            return Ok(());
        }
        match to {
            Ok(Some(to)) => self.jump(slot, to),
            Ok(None) => self.lose(slot, &Failure::unanswered("the broker calls an offset out of range that is not")),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                self.lose(slot, &Failure::unanswered(error.message()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn jump(&mut self, slot: usize, to: i64) {
        let partition = &mut self.slots[slot];
        (partition.next, partition.leader_epoch) = (to, None);
        partition.state = State::Lost { suspect: false };
        self.queue.push(Chunk::jump(slot, to));
    }
}
