//! Records come in; partitions that hold too much are paused.

use super::job::Ref;
use super::slots::Slot;
use super::{Action, Scheduler};
use crate::clock::Nanos;
use crate::source::Fetched;
use crate::{Options, Reason, Record, Stuck, Traits};

/// What one partition may hold before it is paused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    records: usize,
    bytes: usize,
}

impl Share {
    pub(super) fn of(options: &Options, partitions: usize) -> Self {
        let partitions = partitions.max(1);
        let records = (options.buffer.records / partitions).max(1);
        let bytes = (options.buffer.bytes / partitions).saturating_sub(options.poll_bytes).max(1);
        Self { records, bytes }
    }
}

impl Scheduler {
    pub(super) fn fetched(&mut self, now: Nanos, fetched: Fetched) {
        let Fetched { partition, records, next, log_end, broker } = fetched;
        self.life.healthy();
        let bytes: usize = records.iter().map(Record::bytes).sum();
        self.stats.fetched(records.len() as u64, bytes as u64, broker);
        let number = self.assigned_number(&partition);
        let Some(number) = number.filter(|number| self.lanes[*number as usize].drain.is_none()) else {
            self.stats.counters.dropped += records.len() as u64; // the partition has gone, or goes
            return;
        };
        for record in records {
            self.take_up(now, number, record);
        }
        let lane = &mut self.lanes[number as usize];
        lane.commit.is_dirty |= next > lane.ledger.next_offset();
        lane.ledger.advance(next);
        lane.received_bytes += bytes as u64;
        lane.log_end = log_end.or(lane.log_end);
        lane.broker = broker.or(lane.broker);
        self.update_pressure(number);
        self.check_window(now, number);
    }

    fn take_up(&mut self, now: Nanos, number: u32, record: Record) {
        if self.is_planted_gaps_complete() {
            self.take_up_gap(number, record.offset);
        }
        let lane = &mut self.lanes[number as usize];
        let epoch = lane.epoch;
        let Some(seq) = lane.ledger.push(record.offset) else {
            self.stats.counters.duplicates += 1;
            return self.count_traits(Traits::DUPLICATE);
        };
        let mut traits = Traits::NONE;
        if std::mem::take(&mut lane.is_fresh) {
            traits |= Traits::FIRST_AFTER_REBALANCE;
        }
        if lane.restored.take(record.offset) {
            lane.ledger.complete(seq);
            lane.commit.is_dirty = true;
            self.stats.counters.restored += 1;
            return self.count_traits(traits | Traits::RESTORED);
        }
        let queue = self.options.ordering.queue(self.options.key_scope, number, &record);
        self.enqueue(now, Ref { lane: number, epoch, seq }, queue, record, traits);
    }

    fn enqueue(&mut self, now: Nanos, place: Ref, queue: u64, record: Record, traits: Traits) {
        let bytes = record.bytes();
        let slot = Slot {
            record: Some(record),
            queue,
            next: None,
            first_seen: now,
            started: None,
            attempts: 0,
            put_attempts: 0,
            bytes,
            traits,
            is_alone: false,
        };
        let lane = &mut self.lanes[place.lane as usize];
        lane.slots.insert(place.seq, slot);
        lane.buffered_records += 1;
        lane.buffered_bytes += bytes;
        let (before, is_ready) = self.queues.push(&mut self.lanes, queue, place);
        if before >= self.options.key_queue {
            super::lane::slot_of(&mut self.lanes, place).traits |= Traits::OVERFLOW;
        }
        if is_ready {
            self.lanes[place.lane as usize].ready.push_back(queue);
            self.enter_ring(place.lane);
        }
    }

    /// Pauses a partition over its share of the buffer or with a full window, and ends that with room to spare.
    pub(super) fn update_pressure(&mut self, number: u32) {
        let Share { records, bytes } = self.share;
        let span = self.options.window.records;
        let lane = &mut self.lanes[number as usize];
        let part = |is_paused: bool, whole: usize| if is_paused { whole / 2 } else { whole - 1 };
        let was = lane.pauses.buffer;
        lane.pauses.buffer = lane.buffered_records > part(was, records) || lane.buffered_bytes > part(was, bytes);
        let window = lane.ledger.window();
        let limit = if lane.pauses.window { span - span / 4 } else { span };
        lane.pauses.window = window.end - window.start >= limit;
        self.update_pause(number);
    }

    /// Tells the source what has changed.
    pub(super) fn update_pause(&mut self, number: u32) {
        let is_planted = self.is_planted_no_pause();
        let lane = &mut self.lanes[number as usize];
        let pause = if is_planted { lane.pauses.user } else { lane.pauses.any() };
        if !lane.is_assigned || lane.drain.is_some() || lane.is_paused == pause {
            return;
        }
        lane.is_paused = pause;
        let partition = lane.partition.clone();
        self.actions.push(if pause { Action::Pause(partition) } else { Action::Resume(partition) });
    }

    fn check_window(&mut self, now: Nanos, number: u32) {
        let lane = &self.lanes[number as usize];
        if lane.pauses.window && self.options.window.stuck == Stuck::Abort {
            let (partition, position) = (&lane.partition, lane.ledger.position());
            let reason = Reason::Stuck(format!("{partition}@{position}, and the window behind it is full"));
            self.abort(now, reason);
        }
    }

    /// The planted fault: offsets that no record has are taken for complete records.
    fn take_up_gap(&mut self, number: u32, until: i64) {
        let ledger = &mut self.lanes[number as usize].ledger;
        while ledger.next_offset() < until {
            let gap = ledger.push(ledger.next_offset());
            gap.map(|seq| ledger.complete(seq));
        }
    }
}
