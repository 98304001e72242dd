//! A source that hands out batches made beforehand, as fast as they are taken.

use mailer_parallel_consumer::source::{Assignment, Event, Fetched, OffsetCommit};
use mailer_parallel_consumer::{Partition, Record, Source};
use std::collections::{HashSet, VecDeque};
use std::task::{Context, Poll, Waker};

/// Records of one fetch.
const FETCH: usize = 1_000;

pub(crate) struct Prepared {
    events: VecDeque<Event>,
    batches: Vec<(Partition, VecDeque<Vec<Record>>)>,
    next: usize,
    paused: HashSet<Partition>,
    waker: Option<Waker>,
    is_closing: bool,
}

impl Prepared {
    /// `records` records in `partitions` partitions, with the key that `key` makes of each number.
    pub(crate) fn new(records: u64, partitions: u64, key: impl Fn(u64) -> u64) -> Self {
        let names: Vec<Partition> = (0..partitions).map(|index| Partition::new("bench", index as i32)).collect();
        let value = bytes::Bytes::from(vec![7; 100]);
        let record = |n: u64| {
            let place = names[(n % partitions) as usize].clone();
            let key = Some(bytes::Bytes::copy_from_slice(&key(n).to_le_bytes()));
            Record { key, value: Some(value.clone()), ..Record::at(place, (n / partitions) as i64) }
        };
        let batches = names.iter().zip(0..partitions).map(|(name, first)| {
            let numbers: Vec<u64> = (first..records).step_by(partitions as usize).collect();
            let batches = numbers.chunks(FETCH).map(|chunk| chunk.iter().map(|n| record(*n)).collect());
            (name.clone(), batches.collect())
        });
        let batches = batches.collect();
        let assignments = names.iter().map(|partition| Assignment {
            partition: partition.clone(),
            topic_id: [1; 16],
            position: 0,
            metadata: String::new(),
            log_end: Some(records as i64),
        });
        let events = VecDeque::from([Event::Assigned(assignments.collect())]);
        Self { events, batches, next: 0, paused: HashSet::new(), waker: None, is_closing: false }
    }

    fn fetch(&mut self) -> Option<Event> {
        let count = self.batches.len();
        let index = (0..count).map(|n| (self.next + n) % count).find(|index| {
            let (partition, batches) = &self.batches[*index];
            !batches.is_empty() && !self.paused.contains(partition)
        })?;
        self.next = index + 1;
        let (partition, batches) = &mut self.batches[index];
        let (partition, records) = (partition.clone(), batches.pop_front()?);
        let next = records.last()?.offset + 1;
        Some(Event::Records(Fetched { partition, records, next, log_end: None, broker: None }))
    }
}

impl Source for Prepared {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if self.is_closing {
            return Poll::Ready(Event::Closed);
        }
        match self.events.pop_front().or_else(|| self.fetch()) {
            Some(event) => Poll::Ready(event),
            None => {
                self.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn pause(&mut self, partition: &Partition) {
        self.paused.insert(partition.clone());
    }

    fn resume(&mut self, partition: &Partition) {
        self.paused.remove(partition);
    }

    fn commit(&mut self, commit: OffsetCommit) {
        let OffsetCommit { partition, offset, .. } = commit;
        self.events.push_back(Event::Committed { partition, offset, result: Ok(()) });
    }

    fn release(&mut self, _: &[Partition]) {}

    fn close(&mut self) {
        self.is_closing = true;
    }
}
