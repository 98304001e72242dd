//! The source as one worker sees it: synchronous, never waiting once the job runs.

use super::fetcher::{Chunk, Partition};
use super::{Position, Settings, Start};
use crate::io::Io;
use crate::record::KafkaRecord;
use mailer_core::{
    Batch, Error, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SplitId, StartAt, Timestamp,
};
use rskafka::client::Client;
use rskafka::record::RecordAndOffset;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// Responses a partition may be ahead of the worker, besides the one being handed out.
const AHEAD: usize = 1;

/// Reads the partitions one worker was given. Made by [`super::KafkaSource`].
pub struct KafkaReader<D> {
    io: Arc<Io>,
    client: Arc<Client>,
    partitions: Vec<i32>,
    settings: Settings,
    topic: Arc<str>,
    decode: D,
    waker: Waker,
    slots: Vec<Slot>,
    turn: usize,
}

struct Slot {
    split: SplitId,
    partition: i32,
    next: i64,
    /// The end of the partition, as last told.
    high: i64,
    /// Where it ends, in bounded mode.
    end: Option<i64>,
    chunks: mpsc::Receiver<Result<Chunk>>,
    current: std::vec::IntoIter<RecordAndOffset>,
}

impl Slot {
    fn is_done(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end)
    }

    /// Takes the next response, if there is one and the last one has been handed out.
    fn refill(&mut self) -> Result<()> {
        if self.current.len() > 0 || self.is_done() {
            return Ok(());
        }
        match self.chunks.try_recv() {
            Ok(chunk) => {
                let Chunk { records, high } = chunk?;
                (self.current, self.high) = (records, high);
                Ok(())
            }
            Err(TryRecvError::Empty) => Ok(()),
            Err(TryRecvError::Disconnected) => Err(Error::internal(format!("{} is not read any more", self.split))),
        }
    }

    /// The next record that belongs to the input.
    fn take(&mut self) -> Option<RecordAndOffset> {
        let record = self.current.next()?;
        match self.end.filter(|end| record.offset >= *end) {
            None => Some(record),
            Some(end) => {
                (self.current, self.next) = (Vec::new().into_iter(), end);
                None
            }
        }
    }
}

impl<D> KafkaReader<D> {
    pub(super) fn new(
        io: Arc<Io>,
        client: Client,
        partitions: Vec<i32>,
        settings: Settings,
        decode: D,
        waker: Waker,
    ) -> Self {
        let topic = settings.connection.topic.as_str().into();
        let client = Arc::new(client);
        Self { io, client, partitions, settings, topic, decode, waker, slots: Vec::new(), turn: 0 }
    }

    fn partition_of(&self, split: &SplitId) -> Result<i32> {
        let mut partitions = self.partitions.iter();
        let name = |partition: i32| self.settings.connection.partition_name(partition);
        partitions.find(|partition| name(**partition) == split.name).copied().ok_or_else(|| {
            Error::refused(format!(
                "the checkpoint has a split \"{split}\", which is no partition of {}; was the source changed?",
                self.topic
            ))
        })
    }
}

impl<T, D: Fn(KafkaRecord) -> Result<T>> KafkaReader<D> {
    /// Moves records of one slot into `out`; returns their bytes.
    fn drain(&mut self, slot: usize, out: &mut Batch<T>) -> Result<usize> {
        let slot = &mut self.slots[slot];
        slot.refill()?;
        let mut bytes = 0;
        while out.len() < MAX_BATCH_RECORDS && bytes < MAX_BATCH_BYTES {
            let Some(RecordAndOffset { record, offset }) = slot.take() else { break };
            bytes += record.approximate_size();
            let record = KafkaRecord {
                topic: self.topic.clone(),
                partition: slot.partition,
                offset,
                timestamp: record.timestamp.timestamp_millis(),
                key: record.key,
                value: record.value,
                headers: record.headers,
            };
            let timestamp = Timestamp(record.timestamp);
            let value = (self.decode)(record)
                .map_err(|error| error.context(format!("a record does not decode: {}@{offset}", slot.split)))?;
            out.push(Record::new(timestamp, value));
            slot.next = offset + 1;
        }
        if slot.is_done() {
            slot.chunks.close();
        }
        Ok(bytes)
    }
}

impl<T, D> Source for KafkaReader<D>
where
    T: Send + 'static,
    D: Fn(KafkaRecord) -> Result<T> + Clone + Send + Sync + 'static,
{
    type Item = T;
    type Position = Position;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        let split = |partition: &i32| {
            let name = self.settings.connection.partition_name(*partition);
            SplitId::new(name, partition.unsigned_abs())
        };
        Ok(self.partitions.iter().map(split).collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<Position>) -> Result<Position> {
        let partition = self.partition_of(split)?;
        let (client, settings) = (self.client.clone(), self.settings.clone());
        let (reading, next, end) = self.io.wait(async move {
            let client = settings.connection.partition(&client, partition).await?;
            let reading = Partition { client, connection: settings.connection.clone(), bytes: settings.fetch_bytes };
            let (low, end) = (reading.low().await?, reading.end().await?);
            let next = resolve(start, &settings.start, partition, low, end)?;
            reading.probe(low, end).await?;
            Ok((reading, next, end))
        })?;
        let (sender, chunks) = mpsc::channel(AHEAD);
        let bound = Some(end).filter(|_| self.settings.until_end);
        let slot = Slot {
            split: split.clone(),
            partition,
            next,
            high: end,
            end: bound,
            chunks,
            current: Vec::new().into_iter(),
        };
        if !slot.is_done() {
            self.io.spawn(reading.read(next, sender, self.waker.clone()));
        }
        self.slots.push(slot);
        Ok(Position { offset: next })
    }

    fn poll(&mut self, out: &mut Batch<T>) -> Result<Polled> {
        for _ in 0..self.slots.len() {
            self.turn = (self.turn + 1) % self.slots.len();
            let bytes = self.drain(self.turn, out)?;
            if !out.is_empty() {
                return Ok(Polled::Records { split: self.slots[self.turn].split.clone(), bytes });
            }
        }
        if self.settings.until_end && self.slots.iter().all(Slot::is_done) {
            return Ok(Polled::Ended);
        }
        Ok(Polled::Nothing { caught_up: self.slots.iter().all(|slot| slot.next >= slot.high) })
    }

    fn position(&self, split: &SplitId) -> Position {
        let slot = self.slots.iter().find(|slot| slot.split == *split);
        Position { offset: slot.map_or(0, |slot| slot.next) }
    }

    fn offset(&self, split: &SplitId) -> Option<u64> {
        let slot = self.slots.iter().find(|slot| slot.split == *split)?;
        u64::try_from(slot.next).ok()
    }
}

impl<D> fmt::Debug for KafkaReader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let splits = self.slots.iter().map(|slot| &slot.split.name);
        f.debug_struct("KafkaReader").field("splits", &splits.collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// The offset to read from, in a partition that holds `low..end`.
fn resolve(start: StartAt<Position>, configured: &Start, partition: i32, low: i64, end: i64) -> Result<i64> {
    let offset = match (start, configured) {
        (StartAt::Position(position), _) => position.offset,
        (StartAt::Discovered, _) | (StartAt::Configured, Start::Earliest) => low,
        (StartAt::Configured, Start::Latest) => end,
        (StartAt::Configured, Start::Offsets(offsets)) => offsets.get(&partition).copied().unwrap_or(low),
    };
    match (low..=end).contains(&offset) {
        true => Ok(offset),
        false => Err(Error::refused(format!(
            "partition {partition} holds offsets {low} to {end}, and reading is to begin at {offset}: records were deleted \
             or the topic was created again; start without the checkpoint, or name another offset"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_an_offset_that_is_there() {
        let offsets = Start::Offsets([(1, 15)].into());
        let at = |start, configured: &Start, partition| resolve(start, configured, partition, 10, 20).unwrap();
        assert_eq!(at(StartAt::Configured, &Start::Earliest, 0), 10);
        assert_eq!(at(StartAt::Configured, &Start::Latest, 0), 20);
        assert_eq!((at(StartAt::Configured, &offsets, 1), at(StartAt::Configured, &offsets, 2)), (15, 10));
        assert_eq!(at(StartAt::Discovered, &Start::Latest, 0), 10);
        assert_eq!(at(StartAt::Position(Position { offset: 12 }), &Start::Latest, 0), 12);
    }

    #[test]
    fn an_offset_that_is_not_there_is_refused() {
        for offset in [9, 21] {
            let error = resolve(StartAt::Position(Position { offset }), &Start::Earliest, 3, 10, 20).unwrap_err();
            assert_eq!(error.kind(), mailer_core::ErrorKind::Refused);
            assert!(error.message().contains("partition 3 holds offsets 10 to 20"), "{error}");
        }
    }
}
