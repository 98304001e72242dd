//! The task that fetches: one per source instance, on the connector's own runtime.
//!
//! It reads while the queue has room, tells how far each partition has come (also over records that are never handed out),
//! and finds out when the brokers are gone.

use super::health::{Answer, Health};
use super::queue::{Chunk, Queue};
use super::resolve::Resolver;
use super::{OnMissingOffset, Settings};
use crate::client::{At, Cause, Client, Failure, Progress, Reader};
use crate::record::KafkaRecord;
use mailer_core::{Clock, Error, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The longest one look for records takes.
const POLL: Duration = Duration::from_millis(500);
/// The longest wait for an answer about a silent partition.
const ASK: Duration = Duration::from_secs(5);
/// A partition silent for so long is asked about, and so often.
const SILENCE: Duration = Duration::from_secs(2);
/// After a failed look for records.
const PAUSE: Duration = Duration::from_millis(200);

/// A partition the worker was given.
#[derive(Debug)]
pub(crate) struct Assigned {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// There is nothing to read: it ends where it begins.
    pub(crate) finished: bool,
}

/// What the worker wants.
#[derive(Debug)]
pub(crate) enum Order {
    /// Read these too; they get the next slots. All at once, so that none waits until a fetch of the others is answered.
    Read(Vec<Assigned>),
    /// This slot has reached its end.
    Finish { slot: usize },
}

struct Slot {
    topic: String,
    partition: i32,
    next: i64,
    finished: bool,
    health: Health,
    silent_since: Duration,
}

impl Slot {
    fn name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }
}

type Answers = Vec<(usize, Answer)>;

pub(crate) struct Fetcher {
    reader: Reader,
    client: Arc<Client>,
    settings: Arc<Settings>,
    queue: Arc<Queue>,
    orders: mpsc::UnboundedReceiver<Order>,
    clock: Arc<dyn Clock>,
    slots: Vec<Slot>,
    asked: Option<oneshot::Receiver<Answers>>,
}

impl Fetcher {
    pub(crate) fn new(
        reader: Reader,
        client: Arc<Client>,
        settings: Arc<Settings>,
        queue: Arc<Queue>,
        orders: mpsc::UnboundedReceiver<Order>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { reader, client, settings, queue, orders, clock, slots: Vec::new(), asked: None }
    }

    /// Reads until the source is dropped or cannot go on.
    pub(crate) async fn run(mut self) {
        while !self.queue.is_closed() {
            if let Err(error) = self.step().await {
                self.queue.fail(&error);
                break;
            }
        }
        self.reader.close().await;
    }

    async fn step(&mut self) -> Result<()> {
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order).await?;
        }
        if self.queue.is_full() || self.slots.iter().all(|slot| slot.finished) {
            return self.wait().await;
        }
        tokio::select! {
            biased;
            Some(order) = self.orders.recv() => self.obey(order).await,
            polled = self.reader.poll(POLL) => self.take(polled).await,
        }
    }

    /// Nothing to do until the worker says something.
    async fn wait(&mut self) -> Result<()> {
        tokio::select! {
            Some(order) = self.orders.recv() => self.obey(order).await,
            () = self.queue.changed() => Ok(()),
        }
    }

    async fn obey(&mut self, order: Order) -> Result<()> {
        let done = match order {
            Order::Read(assigned) => self.add(assigned).await,
            Order::Finish { slot } => self.finish(slot).await,
        };
        done.map_err(|failure| failure.into_error("assigning Kafka partitions"))
    }

    async fn add(&mut self, assigned: Vec<Assigned>) -> Result<(), Failure> {
        let silent_since = self.clock.monotonic();
        for Assigned { topic, partition, offset, finished } in assigned {
            if !finished {
                self.reader.add(&topic, partition, offset).await?;
            }
            let health = Health::default();
            self.slots.push(Slot { topic, partition, next: offset, finished, health, silent_since });
        }
        Ok(())
    }

    async fn finish(&mut self, slot: usize) -> Result<(), Failure> {
        let Some(slot) = self.slots.get_mut(slot) else { return Ok(()) };
        slot.finished = true;
        self.reader.remove(&slot.topic, slot.partition).await
    }

    async fn take(&mut self, polled: Result<Vec<KafkaRecord>, Failure>) -> Result<()> {
        match polled {
            Ok(records) => self.deliver(records).await?,
            Err(failure) if failure.is_out_of_range() => self.jump().await?,
            Err(failure) if failure.cause == Cause::Retriable => self.suffer(failure).await,
            Err(failure) => return Err(failure.into_error(format!("reading {}", self.settings.topics.join(", ")))),
        }
        self.look_after().await
    }

    // Records.

    async fn deliver(&mut self, records: Vec<KafkaRecord>) -> Result<()> {
        let mut batches = by_partition(records);
        let mut caught_up = true;
        for progress in self.reader.progress().await {
            let Some(slot) = self.slot_of(&progress.topic, progress.partition) else { continue };
            let records = batches.remove(&(progress.topic.clone(), progress.partition)).unwrap_or_default();
            self.advance(slot, records, &progress)?;
            caught_up &= progress.end.is_some_and(|end| progress.next >= end) && self.slots[slot].health.is_well();
        }
        self.queue.set_caught_up(caught_up);
        Ok(())
    }

    fn advance(&mut self, index: usize, records: VecDeque<KafkaRecord>, progress: &Progress) -> Result<()> {
        let now = self.clock.monotonic();
        let slot = &mut self.slots[index];
        if progress.next == slot.next {
            return Ok(());
        }
        let first = records.front().map_or(progress.next, |record| record.offset);
        if first < slot.next {
            truncated(self.settings.on_missing_offset, &slot.name(), slot.next, first)?;
        }
        slot.health.moved();
        slot.silent_since = now;
        slot.next = progress.next;
        let bytes = records.iter().map(KafkaRecord::bytes).sum();
        self.queue.push(Chunk { slot: index, records: records.into_iter(), bytes, next: progress.next });
        Ok(())
    }

    fn slot_of(&self, topic: &str, partition: i32) -> Option<usize> {
        self.slots.iter().position(|slot| slot.partition == partition && slot.topic == topic && !slot.finished)
    }

    /// Some position is not in its log any more: retention was faster than we are.
    async fn jump(&mut self) -> Result<()> {
        for (index, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| !slot.finished) {
            let resolver = Resolver {
                client: &self.client,
                settings: &self.settings,
                topic: &slot.topic,
                partition: slot.partition,
            };
            let Some(to) = resolver.where_to_jump(slot.next).await? else { continue };
            let moved = self.reader.seek(&slot.topic, slot.partition, to).await;
            moved.map_err(|failure| failure.into_error(slot.name()))?;
            slot.next = to;
            self.queue.push(Chunk { slot: index, records: VecDeque::new().into_iter(), bytes: 0, next: to });
        }
        Ok(())
    }

    // Silence.

    async fn suffer(&mut self, failure: Failure) {
        let now = self.clock.monotonic();
        for slot in &mut self.slots {
            slot.health.answered(Answer::None(failure.message.clone()), slot.next, now);
        }
        self.queue.set_caught_up(false);
        tokio::time::sleep(PAUSE).await;
    }

    /// Takes answers about silent partitions, asks anew, and fails when it has gone on for too long.
    async fn look_after(&mut self) -> Result<()> {
        let now = self.clock.monotonic();
        self.hear(now);
        if self.asked.is_none() {
            self.ask(now);
        }
        for slot in self.slots.iter().filter(|slot| !slot.finished) {
            slot.health.check(&slot.name(), self.settings.retry_deadline, now)?;
        }
        Ok(())
    }

    fn hear(&mut self, now: Duration) {
        let Some(asked) = &mut self.asked else { return };
        match asked.try_recv() {
            Err(oneshot::error::TryRecvError::Empty) => return,
            Err(oneshot::error::TryRecvError::Closed) => {}
            Ok(answers) => {
                for (index, answer) in answers {
                    let slot = &mut self.slots[index];
                    slot.health.answered(answer, slot.next, now);
                    slot.silent_since = now;
                }
            }
        }
        self.asked = None;
    }

    fn ask(&mut self, now: Duration) {
        let pause = SILENCE.min(self.settings.retry_deadline / 4);
        let silent = |slot: &Slot| !slot.finished && now.saturating_sub(slot.silent_since) >= pause;
        let about = self.slots.iter().enumerate().filter(|(_, slot)| silent(slot));
        let about: Vec<_> = about.map(|(index, slot)| (index, slot.topic.clone(), slot.partition)).collect();
        if about.is_empty() {
            return;
        }
        let (send, receive) = oneshot::channel();
        let (client, committed) = (self.client.clone(), self.settings.committed);
        tokio::spawn(async move {
            let _ = send.send(ask(&client, committed, about).await);
        });
        self.asked = Some(receive);
    }
}

async fn ask(client: &Client, committed: bool, about: Vec<(usize, String, i32)>) -> Answers {
    let at = if committed { At::LastStable } else { At::HighWatermark };
    let places = about.iter().map(|(_, topic, partition)| (topic.as_str(), *partition)).collect::<Vec<_>>();
    let mut found = client.offsets(&places, at, ASK.min(client.request_timeout())).await;
    let answer = |place: &(String, i32)| match found.as_mut().map(|found| found.remove(place)) {
        Ok(Some(Ok(offset))) => Answer::End(offset.offset),
        Ok(Some(Err(failure))) => Answer::None(failure.message),
        Ok(None) => Answer::None("the broker gave no answer".into()),
        Err(failure) => Answer::None(failure.message.clone()),
    };
    let mut answer = answer;
    about.into_iter().map(|(index, topic, partition)| (index, answer(&(topic, partition)))).collect()
}

fn by_partition(records: Vec<KafkaRecord>) -> HashMap<(String, i32), VecDeque<KafkaRecord>> {
    let mut batches: HashMap<(String, i32), VecDeque<KafkaRecord>> = HashMap::new();
    let mut records = records.into_iter().peekable();
    while let Some(first) = records.next() {
        let (topic, partition) = (first.topic.clone(), first.partition);
        let batch = batches.entry((topic.to_string(), partition)).or_default();
        batch.push_back(first);
        while let Some(next) = records.next_if(|next| next.partition == partition && next.topic == topic) {
            batch.push_back(next);
        }
    }
    batches
}

/// The log has become shorter than what was read from it.
fn truncated(policy: OnMissingOffset, name: &str, next: i64, back_to: i64) -> Result<()> {
    if policy == OnMissingOffset::Fail {
        return Err(Error::refused(format!(
            "{name}: the partition's log was cut back to offset {back_to} after offset {next} had been reached (an \
             unclean leader election): records that were read do not exist any more; `on_missing_offset(Earliest)` or \
             `(Latest)` goes on with what is there"
        )));
    }
    tracing::warn!(partition = name, next, back_to, "the log was cut back; exactly-once does not hold here");
    Ok(())
}
