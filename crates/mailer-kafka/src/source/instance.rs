//! The source as one worker sees it: synchronous, never waiting once the job runs.

use super::discovery::{self, Known};
use super::fetcher::{Assigned, Fetcher, Order};
use super::monitor::Monitor;
use super::queue::Queue;
use super::request::FetchSettings;
use super::resolve::Resolver;
use super::unpack::Unpacking;
use super::{Decode, OnError, Position, RecordRef, Settings};
use crate::client::Client;
use crate::runtime::Io;
use mailer_core::{
    Batch, CheckpointId, Error, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SplitId,
    SplitState, StartAt, Timestamp, WorkerContext,
};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Reads the partitions one worker was given. Made by [`super::KafkaSource`].
pub struct KafkaReader<D: Decode> {
    io: Arc<Io>,
    client: Arc<Client>,
    settings: Arc<Settings>,
    decode: D,
    queue: Arc<Queue>,
    orders: mpsc::UnboundedSender<Order>,
    known: Arc<Known>,
    slots: Vec<Slot>,
    /// Assigned since the last poll; the fetcher gets them with the next one.
    fresh: Vec<Assigned>,
    current: Option<Unpacking>,
    /// Chunks in hand of slots that were paused meanwhile.
    parked: Vec<Unpacking>,
    monitor: Option<RefCell<Monitor>>,
}

struct Slot {
    split: SplitId,
    topic: Arc<str>,
    partition: i32,
    position: Position,
    /// Where it ends, in bounded mode.
    end: Option<i64>,
    /// Its event time is too far ahead of others.
    paused: bool,
}

impl Slot {
    fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.position.offset >= end)
    }

    fn at(&self, offset: i64, leader_epoch: Option<i32>) -> Position {
        Position { offset, leader_epoch, topic_id: self.position.topic_id }
    }
}

impl<D: Decode> KafkaReader<D> {
    pub(crate) fn start(
        io: Arc<Io>,
        client: Arc<Client>,
        settings: Arc<Settings>,
        fetch: FetchSettings,
        decode: D,
        context: &WorkerContext,
    ) -> Result<Self> {
        let (looking, told) = (client.clone(), settings.clone());
        let known = Arc::new(io.wait(async move { Known::look(&looking, &told).await })?);
        let queue = Arc::new(Queue::new(context.waker.clone()));
        let (orders, taken) = mpsc::unbounded_channel();
        let (clock, fetch) = (context.clock.clone(), Arc::new(fetch));
        let fetcher = Fetcher::new(client.clone(), settings.clone(), fetch, queue.clone(), clock);
        io.spawn(fetcher.run(taken));
        if !settings.until_end {
            let waker = context.waker.clone();
            io.spawn(discovery::watch(known.clone(), client.clone(), settings.clone(), queue.clone(), waker));
        }
        let monitor = settings.group_offsets.clone();
        let monitor = monitor.map(|group| RefCell::new(Monitor::start(&io, client.clone(), group)));
        Ok(Self {
            io,
            client,
            settings,
            decode,
            queue,
            orders,
            known,
            monitor,
            slots: Vec::new(),
            fresh: Vec::new(),
            current: None,
            parked: Vec::new(),
        })
    }

    fn order(&self, order: Order) {
        // A closed channel means that the task has failed; the queue says why.
        let _ = self.orders.send(order);
        self.queue.notify();
    }

    fn slot(&self, split: &SplitId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.split == *split)
    }

    /// The next chunk to hand out: the one in hand, then those in hand of slots that may go on, then what was fetched.
    fn next_chunk(&mut self) -> Option<Unpacking> {
        let is_paused = |slot: usize| self.slots[slot].paused;
        match self.current.take() {
            Some(chunk) if is_paused(chunk.slot) => self.parked.push(chunk),
            Some(chunk) => return Some(chunk),
            None => {}
        }
        match self.parked.iter().position(|chunk| !is_paused(chunk.slot)) {
            Some(at) => Some(self.parked.remove(at)),
            None => self.queue.pop(is_paused).map(Unpacking::new),
        }
    }

    /// Moves records of one chunk into `out`. Returns their bytes, and whether the chunk is done.
    fn drain(&mut self, chunk: &mut Unpacking, out: &mut Batch<D::Item>) -> Result<(usize, bool)> {
        let Self { slots, settings, decode, .. } = self;
        let slot = &mut slots[chunk.slot];
        let mut bytes = 0;
        loop {
            let from = slot.position.offset;
            let bad = |(offset, malformed): super::unpack::Bad| malformed.into_error(place(slot, offset));
            let Some(batch) = chunk.batch(from).map_err(bad)? else { return Ok((bytes, true)) };
            let (leader_epoch, next) = (batch.leader_epoch(), batch.header.next_offset());
            while let Some(view) = batch.records.next_record() {
                let view = view.map_err(|malformed| malformed.into_error(place(slot, slot.position.offset)))?;
                if view.offset < slot.position.offset {
                    continue; // The position is in the middle of the batch.
                }
                if let Some(end) = slot.end.filter(|end| view.offset >= *end) {
                    chunk.cut(end);
                    return Ok((bytes, true));
                }
                bytes += view.payload_bytes();
                let next = view.offset + 1;
                let record = RecordRef { topic: &slot.topic, partition: slot.partition, leader_epoch, view };
                match decode.decode_ref(&record) {
                    Ok(value) => {
                        let timestamp = Timestamp(decode.timestamp(view.timestamp, &value));
                        out.push(Record { timestamp, value });
                    }
                    Err(error) => undecodable(settings, error.context(record.place()))?,
                }
                slot.position = slot.at(next, leader_epoch);
                if out.len() >= MAX_BATCH_RECORDS || bytes >= MAX_BATCH_BYTES {
                    return Ok((bytes, false));
                }
            }
            chunk.close_batch();
            slot.position = slot.at(next.max(slot.position.offset), leader_epoch);
        }
    }

    /// The chunk has been handed out: the position moves over what follows its last record.
    fn finish(&mut self, chunk: &Unpacking) {
        self.queue.release(chunk.slot, chunk.bytes);
        let slot = &mut self.slots[chunk.slot];
        if chunk.next != slot.position.offset {
            slot.position = slot.at(chunk.next, chunk.leader_epoch);
        }
        if slot.is_done() {
            self.order(Order::Finish { slot: chunk.slot });
        }
    }

    fn is_caught_up(&self) -> bool {
        self.slots.is_empty() || self.parked.is_empty() && self.queue.is_caught_up()
    }

    fn nothing(&self) -> Result<Polled> {
        if self.settings.until_end && self.slots.iter().all(Slot::is_done) {
            return Ok(Polled::Ended);
        }
        match self.queue.failure() {
            Some(error) => Err(error),
            None => Ok(Polled::Nothing { caught_up: self.is_caught_up() }),
        }
    }
}

impl<D: Decode> Source for KafkaReader<D> {
    type Item = D::Item;
    type Position = Position;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok(self.known.splits())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<Position>) -> Result<Position> {
        let (topic, partition) = self.known.place(split).ok_or_else(|| foreign(split, &self.settings))?;
        let topic = topic.to_owned();
        let (client, settings, named) = (self.client.clone(), self.settings.clone(), topic.clone());
        let (position, end) = self.io.wait(async move {
            let resolver = Resolver { client: &client, settings: &settings, topic: &named, partition };
            let position = resolver.resolve(start).await?;
            let end = if settings.until_end { Some(resolver.end().await?) } else { None };
            Ok((position, end))
        })?;
        let topic: Arc<str> = topic.into();
        let slot = Slot { split: split.clone(), topic: topic.clone(), partition, position, end, paused: false };
        let Position { offset, leader_epoch, topic_id } = position;
        self.fresh.push(Assigned { topic, partition, topic_id, offset, leader_epoch, finished: slot.is_done() });
        self.slots.push(slot);
        Ok(position)
    }

    fn poll(&mut self, out: &mut Batch<D::Item>) -> Result<Polled> {
        if !self.fresh.is_empty() {
            let fresh = std::mem::take(&mut self.fresh);
            self.order(Order::Read(fresh));
        }
        loop {
            let Some(mut chunk) = self.next_chunk() else { return self.nothing() };
            let slot = chunk.slot;
            let (bytes, done) = self.drain(&mut chunk, out)?;
            match done {
                true => self.finish(&chunk),
                false => self.current = Some(chunk),
            }
            if !out.is_empty() {
                return Ok(Polled::Records { split: self.slots[slot].split.clone(), bytes });
            }
        }
    }

    fn position(&self, split: &SplitId) -> Position {
        let Some(slot) = self.slots.iter().find(|slot| slot.split == *split) else {
            return Position::at(0, [0; 16]);
        };
        if let Some(monitor) = &self.monitor {
            monitor.borrow_mut().noted(&slot.topic, slot.partition, slot.position.offset);
        }
        slot.position
    }

    fn split_state(&self, split: &SplitId) -> Option<SplitState> {
        let at = self.slot(split)?;
        let slot = &self.slots[at];
        Some(match self.queue.end(at) {
            _ if slot.is_done() => SplitState::Ended,
            Some(end) if slot.position.offset >= end => SplitState::CaughtUp,
            _ => SplitState::Reading,
        })
    }

    /// Offsets behind the last record handed out, as far as brokers have told; an offset may be a control record. `None`
    /// before the first answer.
    fn lag(&self, split: &SplitId) -> Option<u64> {
        let slot = self.slot(split)?;
        let behind = self.queue.end(slot)? - self.slots[slot].position.offset;
        Some(u64::try_from(behind).unwrap_or(0))
    }

    fn offset(&self, split: &SplitId) -> Option<u64> {
        u64::try_from(self.slots[self.slot(split)?].position.offset).ok()
    }

    fn pause(&mut self, split: &SplitId, paused: bool) -> bool {
        if let Some(slot) = self.slot(split) {
            self.slots[slot].paused = paused;
        }
        true
    }

    fn on_completed(&mut self, _id: CheckpointId) -> Result<()> {
        if let Some(monitor) = &self.monitor {
            fail::fail_point!("group-offset-commit");
            monitor.borrow_mut().completed();
        }
        Ok(())
    }
}

impl<D: Decode> Drop for KafkaReader<D> {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl<D: Decode> fmt::Debug for KafkaReader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let splits = self.slots.iter().map(|slot| &slot.split.name);
        f.debug_struct("KafkaReader").field("splits", &splits.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

fn place(slot: &Slot, offset: i64) -> String {
    format!("{}-{}@{offset}", slot.topic, slot.partition)
}

fn undecodable(settings: &Settings, error: Error) -> Result<()> {
    if settings.on_error == OnError::Fail {
        return Err(error.context(
            "a record does not decode (`on_error(OnError::Skip)` would leave it out, `dead_letters` make it an item)",
        ));
    }
    let skipped = settings.skipped.one();
    if skipped.is_power_of_two() {
        tracing::warn!(%error, skipped, "a record was left out; the next message comes when their number has doubled");
    }
    Ok(())
}

fn foreign(split: &SplitId, settings: &Settings) -> Error {
    Error::refused(format!(
        "the checkpoint has a split \"{split}\", which is no partition of {}; was a topic removed from the source?",
        settings.topics.join(", ")
    ))
}
