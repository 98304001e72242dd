//! What runs next: partitions in turn, and of each its ready keys in turn.

use super::job::{Job, Ref, Several};
use super::queues::State;
use super::{Scheduler, lane};
use crate::Record;
use crate::clock::Nanos;

impl Scheduler {
    /// Jobs to start now, `most` at most: dead letters first, then keys in turn.
    pub(crate) fn start(&mut self, now: Nanos, jobs: &mut Vec<Job>, most: usize) {
        if self.life.is_over() {
            return;
        }
        self.start_letters(now, jobs, most);
        while jobs.len() < most && self.has_place() && self.rate_allows(now) && !self.commit_blocks() {
            let Some((number, record)) = self.take_ready() else { break };
            jobs.push(self.start_job(now, number, record));
        }
    }

    pub(super) fn has_place(&self) -> bool {
        self.in_flight < self.options.max_in_flight + usize::from(self.is_planted_over_limit())
    }

    fn rate_allows(&self, now: Nanos) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.next() <= now) || self.is_planted_no_rate()
    }

    /// Puts a partition at the end of the ring if it has something to start.
    pub(super) fn enter_ring(&mut self, number: u32) {
        let lane = &mut self.lanes[number as usize];
        if !lane.is_in_ring && lane.is_startable() {
            lane.is_in_ring = true;
            self.ring.push_back(number);
        }
    }

    /// The next key of the next partition, busy from now on, and its first record, out of its queue.
    fn take_ready(&mut self) -> Option<(u64, Ref)> {
        while let Some(number) = self.ring.pop_front() {
            if self.is_planted_key_blocks() && self.lanes[number as usize].running > 0 {
                self.ring.push_back(number);
                return None;
            }
            let lane = &mut self.lanes[number as usize];
            lane.is_in_ring = false;
            if !lane.is_startable() {
                continue;
            }
            let found = lane.ready.pop_front();
            self.enter_ring(number);
            let head = found.and_then(|queue| self.pop_ready(queue, number).map(|head| (queue, head)));
            if head.is_some() {
                return head;
            }
        }
        None
    }

    /// The head of a queue, if the queue is still ready, and here.
    fn pop_ready(&mut self, queue: u64, lane: u32) -> Option<Ref> {
        let queue = self.queues.get(queue).filter(|queue| queue.state == State::Ready)?;
        queue.head().filter(|head| head.lane == lane)?;
        queue.state = State::Busy;
        queue.pop_front(&mut self.lanes)
    }

    fn start_job(&mut self, now: Nanos, number: u64, head: Ref) -> Job {
        let slot = self.lanes[head.lane as usize].slots.get(head.seq);
        let is_single = self.batch == 1 || slot.is_some_and(|slot| slot.is_alone);
        let (record, (attempt, first_seen)) = self.take(now, head);
        let (refs, records) = match is_single {
            true => (Several::One(head), Several::One(record)),
            false => self.take_batch(now, number, head, record),
        };
        if self.is_planted_second_handler() {
            self.free(number);
        }
        self.in_flight += 1;
        self.stats.counters.attempts += 1;
        if let Some(rate) = &mut self.rate {
            rate.take(now);
        }
        Job { dead_letter: None, refs, records, queue: number, attempt, first_seen }
    }

    /// Adds what waits behind a record and belongs to its key.
    fn take_batch(&mut self, now: Nanos, number: u64, head: Ref, record: Record) -> (Several<Ref>, Several<Record>) {
        let (mut refs, mut records) = (vec![head], vec![record]);
        while refs.len() < self.batch {
            let Some(next) = self.joins(number, &records[0]) else { break };
            if let Some(queue) = self.queues.get(number) {
                queue.pop_front(&mut self.lanes);
            }
            records.push(self.take(now, next).0);
            refs.push(next);
        }
        (Several::Many(refs), Several::Many(records))
    }

    /// The next record of a queue, if it can go into a batch with this one: the same key, and not told to run alone.
    fn joins(&mut self, number: u64, first: &Record) -> Option<Ref> {
        let head = self.queues.get(number)?.head()?;
        let slot = self.lanes[head.lane as usize].slots.get(head.seq)?;
        let is_same = self.options.ordering.is_same_key(first, slot.record.as_ref()?);
        (is_same && !slot.is_alone).then_some(head)
    }

    /// Takes a record out of its slot; returns it with the number of this attempt, and when it was first seen.
    fn take(&mut self, now: Nanos, head: Ref) -> (Record, (u32, Nanos)) {
        let lane = &mut self.lanes[head.lane as usize];
        lane.running += 1;
        lane.started = lane.started.max(head.seq + 1);
        let slot = lane::slot_of(&mut self.lanes, head);
        slot.started = Some(now);
        slot.attempts += 1;
        if slot.attempts == 1 {
            self.stats.histograms.queue_wait.record(now - slot.first_seen);
        }
        let record = slot.record.take();
        (record.expect("a record that waits is in its slot"), (slot.attempts, slot.first_seen))
    }
}
