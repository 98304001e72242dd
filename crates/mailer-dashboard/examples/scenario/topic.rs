//! A source that is behind: partitions with a backlog, to which more is written than is always read.

use crate::Order;
use mailer_core::{
    Batch, Clock, Polled, Record, Result, Source, SourceFactory, SplitId, SplitState, StartAt, Timestamp, WorkerContext,
};
use std::sync::Arc;
use std::time::Duration;

/// So many records a second are read of each partition.
const READ: f64 = 2_500.0;
const BATCH: u64 = 250;

/// What waits in a partition at the start, and how much is written to it in a second.
#[derive(Clone, Copy)]
struct Flow {
    backlog: u64,
    written: f64,
}

const fn flow(backlog: u64, written: f64) -> Flow {
    Flow { backlog, written }
}

/// Six partitions: two keep up, three catch up, and one falls behind.
const FLOWS: &[Flow] = &[
    flow(48_000, 1_900.0),
    flow(0, 2_300.0),
    flow(21_500, 2_100.0),
    flow(9_000, 3_400.0),
    flow(0, 1_200.0),
    flow(33_000, 2_000.0),
];

pub(crate) struct Topic;

impl SourceFactory for Topic {
    type Source = Reader;

    fn build(&self, context: &WorkerContext) -> Result<Reader> {
        let clock = context.clock.clone();
        let began = clock.monotonic();
        Ok(Reader { partitions: Vec::new(), next: 0, clock, began })
    }

    fn is_replayable(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("a topic of {} partitions", FLOWS.len())
    }
}

struct Partition {
    split: SplitId,
    flow: Flow,
    /// Where it was when it was assigned.
    first: u64,
    position: u64,
}

impl Partition {
    /// Records in it.
    fn end(&self, passed: f64) -> u64 {
        self.flow.backlog + (passed * self.flow.written) as u64
    }

    /// How many may be read now.
    fn left(&self, passed: f64) -> u64 {
        let may = self.first + (passed * READ) as u64;
        self.end(passed).min(may).saturating_sub(self.position)
    }
}

pub(crate) struct Reader {
    partitions: Vec<Partition>,
    next: usize,
    clock: Arc<dyn Clock>,
    began: Duration,
}

impl Reader {
    fn passed(&self) -> f64 {
        (self.clock.monotonic() - self.began).as_secs_f64()
    }

    fn partition(&self, split: &SplitId) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.split == *split)
    }

    /// The record at a position was written when the partition had come so far.
    fn payment(partition: &Partition, position: u64, now: Timestamp, passed: f64) -> Record<Order> {
        let behind = partition.end(passed).saturating_sub(position) as f64 / partition.flow.written;
        let at = now.0 - (behind * 1_000.0) as i64;
        let customer = position.wrapping_mul(2_654_435_761) % 4_000;
        Record::new(Timestamp(at), Order { customer, cents: 100 + position % 977, at })
    }
}

impl Source for Reader {
    type Item = Order;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok((0..FLOWS.len() as u32).map(|n| SplitId::new(format!("payments-{n}"), n)).collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        let first = if let StartAt::Position(position) = start { position } else { 0 };
        let flow = FLOWS[split.index as usize];
        self.partitions.push(Partition { split: split.clone(), flow, first, position: first });
        Ok(first)
    }

    fn poll(&mut self, out: &mut Batch<Order>) -> Result<Polled> {
        let (passed, now) = (self.passed(), self.clock.wall());
        for _ in 0..self.partitions.len() {
            self.next = (self.next + 1) % self.partitions.len();
            let partition = &mut self.partitions[self.next];
            let count = partition.left(passed).min(BATCH);
            // A few at a time would be a batch each.
            if count == BATCH {
                let positions = partition.position..partition.position + count;
                out.extend(positions.map(|position| Self::payment(partition, position, now, passed)));
                partition.position += count;
                return Ok(Polled::Records { split: partition.split.clone(), bytes: count as usize * 64 });
            }
        }
        Ok(Polled::Nothing { caught_up: false })
    }

    fn position(&self, split: &SplitId) -> u64 {
        self.partition(split).map_or(0, |partition| partition.position)
    }

    fn split_state(&self, _split: &SplitId) -> Option<SplitState> {
        Some(SplitState::Reading)
    }

    fn lag(&self, split: &SplitId) -> Option<u64> {
        let partition = self.partition(split)?;
        Some(partition.end(self.passed()).saturating_sub(partition.position))
    }

    fn offset(&self, split: &SplitId) -> Option<u64> {
        Some(self.position(split))
    }
}
