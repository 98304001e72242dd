//! Jobs come back: records complete, wait for another attempt, or become dead letters.

use super::job::{Done, Failed, Job, NotPut, Outcome, Ref, Several};
use super::queues::State;
use super::{Scheduler, lane};
use crate::clock::{Nanos, nanos};
use crate::{DeadLetterFailure, Failure, FailureKind, Reason, Traits};
use std::cmp::Reverse;

impl Scheduler {
    /// A job has ended.
    pub(crate) fn done(&mut self, now: Nanos, done: Done) {
        let Done { refs, queue, is_dead_letter, took, traits, outcome } = done;
        if is_dead_letter {
            self.letters_in_flight -= 1;
            self.stats.histograms.dead_letter.record(took);
        } else {
            self.in_flight -= 1;
            self.stats.histograms.handler.record(took);
        }
        match outcome {
            Outcome::Success => {
                refs.as_slice().iter().for_each(|record| self.complete(*record, traits, is_dead_letter));
                self.wake(queue);
            }
            Outcome::Failed(failed) => self.failed(now, refs, queue, traits, *failed),
            Outcome::NotPut(not_put) => self.not_put(now, refs, queue, *not_put),
        }
    }

    fn wake(&mut self, queue: u64) {
        if !self.is_planted_lost_wakeup() {
            self.free(queue);
        }
    }

    /// A record is complete: its place is given back, and the commit may move.
    fn complete(&mut self, record: Ref, traits: Traits, is_dead_letter: bool) {
        if !self.lanes[record.lane as usize].holds(record) {
            return self.orphaned(record);
        }
        let lane = &mut self.lanes[record.lane as usize];
        let Some((bytes, before)) = lane.slots.remove(record.seq) else { return };
        lane.running -= 1;
        lane.buffered_records -= 1;
        lane.buffered_bytes -= bytes;
        let mut traits = traits | before;
        if lane.ledger.first_incomplete() != Some(record.seq) {
            traits |= Traits::OUT_OF_ORDER;
        }
        lane.ledger.complete(record.seq);
        lane.commit.is_dirty = true;
        if lane.is_paused {
            self.update_pressure(record.lane);
        }
        self.stats.completed(is_dead_letter, 1 + u64::from(self.is_planted_count_twice()));
        self.count_traits(traits | if is_dead_letter { Traits::DEAD_LETTER } else { Traits::NONE });
    }

    /// A result of an assignment that has gone.
    fn orphaned(&mut self, record: Ref) {
        self.stats.counters.orphaned += 1;
        self.count_traits(Traits::ORPHANED);
        if self.is_planted_old_epoch() {
            self.lanes[record.lane as usize].ledger.complete(record.seq);
        }
    }

    fn failed(&mut self, now: Nanos, refs: Several<Ref>, queue: u64, traits: Traits, failed: Failed) {
        self.stats.failed(failed.kind);
        let Failed { records, completed, kind, error, after, is_fatal } = failed;
        let (refs, records) = (refs.into_vec(), records.into_vec());
        let completed = completed.min(refs.len() - 1); // all of them would not be a failure
        if kind == FailureKind::Panic && self.is_planted_panic_completes() {
            refs.iter().for_each(|record| self.complete(*record, traits, false));
            return self.wake(queue);
        }
        refs[..completed].iter().for_each(|record| self.complete(*record, traits, false));
        let is_batch = refs.len() > 1;
        let returned = refs.iter().copied().zip(records).skip(completed);
        self.put_back(queue, returned.collect(), traits, kind, is_batch);
        if is_fatal {
            return self.abort(now, Reason::Fatal(error.to_string()));
        }
        let first = refs[completed];
        if !self.lanes[first.lane as usize].holds(first) {
            return self.wake(queue);
        }
        let attempts = lane::slot_of(&mut self.lanes, first).attempts;
        let wait = self.options.retry.after(kind, &error, attempts).map(|wait| after.unwrap_or(wait));
        match wait {
            Some(wait) => self.wait(queue, first, now.saturating_add(nanos(wait))),
            None if is_batch => self.wake(queue), // one by one, to find the bad one
            None => self.condemn(queue, first, Failure { kind, error, attempts }),
        }
    }

    /// Records of a failed job go back to the front of their queue, in their order.
    fn put_back(
        &mut self,
        queue: u64,
        records: Vec<(Ref, crate::Record)>,
        traits: Traits,
        kind: FailureKind,
        is_batch: bool,
    ) {
        let failed = traits | trait_of(kind);
        let first = records.first().map(|(place, _)| *place);
        for (place, record) in records.into_iter().rev() {
            let lane = &mut self.lanes[place.lane as usize];
            if !lane.holds(place) {
                self.orphaned(place);
                continue;
            }
            lane.running -= 1;
            let slot = lane::slot_of(&mut self.lanes, place);
            slot.record = Some(record);
            slot.started = None;
            slot.is_alone |= is_batch;
            if Some(place) == first {
                slot.traits |= failed;
            }
            if let Some(queue) = self.queues.get(queue) {
                queue.push_front(&mut self.lanes, place);
            }
        }
        if self.is_planted_retry_last() {
            self.rotate(queue);
        }
    }

    /// The planted fault: the failed record goes behind the next one.
    fn rotate(&mut self, number: u64) {
        let Some(queue) = self.queues.get(number).filter(|queue| queue.length > 1) else { return };
        let (first, second) = (queue.pop_front(&mut self.lanes), queue.pop_front(&mut self.lanes));
        for record in [first, second].into_iter().flatten() {
            queue.push_front(&mut self.lanes, record);
        }
    }

    fn wait(&mut self, number: u64, record: Ref, until: Nanos) {
        if self.is_planted_retry_last() {
            return self.wake(number);
        }
        if let Some(queue) = self.queues.get(number) {
            queue.state = State::Waiting;
            self.backoffs.push(Reverse((until, number, record)));
        }
    }

    /// A record has failed for good. Its key waits until it is put away.
    fn condemn(&mut self, number: u64, record: Ref, failure: Failure) {
        self.lanes[record.lane as usize].failures.insert(record.seq, Box::new(failure));
        if let Some(queue) = self.queues.get(number) {
            queue.state = State::Waiting;
        }
        self.letters.push_back((number, record));
    }

    /// Dead letters take no place of a handler: a dead-letter topic that is down must not stop everything.
    pub(super) fn start_letters(&mut self, now: Nanos, jobs: &mut Vec<Job>, most: usize) {
        while jobs.len() < most && self.letters_in_flight < self.options.max_in_flight {
            let Some((number, record)) = self.letters.pop_front() else { return };
            let is_there =
                self.queues.get(number).is_some_and(|q| q.state == State::Waiting && q.head() == Some(record));
            let failure = self.lanes[record.lane as usize].failures.remove(&record.seq);
            let Some(failure) = failure.filter(|_| is_there) else { continue }; // its partition has gone
            jobs.push(self.letter(now, number, record, failure));
        }
    }

    fn letter(&mut self, now: Nanos, number: u64, place: Ref, failure: Box<Failure>) -> Job {
        if let Some(queue) = self.queues.get(number) {
            queue.pop_front(&mut self.lanes);
            queue.state = State::Busy;
        }
        self.lanes[place.lane as usize].running += 1;
        let slot = lane::slot_of(&mut self.lanes, place);
        let record = slot.record.take().expect("a record that waits is in its slot");
        slot.started = Some(now);
        self.letters_in_flight += 1;
        let (refs, records) = (Several::One(place), Several::One(record));
        let (attempt, first_seen) = (slot.attempts, slot.first_seen);
        Job { dead_letter: Some(failure), refs, records, queue: number, attempt, first_seen }
    }

    fn not_put(&mut self, now: Nanos, refs: Several<Ref>, queue: u64, not_put: NotPut) {
        let NotPut { record, failure, error } = not_put;
        self.stats.counters.dead_letters_failed += 1;
        let place = refs.as_slice()[0];
        if self.is_planted_dead_letter_done() {
            self.complete(place, Traits::NONE, true);
            return self.wake(queue);
        }
        let lane = &mut self.lanes[place.lane as usize];
        if !lane.holds(place) {
            self.orphaned(place);
            return self.wake(queue);
        }
        lane.running -= 1;
        lane.failures.insert(place.seq, failure);
        let slot = lane::slot_of(&mut self.lanes, place);
        slot.record = record.into_vec().pop();
        slot.started = None;
        slot.traits |= Traits::ERROR;
        slot.put_attempts += 1;
        let attempts = slot.put_attempts;
        if let Some(queue) = self.queues.get(queue) {
            queue.push_front(&mut self.lanes, place);
            queue.state = State::Waiting;
        }
        let (backoff, is_patient) = match &self.options.dead_letter_failure {
            DeadLetterFailure::Retry(backoff) => (backoff.attempts(0), true),
            DeadLetterFailure::Abort(backoff) => (*backoff, false),
        };
        match backoff.after(attempts) {
            Some(wait) => self.backoffs.push(Reverse((now.saturating_add(nanos(wait)), queue, place))),
            None if is_patient => unreachable!("a backoff without attempts has no end"),
            None => self.abort(now, Reason::DeadLetter(error.to_string())),
        }
    }
}

fn trait_of(kind: FailureKind) -> Traits {
    match kind {
        FailureKind::Error | FailureKind::Rejected => Traits::ERROR,
        FailureKind::Panic => Traits::PANIC,
        FailureKind::Timeout => Traits::TIMEOUT,
    }
}
