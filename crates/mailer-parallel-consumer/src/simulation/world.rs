//! The world of a run: logs, the group, members with real schedulers, and time.

use super::checks::{Assigned, Standing, Violations};
use super::handlers::{Place, Running};
use super::random::Random;
use crate::clock::Nanos;
use crate::scheduler::{Action, Fault, Scheduler};
use crate::source::{Event, OffsetCommit};
use crate::{
    Backoff, Buffer, Commit, DeadLetterFailure, KeyScope, Options, Ordering, Partition, RateLimit, RetryPolicy, Window,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// What happened, to see that it does.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) records: u64,
    pub(super) crashes: u64,
    pub(super) revokes: u64,
    pub(super) losses: u64,
    pub(super) stops: u64,
    pub(super) resets: u64,
    pub(super) panics: u64,
    pub(super) failed_letters: u64,
    pub(super) failed_commits: u64,
    pub(super) redelivered: u64,
    pub(super) restored: u64,
    pub(super) orphans: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.crashes += other.crashes;
        self.revokes += other.revokes;
        self.losses += other.losses;
        self.stops += other.stops;
        self.resets += other.resets;
        self.panics += other.panics;
        self.failed_letters += other.failed_letters;
        self.failed_commits += other.failed_commits;
        self.redelivered += other.redelivered;
        self.restored += other.restored;
        self.orphans += other.orphans;
    }
}

pub(super) struct Log {
    pub(super) name: Partition,
    /// `None` is a marker; a record has a key or not.
    pub(super) records: Vec<Option<Option<u64>>>,
    pub(super) committed: (i64, String),
    /// When the last commit was made that arrived, of each generation.
    pub(super) commit_made: BTreeMap<u64, Nanos>,
    pub(super) owner: Option<Assigned>,
    /// When a record was finished by the owner of its time: in which generation.
    pub(super) finished: BTreeMap<i64, (Nanos, u64)>,
    /// Offsets that a reset may deliver again.
    pub(super) excused: BTreeSet<i64>,
}

pub(super) struct Member {
    pub(super) scheduler: Scheduler,
    pub(super) running: Vec<Running>,
    pub(super) starts: Vec<Nanos>,
    /// When it arrives, when it was made, of which generation.
    pub(super) commits: VecDeque<(Nanos, Nanos, u64, OffsetCommit)>,
    pub(super) ends: u32,
    pub(super) is_stopping: bool,
    /// Generations that it had when it was told to stop, and still has.
    pub(super) stops_with: BTreeSet<u64>,
    /// Successful records of current assignments.
    pub(super) completed: u64,
}

impl Member {
    pub(super) fn take_due(&mut self, now: Nanos) -> Option<Running> {
        let index = self.running.iter().position(|running| running.until <= now)?;
        Some(self.running.remove(index))
    }
}

pub(super) struct World {
    pub(super) now: Nanos,
    pub(super) random: Random,
    pub(super) options: Options,
    pub(super) batch: usize,
    pub(super) fault: Option<Fault>,
    pub(super) logs: Vec<Log>,
    pub(super) members: BTreeMap<u64, Member>,
    /// Generations whose members stopped gracefully with them.
    pub(super) graceful: BTreeSet<u64>,
    pub(super) next_member: u64,
    pub(super) next_generation: u64,
    pub(super) is_calm: bool,
    pub(super) keys: u64,
    pub(super) record_bytes: usize,
    pub(super) violations: Violations,
    pub(super) seen: Seen,
}

fn options(random: &mut Random) -> Options {
    let milli = Duration::from_millis;
    let backoff = Backoff::exponential(milli(random.range(1, 300)), milli(2_000));
    let rate = RateLimit { per_second: random.range(20, 2_000) as f64, burst: random.range(1, 20) as u32 };
    Options {
        max_in_flight: random.range(1, 12) as usize,
        ordering: random.pick(&[Ordering::Key, Ordering::Key, Ordering::Partition, Ordering::Unordered]).clone(),
        key_scope: *random.pick(&[KeyScope::Partition, KeyScope::Partition, KeyScope::Topic, KeyScope::All]),
        buffer: Buffer { records: random.range(4, 200) as usize, bytes: random.range(1 << 14, 1 << 20) as usize },
        window: Window { records: random.range(20, 400), ..Options::default().window },
        retry: RetryPolicy::exponential(milli(random.range(0, 200)), milli(3_000), random.range(1, 5) as u32),
        rate_limit: random.chance(25).then_some(rate),
        dead_letter_failure: DeadLetterFailure::Retry(backoff),
        commit: Commit { interval: milli(random.range(250, 3_000)), offset_map: random.chance(80) },
        drain_timeout: milli(random.range(2_000, 20_000)),
        poll_bytes: 4_096,
        ..Options::default()
    }
}

impl World {
    pub(super) fn new(seed: u64, fault: Option<Fault>) -> Self {
        let mut random = Random(seed);
        let options = options(&mut random);
        let partitions = random.range(1, 5);
        let log = |index: u64| Log {
            name: Partition::new("t", index as i32),
            records: Vec::new(),
            committed: (0, String::new()),
            commit_made: BTreeMap::new(),
            owner: None,
            finished: BTreeMap::new(),
            excused: BTreeSet::new(),
        };
        let (batch, keys) = (*random.pick(&[1, 1, 5]), random.range(1, 12));
        let mut world = Self {
            now: 0,
            options,
            batch,
            fault,
            logs: (0..partitions).map(log).collect(),
            members: BTreeMap::new(),
            graceful: BTreeSet::new(),
            next_member: 0,
            next_generation: 0,
            is_calm: false,
            keys,
            record_bytes: random.range(1, 400) as usize,
            random,
            violations: Violations::new(),
            seen: Seen::default(),
        };
        (0..world.random.range(1, 4)).for_each(|_| world.add_member());
        world
    }

    pub(super) fn say(&mut self, invariant: u8, words: String) {
        self.violations.entry(invariant).or_insert(words);
    }

    pub(super) fn add_member(&mut self) {
        let (id, now) = (self.next_member, self.now);
        self.next_member += 1;
        let mut scheduler = Scheduler::new(self.options.clone(), self.batch, BTreeMap::new(), now);
        self.fault.into_iter().for_each(|fault| scheduler.plant(fault));
        scheduler.event(now, Event::Assigned(Vec::new()));
        let (running, starts, commits) = (Vec::new(), Vec::new(), VecDeque::new());
        let member = Member {
            scheduler,
            running,
            starts,
            commits,
            ends: 0,
            is_stopping: false,
            stops_with: BTreeSet::new(),
            completed: 0,
        };
        self.members.insert(id, member);
        self.assign_free();
    }

    pub(super) fn tell(&mut self, id: u64, event: Event) {
        let now = self.now;
        if let Some(member) = self.members.get_mut(&id) {
            member.scheduler.event(now, event);
            self.pump(id);
        }
    }

    /// One thing happens.
    pub(super) fn step(&mut self) {
        match self.random.range(0, 100) {
            0..20 => self.produce(),
            20..50 => self.poll(),
            50..96 => self.pass_time(),
            _ => self.chaos(),
        }
        self.check_counters();
    }

    pub(super) fn produce(&mut self) {
        let (index, count) = (self.random.range(0, self.logs.len() as u64) as usize, self.random.range(1, 20));
        for _ in 0..count {
            let key = (!self.random.chance(10)).then(|| self.random.range(0, self.keys));
            let entry = (!self.random.chance(10)).then_some(key);
            self.seen.records += u64::from(entry.is_some());
            self.logs[index].records.push(entry);
        }
    }

    /// Goes to the next moment at which something is due, and does it.
    pub(super) fn pass_time(&mut self) {
        let due = |member: &Member| {
            let jobs = member.running.iter().map(|running| running.until);
            let commits = member.commits.front().map(|(due, ..)| *due);
            jobs.chain(commits).chain([member.scheduler.deadline()]).min().unwrap_or(Nanos::MAX)
        };
        let Some((id, at)) = self.members.iter().map(|(id, member)| (*id, due(member))).min_by_key(|(_, at)| *at)
        else {
            return;
        };
        self.now = self.now.max(at);
        self.end_jobs(id);
        self.end_commits(id);
        self.pump(id);
    }

    pub(super) fn end_jobs(&mut self, id: u64) {
        let now = self.now;
        while let Some(running) = self.members.get_mut(&id).and_then(|member| member.take_due(now)) {
            self.end_job(id, running);
        }
    }

    pub(super) fn end_job(&mut self, id: u64, running: Running) {
        let now = self.now;
        let places = running.places.clone();
        let (done, noted) = running.end(now, self.is_calm, &mut self.random);
        self.seen.panics += u64::from(noted.panicked);
        self.seen.failed_letters += u64::from(noted.letter_failed);
        let mut all_old = true;
        for (n, place) in places.iter().enumerate() {
            let log = &mut self.logs[place.partition];
            let owner = log.owner.as_mut().filter(|owner| owner.generation == place.generation);
            let Some(owner) = owner else {
                self.seen.orphans += 1;
                continue;
            };
            all_old = false;
            let standing = match () {
                () if n < noted.finished => Standing::Finished,
                () if noted.letter_failed => Standing::LetterFailed,
                () => Standing::Failed,
            };
            if noted.panicked {
                owner.panicked.insert(place.offset);
            }
            owner.records.insert(place.offset, (owner.records[&place.offset].0.clone(), standing));
            if standing == Standing::Finished {
                log.finished.insert(place.offset, (now, place.generation));
                if owner.is_map_limited {
                    log.excused.insert(place.offset);
                }
                self.members.get_mut(&id).into_iter().for_each(|member| member.completed += 1);
            }
        }
        self.deliver(id, done, all_old);
    }

    /// Hands a result to the scheduler. Invariant 7: one of an old epoch changes nothing but the count of orphans.
    pub(super) fn deliver(&mut self, id: u64, done: crate::scheduler::Done, is_old: bool) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&id) else { return };
        let view = |scheduler: &Scheduler| {
            let snapshot = scheduler.snapshot(now);
            let partitions: Vec<_> = snapshot
                .partitions
                .iter()
                .map(|p| (p.partition, p.position, p.incomplete, p.buffered_records))
                .collect();
            (snapshot.counters.succeeded, snapshot.counters.dead_lettered, partitions)
        };
        let before = is_old.then(|| view(&member.scheduler));
        member.scheduler.done(now, done);
        let changed = before.filter(|before| *before != view(&member.scheduler));
        if let Some(before) = changed {
            self.say(7, format!("a result of an old epoch changed {before:?}"));
        }
        self.pump(id);
    }

    /// What the driver does: ticks, carries out actions, starts jobs; and what is checked then.
    pub(super) fn pump(&mut self, id: u64) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&id) else { return };
        if member.scheduler.is_due(now) {
            member.scheduler.tick(now);
        }
        let actions: Vec<Action> = member.scheduler.actions().collect();
        actions.into_iter().for_each(|action| self.act(id, action));
        self.start(id);
        self.check_work(id);
        self.check_end(id);
    }

    pub(super) fn act(&mut self, id: u64, action: Action) {
        match action {
            Action::Pause(partition) => self.set_paused(id, &partition, true),
            Action::Resume(partition) => self.set_paused(id, &partition, false),
            Action::Commit(commit) => self.commit(id, commit),
            Action::Release(partition) => self.released(id, &partition),
            Action::Cancel(_) => {}
            Action::Close => self.close(id),
        }
    }

    pub(super) fn start(&mut self, id: u64) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&id) else { return };
        let mut jobs = Vec::new();
        member.scheduler.start(now, &mut jobs, 1_000);
        for job in jobs {
            let places: Vec<Place> = job
                .records
                .as_slice()
                .iter()
                .map(|record| {
                    let partition = record.partition.index as usize;
                    let generation = self.logs[partition].owner.as_ref().map_or(0, |owner| owner.generation);
                    Place { partition, generation, offset: record.offset }
                })
                .collect();
            let running = Running::new(now, job, places, &mut self.random);
            self.check_order(id, &running);
            if let Some(member) = self.members.get_mut(&id) {
                member.starts.extend(Some(now).filter(|_| !running.is_letter));
                member.running.push(running);
            }
        }
        self.check_limits(id);
    }

    /// No more trouble: everything must be finished and committed. Invariants 3 and 11.
    pub(super) fn calm_down(&mut self) {
        self.is_calm = true;
        let is_done = |log: &Log| log.committed.0 == log.records.len() as i64;
        for _ in 0..40_000 {
            if self.logs.iter().all(is_done) && self.logs.iter().all(|log| log.owner.is_some()) {
                break;
            }
            self.poll();
            self.pass_time();
            self.check_counters();
        }
        for index in 0..self.logs.len() {
            let log = &self.logs[index];
            let is_lost = |(offset, entry): &(usize, &Option<Option<u64>>)| {
                entry.is_some() && !log.finished.contains_key(&(*offset as i64))
            };
            let lost = log.records.iter().enumerate().find(is_lost).map(|(offset, _)| offset);
            let (committed, end) = (log.committed.0, log.records.len() as i64);
            if let Some(offset) = lost.filter(|offset| (*offset as i64) < committed) {
                self.say(3, format!("partition {index}: {offset} was never finished, and {committed} is committed"));
            }
            if committed < end {
                self.say(11, format!("partition {index} stands at {committed} of {end}"));
            }
        }
    }
}
