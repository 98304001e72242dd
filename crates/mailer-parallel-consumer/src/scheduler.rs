//! Decides what runs, what is fetched and what is committed. Pure: events and the time come in, jobs and actions go out.
//!
//! It owns every queue and ledger, and runs in one task, so there is nothing to lock. It never waits: whatever takes time
//! (handlers, dead letters, commits, the broker) is a message later. The driver carries out what it says; the simulation
//! does the same with a seed and a clock that is set.
//!
//! A record is in one of these places: in a key queue (ready, or behind another record of its key), with a handler, in a
//! backoff, with the dead letters; then it is complete, and only a bit in the ledger. Or its partition goes, and it is
//! dropped here and lives on at the broker.

mod assignment;
mod commits;
mod drain;
mod fetch;
mod job;
mod lane;
mod lifecycle;
mod outcomes;
mod queues;
mod rate;
mod slots;
mod stats;
mod view;

pub(crate) use job::{Done, Failed, Job, NotPut, Outcome, Ref, Several};
pub(crate) use lifecycle::End;

use crate::clock::{Nanos, nanos};
use crate::control::{Command, Scope};
use crate::source::{Event, OffsetCommit};
use crate::{Options, Partition, Phase, Record, Traits};
use lane::Lane;
use lifecycle::Life;
use queues::{Queues, State};
use rate::Rate;
use stats::Stats;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};

const SECOND: Nanos = 1_000_000_000;

/// What the driver has to do.
#[derive(Debug)]
pub(crate) enum Action {
    Pause(Partition),
    Resume(Partition),
    Commit(OffsetCommit),
    Release(Partition),
    /// Tell the handlers of this partition number that their results are no longer wanted.
    Cancel(u32),
    Close,
}

/// Faults that tests plant, to see that their checkers find them.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Commit behind the last fetched record.
    CommitFetched,
    /// Let a commit go back.
    CommitBack,
    /// Claim the whole window in the offset map.
    ClaimAll,
    /// Hand out a key while its handler runs.
    SecondHandler,
    /// After a failed attempt, go on with the next record of the key first.
    RetryLast,
    /// Believe results of earlier assignments.
    OldEpoch,
    /// Complete a record whose dead letter failed.
    DeadLetterDone,
    /// Hand out one job more than allowed.
    OverLimit,
    /// Forget the rate limit.
    NoRate,
    /// Do not wake a key after its handler.
    LostWakeup,
    /// Drain every partition when one is revoked.
    DrainAll,
    /// Start nothing while a commit is under way.
    CommitBlocks,
    /// Never pause a partition.
    NoPause,
    /// Graceful stop commits at once, without waiting for handlers.
    HastyStop,
    /// Forget a panicked record.
    PanicCompletes,
    /// Count a completion twice.
    CountTwice,
    /// Take what a marker or compaction left out as fetched records.
    GapsComplete,
    /// Tell of the end twice.
    EndTwice,
    /// Start nothing of a partition while something of it runs.
    KeyBlocks,
}

pub(crate) struct Scheduler {
    options: Options,
    batch: usize,
    /// Every partition that was ever assigned; the index is its number.
    lanes: Vec<Lane>,
    numbers: HashMap<Partition, u32>,
    queues: Queues,
    /// Partitions with ready keys, each once: the first is next.
    ring: VecDeque<u32>,
    in_flight: usize,
    /// Partitions that are assigned.
    assigned: usize,
    /// Of these, partitions on their way out.
    draining: usize,
    /// Keys whose dead letter can be put away as soon as there is room.
    letters: VecDeque<(u64, Ref)>,
    letters_in_flight: usize,
    /// Ends of backoffs, the earliest first.
    backoffs: BinaryHeap<Reverse<(Nanos, u64, Ref)>>,
    rate: Option<Rate>,
    paused_all: bool,
    paused_topics: HashSet<std::sync::Arc<str>>,
    paused_partitions: HashSet<Partition>,
    next_commit: Nanos,
    next_second: Nanos,
    life: Life,
    actions: Vec<Action>,
    stats: Stats,
    #[cfg(test)]
    fault: Option<Fault>,
}

impl Scheduler {
    /// `batch` is the most records of one job.
    pub(crate) fn new(options: Options, batch: usize, trait_names: BTreeMap<u32, String>, now: Nanos) -> Self {
        let rate = options.rate_limit.map(Rate::new);
        let life = Life::new(&options, now);
        let next_commit = now + nanos(options.commit.interval);
        Self {
            options,
            batch,
            lanes: Vec::new(),
            numbers: HashMap::new(),
            queues: Queues::default(),
            ring: VecDeque::new(),
            in_flight: 0,
            assigned: 0,
            draining: 0,
            letters: VecDeque::new(),
            letters_in_flight: 0,
            backoffs: BinaryHeap::new(),
            rate,
            paused_all: false,
            paused_topics: HashSet::new(),
            paused_partitions: HashSet::new(),
            next_commit,
            next_second: now + SECOND,
            life,
            actions: Vec::new(),
            stats: Stats::new(trait_names, now),
            #[cfg(test)]
            fault: None,
        }
    }

    /// Something happened at the broker.
    pub(crate) fn event(&mut self, now: Nanos, event: Event) {
        if self.life.is_over() && !matches!(event, Event::Closed) {
            return; // it is on its way out
        }
        match event {
            Event::Assigned(assignments) => self.assigned(now, assignments),
            Event::Records(fetched) => self.fetched(now, fetched),
            Event::Revoked(partitions) => self.revoked(now, &partitions),
            Event::Lost(partitions) => self.lost(now, &partitions),
            Event::Reset { partition, position } => self.reset(&partition, position),
            Event::Committed { partition, offset, result } => self.committed(now, &partition, offset, result),
            Event::PollFailed(error) => self.poll_failed(now, error),
            Event::Healthy => self.life.healthy(),
            Event::Failed(error) => self.source_failed(now, error),
            Event::Closed => self.closed(),
        }
    }

    /// Somebody asks for something.
    pub(crate) fn command(&mut self, now: Nanos, command: Command) {
        match command {
            Command::Stop { within } => self.stop(now, within),
            Command::Abort { reason } => self.abort(now, crate::Reason::Requested(reason)),
            Command::Pause(scope) => self.pause(scope, true),
            Command::Resume(scope) => self.pause(scope, false),
            Command::Snapshot(answer) => drop(answer.send(self.snapshot(now))), // whoever asked may have gone
        }
    }

    fn pause(&mut self, scope: Scope, pause: bool) {
        fn change<T: std::hash::Hash + Eq>(set: &mut HashSet<T>, value: T, pause: bool) {
            if pause {
                set.insert(value);
            } else {
                set.remove(&value);
            }
        }
        match scope {
            Scope::All => self.paused_all = pause,
            Scope::Topic(topic) => change(&mut self.paused_topics, topic, pause),
            Scope::Partition(partition) => change(&mut self.paused_partitions, partition, pause),
        }
        for number in 0..self.lanes.len() as u32 {
            self.update_user_pause(number);
        }
    }

    fn update_user_pause(&mut self, number: u32) {
        let partition = &self.lanes[number as usize].partition;
        let is_paused = self.paused_all
            || self.paused_topics.contains(&partition.topic)
            || self.paused_partitions.contains(partition);
        self.lanes[number as usize].pauses.user = is_paused;
        self.update_pause(number);
        self.enter_ring(number);
    }

    /// The time has come for something; see [`deadline`](Self::deadline).
    pub(crate) fn tick(&mut self, now: Nanos) {
        self.end_backoffs(now);
        if now >= self.next_second {
            self.next_second = now + SECOND;
            self.stats.second();
            self.stats.stalled = self.find_stalled(now);
        }
        if now >= self.next_commit {
            self.next_commit = now + nanos(self.options.commit.interval);
            (0..self.lanes.len() as u32).for_each(|number| self.commit(now, number));
        }
        self.end_drains(now);
        self.live_on(now);
    }

    fn end_backoffs(&mut self, now: Nanos) {
        while let Some(Reverse((at, number, record))) = self.backoffs.peek().copied().filter(|first| first.0.0 <= now) {
            debug_assert!(at <= now);
            self.backoffs.pop();
            let queue = self.queues.get(number);
            // A partition may have gone meanwhile, and the queue be another.
            if queue.is_some_and(|queue| queue.state == State::Waiting && queue.head() == Some(record)) {
                self.try_again(number, record);
            }
        }
    }

    fn try_again(&mut self, number: u64, record: Ref) {
        let lane = &self.lanes[record.lane as usize];
        match lane.failures.contains_key(&record.seq) {
            true => self.letters.push_back((number, record)),
            false => self.free(number),
        }
    }

    /// When [`tick`](Self::tick) has something to do, at the latest.
    pub(crate) fn deadline(&self) -> Nanos {
        let backoff = self.backoffs.peek().map_or(Nanos::MAX, |first| first.0.0);
        let drain = self.first_drain();
        let rate = self.rate.as_ref().filter(|_| !self.ring.is_empty() && self.has_place()).map_or(Nanos::MAX, Rate::next);
        let times = [backoff, drain, rate, self.next_commit, self.next_second, self.life.deadline()];
        times.into_iter().min().unwrap_or(Nanos::MAX)
    }

    /// Whether [`tick`](Self::tick) has something to do.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.deadline() <= now
    }

    fn first_drain(&self) -> Nanos {
        if self.draining == 0 {
            return Nanos::MAX;
        }
        let drains = self.lanes.iter().filter_map(|lane| lane.drain);
        drains.map(|drain| drain.deadline).min().unwrap_or(Nanos::MAX)
    }

    /// What the driver has to do, in this order.
    pub(crate) fn actions(&mut self) -> std::vec::Drain<'_, Action> {
        self.actions.drain(..)
    }

    /// Jobs to start now, `most` at most: dead letters first, then keys in turn.
    pub(crate) fn start(&mut self, now: Nanos, jobs: &mut Vec<Job>, most: usize) {
        if self.life.is_over() {
            return;
        }
        self.start_letters(now, jobs);
        while jobs.len() < most && self.has_place() && self.rate_allows(now) && !self.commit_blocks() {
            let Some((number, record)) = self.next_ready() else { break };
            jobs.push(self.start_job(now, number, record));
        }
    }

    fn has_place(&self) -> bool {
        self.in_flight < self.options.max_in_flight + usize::from(self.is_planted_over_limit())
    }

    fn rate_allows(&self, now: Nanos) -> bool {
        self.rate.as_ref().is_none_or(|rate| rate.next() <= now) || self.is_planted_no_rate()
    }

    /// Puts a partition at the end of the ring if it has something to start.
    fn enter_ring(&mut self, number: u32) {
        let lane = &mut self.lanes[number as usize];
        if !lane.is_in_ring && lane.is_startable() {
            lane.is_in_ring = true;
            self.ring.push_back(number);
        }
    }

    /// The next key of the next partition.
    fn next_ready(&mut self) -> Option<(u64, Ref)> {
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
            let head = found.and_then(|queue| self.ready_head(queue, number).map(|head| (queue, head)));
            if head.is_some() {
                return head;
            }
        }
        None
    }

    /// The head of a queue, if the queue is still ready, and here.
    fn ready_head(&mut self, queue: u64, lane: u32) -> Option<Ref> {
        let queue = self.queues.get(queue).filter(|queue| queue.state == State::Ready)?;
        queue.head().filter(|head| head.lane == lane)
    }

    fn start_job(&mut self, now: Nanos, number: u64, head: Ref) -> Job {
        let slot = self.lanes[head.lane as usize].slots.get(head.seq);
        let is_single = self.batch == 1 || slot.is_some_and(|slot| slot.is_alone);
        let (record, (attempt, first_seen)) = self.take(now, number, head);
        let (refs, records) = match is_single {
            true => (Several::One(head), Several::One(record)),
            false => self.take_batch(now, number, head, record),
        };
        if let Some(queue) = self.queues.get(number) {
            queue.state = State::Busy;
        }
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
            records.push(self.take(now, number, next).0);
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

    /// Takes the head out of its queue; returns its record, the number of this attempt, and when it was first seen.
    fn take(&mut self, now: Nanos, number: u64, head: Ref) -> (Record, (u32, Nanos)) {
        if let Some(queue) = self.queues.get(number) {
            queue.pop_front(&mut self.lanes);
        }
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

    /// The job of a key has ended: the key is ready again if it has more.
    fn free(&mut self, number: u64) {
        if let Some(head) = self.queues.free(number) {
            self.lanes[head.lane as usize].ready.push_back(number);
            self.enter_ring(head.lane);
        }
    }

    /// The number of a partition, which it keeps.
    fn number(&mut self, partition: &Partition) -> u32 {
        if let Some(number) = self.numbers.get(partition) {
            return *number;
        }
        let number = self.lanes.len() as u32;
        self.lanes.push(Lane::new(partition.clone()));
        self.numbers.insert(partition.clone(), number);
        number
    }

    /// The number of a partition, if it is assigned.
    fn assigned_number(&self, partition: &Partition) -> Option<u32> {
        self.numbers.get(partition).copied().filter(|number| self.lanes[*number as usize].is_assigned)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.life.phase()
    }

    /// How it ended; once.
    pub(crate) fn end(&mut self) -> Option<End> {
        self.life.take_end(self.is_planted_end_twice())
    }

    pub(crate) fn stalled(&self) -> usize {
        self.stats.stalled.len()
    }

    fn count_traits(&mut self, traits: Traits) {
        traits.bits().for_each(|bit| self.stats.traits[bit as usize] += 1);
    }
}

/// Each fault is asked for by name, so that code without tests contains none of them.
macro_rules! faults {
    ($($name:ident: $fault:ident),* $(,)?) => {
        impl Scheduler {
            $(#[cfg(test)]
            fn $name(&self) -> bool { self.fault == Some(Fault::$fault) }
            #[cfg(not(test))]
            #[inline(always)]
            #[expect(clippy::unused_self, reason = "its twin in tests looks")]
            const fn $name(&self) -> bool { false })*

            #[cfg(test)]
            pub(crate) fn plant(&mut self, fault: Fault) { self.fault = Some(fault); }
        }
    };
}

faults! {
    is_planted_commit_fetched: CommitFetched,
    is_planted_commit_back: CommitBack,
    is_planted_claim_all: ClaimAll,
    is_planted_second_handler: SecondHandler,
    is_planted_retry_last: RetryLast,
    is_planted_old_epoch: OldEpoch,
    is_planted_dead_letter_done: DeadLetterDone,
    is_planted_over_limit: OverLimit,
    is_planted_no_rate: NoRate,
    is_planted_lost_wakeup: LostWakeup,
    is_planted_drain_all: DrainAll,
    is_planted_commit_blocks: CommitBlocks,
    is_planted_no_pause: NoPause,
    is_planted_hasty_stop: HastyStop,
    is_planted_panic_completes: PanicCompletes,
    is_planted_count_twice: CountTwice,
    is_planted_gaps_complete: GapsComplete,
    is_planted_end_twice: EndTwice,
    is_planted_key_blocks: KeyBlocks,
}

impl Scheduler {
    fn commit_blocks(&self) -> bool {
        self.is_planted_commit_blocks() && self.lanes.iter().any(|lane| lane.commit.in_flight.is_some())
    }
}
