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
mod fault;
mod fetch;
mod job;
mod lane;
mod lifecycle;
#[cfg(test)]
mod model;
mod outcomes;
mod queues;
mod rate;
mod slots;
mod start;
mod stats;
mod view;

#[cfg(test)]
pub(crate) use fault::Fault;
pub(crate) use job::{Done, Failed, Job, NotPut, Outcome, Ref, Several};
pub(crate) use lifecycle::End;

use crate::clock::{Nanos, nanos};
use crate::control::{Command, Scope};
use crate::source::{Event, OffsetCommit};
use crate::{Options, Partition, Phase, Traits};
use fetch::Share;
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
    share: Share,
    /// Of the assigned ones, partitions on their way out.
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
        let share = Share::of(&options, 0);
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
            share,
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
        let rate =
            self.rate.as_ref().filter(|_| !self.ring.is_empty() && self.has_place()).map_or(Nanos::MAX, Rate::next);
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
