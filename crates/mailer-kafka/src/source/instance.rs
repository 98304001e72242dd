//! The source as one worker sees it: synchronous, never waiting once the job runs.

use super::discovery::{self, Known};
use super::fetcher::{Assigned, Fetcher, Order};
use super::monitor::Monitor;
use super::queue::{Chunk, Queue};
use super::resolve::Resolver;
use super::{Decode, OnError, Position, Settings};
use crate::client::{Client, Reader, ReaderSettings};
use crate::record::KafkaRecord;
use crate::runtime::Io;
use mailer_core::{
    Batch, CheckpointId, Error, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SplitId, StartAt,
    Timestamp, WorkerContext,
};
use std::cell::RefCell;
use std::collections::VecDeque;
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
    current: Option<Chunk>,
    monitor: Option<RefCell<Monitor>>,
}

struct Slot {
    split: SplitId,
    topic: String,
    partition: i32,
    position: Position,
    /// Where it ends, in bounded mode.
    end: Option<i64>,
}

impl Slot {
    fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.position.offset >= end)
    }
}

impl<D: Decode> KafkaReader<D> {
    pub(crate) fn start(
        io: Arc<Io>,
        client: Arc<Client>,
        settings: Arc<Settings>,
        reader: ReaderSettings,
        decode: D,
        context: &WorkerContext,
    ) -> Result<Self> {
        let (looking, told) = (client.clone(), settings.clone());
        let (known, reader) = io.wait(async move {
            let known = Known::look(&looking, &told).await?;
            Ok((Arc::new(known), connect(&told, &reader).await?))
        })?;
        let queue = Arc::new(Queue::new(settings.read_ahead, context.waker.clone()));
        let (orders, taken) = mpsc::unbounded_channel();
        let fetcher =
            Fetcher::new(reader, client.clone(), settings.clone(), queue.clone(), taken, context.clock.clone());
        io.spawn(fetcher.run());
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
        })
    }

    fn order(&self, order: Order) {
        // A closed channel means that the task has failed; the queue says why.
        let _ = self.orders.send(order);
        self.queue.notify();
    }

    /// Moves records of one chunk into `out`; returns their bytes.
    fn drain(&mut self, chunk: &mut Chunk, out: &mut Batch<D::Item>) -> Result<usize> {
        let mut bytes = 0;
        while out.len() < MAX_BATCH_RECORDS && bytes < MAX_BATCH_BYTES {
            let Some(record) = chunk.records.next() else { break };
            let slot = &self.slots[chunk.slot];
            if let Some(end) = slot.end.filter(|end| record.offset >= *end) {
                (chunk.records, chunk.next) = (VecDeque::new().into_iter(), end);
                break;
            }
            bytes += record.bytes();
            let position = Position {
                offset: record.offset + 1,
                leader_epoch: record.leader_epoch,
                topic_id: slot.position.topic_id,
            };
            out.extend(self.item(record)?);
            self.slots[chunk.slot].position = position;
        }
        Ok(bytes)
    }

    fn item(&mut self, record: KafkaRecord) -> Result<Option<Record<D::Item>>> {
        let timestamp = record.timestamp;
        let (topic, partition, offset) = (record.topic.clone(), record.partition, record.offset);
        match self.decode.decode(record) {
            Ok(value) => Ok(Some(Record { timestamp: Timestamp(self.decode.timestamp(timestamp, &value)), value })),
            Err(error) => self.undecodable(error.context(format!("{topic}-{partition}@{offset}"))).map(|()| None),
        }
    }

    fn undecodable(&mut self, error: Error) -> Result<()> {
        if self.settings.on_error == OnError::Fail {
            return Err(error.context(
                "a record does not decode (`on_error(OnError::Skip)` would leave it out, `dead_letters` make it an item)",
            ));
        }
        let skipped = self.settings.skipped.one();
        if skipped.is_power_of_two() {
            tracing::warn!(%error, skipped, "a record was left out; the next message comes when their number has doubled");
        }
        Ok(())
    }

    /// The chunk has been handed out: the position moves over what follows its last record.
    fn finish(&mut self, chunk: Chunk) {
        self.queue.release(chunk.bytes);
        let slot = &mut self.slots[chunk.slot];
        if chunk.next != slot.position.offset {
            slot.position = Position::at(chunk.next, slot.position.topic_id);
        }
        if slot.is_done() {
            self.order(Order::Finish { slot: chunk.slot });
        }
    }

    fn nothing(&self) -> Result<Polled> {
        if self.settings.until_end && self.slots.iter().all(Slot::is_done) {
            return Ok(Polled::Ended);
        }
        match self.queue.failure() {
            Some(error) => Err(error),
            None => Ok(Polled::Nothing { caught_up: self.slots.is_empty() || self.queue.is_caught_up() }),
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
        let slot = Slot { split: split.clone(), topic: topic.clone(), partition, position, end };
        self.fresh.push(Assigned { topic, partition, offset: position.offset, finished: slot.is_done() });
        self.slots.push(slot);
        Ok(position)
    }

    fn poll(&mut self, out: &mut Batch<D::Item>) -> Result<Polled> {
        if !self.fresh.is_empty() {
            let fresh = std::mem::take(&mut self.fresh);
            self.order(Order::Read(fresh));
        }
        loop {
            let Some(mut chunk) = self.current.take().or_else(|| self.queue.pop()) else { return self.nothing() };
            let slot = chunk.slot;
            let bytes = self.drain(&mut chunk, out)?;
            match chunk.records.len() {
                0 => self.finish(chunk),
                _ => self.current = Some(chunk),
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

/// A reader with connections of its own. A broker answers what comes over one connection in order and holds a fetch that
/// finds nothing: whatever else this source asks would wait behind it.
async fn connect(settings: &Settings, reader: &ReaderSettings) -> Result<Reader> {
    let client = Client::connect(&settings.connection).await?;
    client.reader(reader).await.map_err(|failure| failure.into_error("making a Kafka reader"))
}

fn foreign(split: &SplitId, settings: &Settings) -> Error {
    Error::refused(format!(
        "the checkpoint has a split \"{split}\", which is no partition of {}; was a topic removed from the source?",
        settings.topics.join(", ")
    ))
}
