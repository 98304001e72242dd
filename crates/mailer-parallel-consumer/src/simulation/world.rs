//! The world of a run: logs, the group, members with real schedulers, and time.

use super::checks::{Assigned, Revoked, Standing, Violations, check_rate, queue};
use super::handlers::{MILLI, Place, Running, record};
use super::random::Random;
use crate::clock::Nanos;
use crate::control::Command;
use crate::offset_map::{self, Expected};
use crate::scheduler::{Action, Fault, Scheduler};
use crate::source::{Assignment, CommitError, CommitErrorKind, Event, Fetched, OffsetCommit};
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

struct Log {
    name: Partition,
    /// `None` is a marker; a record has a key or not.
    records: Vec<Option<Option<u64>>>,
    committed: (i64, String),
    /// When the last commit was made that arrived, of each generation.
    commit_made: BTreeMap<u64, Nanos>,
    owner: Option<Assigned>,
    /// When a record was finished by the owner of its time: in which generation.
    finished: BTreeMap<i64, (Nanos, u64)>,
    /// Offsets that a reset may deliver again.
    excused: BTreeSet<i64>,
}

struct Member {
    scheduler: Scheduler,
    running: Vec<Running>,
    starts: Vec<Nanos>,
    /// When it arrives, when it was made, of which generation.
    commits: VecDeque<(Nanos, Nanos, u64, OffsetCommit)>,
    ends: u32,
    is_stopping: bool,
    /// Generations that it had when it was told to stop, and still has.
    stops_with: BTreeSet<u64>,
    /// Successful records of current assignments.
    completed: u64,
}

impl Member {
    fn take_due(&mut self, now: Nanos) -> Option<Running> {
        let index = self.running.iter().position(|running| running.until <= now)?;
        Some(self.running.remove(index))
    }
}

pub(super) struct World {
    now: Nanos,
    random: Random,
    options: Options,
    batch: usize,
    fault: Option<Fault>,
    logs: Vec<Log>,
    members: BTreeMap<u64, Member>,
    /// Generations whose members stopped gracefully with them.
    graceful: BTreeSet<u64>,
    next_member: u64,
    next_generation: u64,
    is_calm: bool,
    keys: u64,
    record_bytes: usize,
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

    fn say(&mut self, invariant: u8, words: String) {
        self.violations.entry(invariant).or_insert(words);
    }

    fn add_member(&mut self) {
        let (id, now) = (self.next_member, self.now);
        self.next_member += 1;
        let mut scheduler = Scheduler::new(self.options.clone(), self.batch, BTreeMap::new(), now);
        self.fault.into_iter().for_each(|fault| scheduler.plant(fault));
        scheduler.event(now, Event::Assigned(Vec::new()));
        let (running, starts, commits) = (Vec::new(), Vec::new(), VecDeque::new());
        let member = Member { scheduler, running, starts, commits, ends: 0, is_stopping: false, stops_with: BTreeSet::new(), completed: 0 };
        self.members.insert(id, member);
        self.assign_free();
    }

    /// Gives partitions without an owner to members.
    fn assign_free(&mut self) {
        let ids: Vec<u64> = self.members.iter().filter(|(_, m)| !m.is_stopping).map(|(id, _)| *id).collect();
        if ids.is_empty() {
            return;
        }
        for index in 0..self.logs.len() {
            if self.logs[index].owner.is_none() {
                let id = *self.random.pick(&ids);
                self.assign(index, id);
            }
        }
    }

    fn assign(&mut self, index: usize, member: u64) {
        self.next_generation += 1;
        let log = &mut self.logs[index];
        let (start, metadata) = log.committed.clone();
        let log_end = Some(log.records.len() as i64);
        let expected = Expected { topic_id: [0; 16], base: start, log_end: log.records.len() as i64 };
        let claims = offset_map::decode(&metadata, &expected).unwrap_or_default();
        let restored: BTreeSet<i64> =
            if self.options.commit.offset_map { claims.from(0).flatten().collect() } else { BTreeSet::new() };
        log.owner = Some(Assigned {
            member,
            generation: self.next_generation,
            start,
            position: start,
            is_paused: false,
            revoked: None,
            restored,
            records: BTreeMap::new(),
            panicked: BTreeSet::new(),
            last_commit: None,
            is_map_limited: false,
        });
        let partition = log.name.clone();
        let assignment = Assignment { partition, topic_id: [0; 16], position: start, metadata, log_end };
        self.tell(member, Event::Assigned(vec![assignment]));
    }

    fn tell(&mut self, id: u64, event: Event) {
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

    fn produce(&mut self) {
        let (index, count) = (self.random.range(0, self.logs.len() as u64) as usize, self.random.range(1, 20));
        for _ in 0..count {
            let key = (!self.random.chance(10)).then(|| self.random.range(0, self.keys));
            let entry = (!self.random.chance(10)).then_some(key);
            self.seen.records += u64::from(entry.is_some());
            self.logs[index].records.push(entry);
        }
    }

    /// Delivers records of one partition that is not paused.
    fn poll(&mut self) {
        let index = self.random.range(0, self.logs.len() as u64) as usize;
        let most = self.random.range(1, 9) as i64;
        let log = &mut self.logs[index];
        let end = log.records.len() as i64;
        let Some(owner) = log.owner.as_mut().filter(|o| !o.is_paused && o.revoked.is_none() && o.position < end) else {
            return;
        };
        let again = if self.random.chance(5) && owner.position > owner.start { 1 } else { 0 };
        let (from, next) = (owner.position - again, end.min(owner.position + most));
        let mut records = Vec::new();
        for offset in from..next {
            let Some(key) = log.records[offset as usize] else { continue };
            records.push(record(log.name.clone(), offset, key, self.record_bytes));
            if owner.restored.contains(&offset) {
                self.seen.restored += 1;
            } else if offset >= owner.position {
                let queue = queue(&self.options, index, offset, key);
                owner.records.insert(offset, (queue, Standing::Waiting));
            }
        }
        owner.position = next;
        let (id, partition) = (owner.member, log.name.clone());
        self.tell(id, Event::Records(Fetched { partition, records, next, log_end: Some(end), broker: None }));
    }

    /// Goes to the next moment at which something is due, and does it.
    fn pass_time(&mut self) {
        let due = |member: &Member| {
            let jobs = member.running.iter().map(|running| running.until);
            let commits = member.commits.front().map(|(due, ..)| *due);
            jobs.chain(commits).chain([member.scheduler.deadline()]).min().unwrap_or(Nanos::MAX)
        };
        let Some((id, at)) = self.members.iter().map(|(id, member)| (*id, due(member))).min_by_key(|(_, at)| *at) else {
            return;
        };
        self.now = self.now.max(at);
        self.end_jobs(id);
        self.end_commits(id);
        self.pump(id);
    }

    fn end_jobs(&mut self, id: u64) {
        let now = self.now;
        while let Some(running) = self.members.get_mut(&id).and_then(|member| member.take_due(now)) {
            self.end_job(id, running);
        }
    }

    fn end_job(&mut self, id: u64, running: Running) {
        let now = self.now;
        let (places, is_letter) = (running.places.clone(), running.is_letter);
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
        let _ = is_letter;
        self.deliver(id, done, all_old);
    }

    /// Hands a result to the scheduler. Invariant 7: one of an old epoch changes nothing but the count of orphans.
    fn deliver(&mut self, id: u64, done: crate::scheduler::Done, is_old: bool) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&id) else { return };
        let view = |scheduler: &Scheduler| {
            let snapshot = scheduler.snapshot(now);
            let partitions: Vec<_> =
                snapshot.partitions.iter().map(|p| (p.partition, p.position, p.incomplete, p.buffered_records)).collect();
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

    fn end_commits(&mut self, id: u64) {
        while let Some((_, made, generation, commit)) = self.due_commit(id) {
            let index = commit.partition.index as usize;
            let fails = !self.is_calm && self.random.chance(15);
            let log = &mut self.logs[index];
            let is_owner = log.owner.as_ref().is_some_and(|owner| owner.generation == generation);
            let result = match () {
                () if !is_owner => Err(CommitErrorKind::NotOwned),
                () if fails && !commit.metadata.is_empty() && self.random.chance(50) => {
                    Err(CommitErrorKind::MetadataTooLarge)
                }
                () if fails => Err(CommitErrorKind::Retriable),
                () => Ok(()),
            };
            if result.is_ok() {
                log.committed = (commit.offset, commit.metadata.clone());
                if self.options.commit.offset_map {
                    log.commit_made.insert(generation, made); // without a map it says nothing of what is behind it
                }
            }
            self.seen.failed_commits += u64::from(result.is_err());
            let result = result.map_err(|kind| CommitError { kind, message: "drawn".into() });
            if matches!(&result, Err(error) if error.kind == CommitErrorKind::MetadataTooLarge) {
                let log = &mut self.logs[index];
                log.excused.extend(0..log.records.len() as i64);
                log.owner.as_mut().into_iter().for_each(|owner| owner.is_map_limited = true);
            }
            self.tell(id, Event::Committed { partition: commit.partition, offset: commit.offset, result });
        }
    }

    fn due_commit(&mut self, id: u64) -> Option<(Nanos, Nanos, u64, OffsetCommit)> {
        let now = self.now;
        self.members.get_mut(&id)?.commits.pop_front_if(|(due, ..)| *due <= now)
    }

    /// What the driver does: ticks, carries out actions, starts jobs; and what is checked then.
    fn pump(&mut self, id: u64) {
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

    fn act(&mut self, id: u64, action: Action) {
        match action {
            Action::Pause(partition) => self.set_paused(id, &partition, true),
            Action::Resume(partition) => self.set_paused(id, &partition, false),
            Action::Commit(commit) => self.commit(id, commit),
            Action::Release(partition) => self.released(id, &partition),
            Action::Cancel(_) => {}
            Action::Close => self.close(id),
        }
    }

    fn owned(&mut self, id: u64, partition: &Partition) -> Option<&mut Assigned> {
        self.logs[partition.index as usize].owner.as_mut().filter(|owner| owner.member == id)
    }

    fn set_paused(&mut self, id: u64, partition: &Partition, is_paused: bool) {
        if let Some(owner) = self.owned(id, partition) {
            owner.is_paused = is_paused;
        }
    }

    fn commit(&mut self, id: u64, commit: OffsetCommit) {
        let (now, delay) = (self.now, *self.random.pick(&[0, 0, 5, 500, 2_000, 4_000]) * MILLI);
        let log = &mut self.logs[commit.partition.index as usize];
        let Some(owner) = log.owner.as_mut().filter(|owner| owner.member == id) else { return };
        owner.check_commit(&log.records, commit.offset, &mut self.violations);
        let expected = Expected { topic_id: [0; 16], base: commit.offset, log_end: i64::MAX };
        match offset_map::decode(&commit.metadata, &expected) {
            Ok(claims) => {
                let claims: Vec<i64> = claims.from(0).take(50).flatten().take(5_000).collect();
                owner.check_map(&log.records, &claims, &mut self.violations);
            }
            Err(why) => drop(self.violations.entry(4).or_insert(format!("an own map is {why}"))),
        }
        let generation = owner.generation;
        if let Some(member) = self.members.get_mut(&id) {
            let in_order = member.commits.back().map_or(0, |(due, ..)| *due);
            member.commits.push_back(((now + delay).max(in_order), now, generation, commit));
        }
    }

    fn released(&mut self, id: u64, partition: &Partition) {
        // What was committed before arrives before the partition moves.
        let Some(member) = self.members.get_mut(&id) else { return };
        let of_it: Vec<_> = member.commits.iter().filter(|(.., commit)| commit.partition == *partition).cloned().collect();
        member.commits.retain(|(.., commit)| commit.partition != *partition);
        let has_commits = !of_it.is_empty();
        let log = &mut self.logs[partition.index as usize];
        for (_, made, generation, commit) in of_it {
            if log.owner.as_ref().is_some_and(|owner| owner.generation == generation) {
                log.committed = (commit.offset, commit.metadata);
                if self.options.commit.offset_map {
                    log.commit_made.insert(generation, made);
                }
            }
        }
        let Some(owner) = log.owner.take_if(|owner| owner.member == id) else { return };
        let waited = owner.revoked.map_or(0, |revoked| self.now - revoked.at);
        if owner.revoked.is_some_and(|revoked| revoked.was_idle) && waited > 9_000 * MILLI && !has_commits {
            self.say(13, format!("an idle partition was given back after {waited} ns"));
        }
        self.assign_free();
    }

    fn close(&mut self, id: u64) {
        for log in &mut self.logs {
            log.owner.take_if(|owner| owner.member == id);
        }
        self.tell(id, Event::Closed);
    }

    fn start(&mut self, id: u64) {
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
            if !running.is_letter {
                places_started(self, id, &running);
            }
            self.check_order(id, &running);
            if let Some(member) = self.members.get_mut(&id) {
                member.running.push(running);
            }
        }
        self.check_limits(id);
    }

    /// Invariants 5 and 16, as a job starts.
    fn check_order(&mut self, id: u64, running: &Running) {
        for (n, place) in running.places.iter().enumerate() {
            let log = &mut self.logs[place.partition];
            let Some(owner) = log.owner.as_mut() else { continue };
            let queue = owner.records.get(&place.offset).map(|(queue, _)| queue.clone()).unwrap_or_default();
            let in_batch = |offset: i64| running.places[..n].iter().any(|p| (p.partition, p.offset) == (place.partition, offset));
            let earlier = owner.records.range(..place.offset).find(|(offset, (other, standing))| {
                *other == queue && *standing != Standing::Finished && !in_batch(**offset)
            });
            if let Some((offset, (_, standing))) = earlier {
                let words = format!("{} of {queue} starts while {offset} is {standing:?}", place.offset);
                self.violations.entry(5).or_insert(words);
            }
            owner.records.insert(place.offset, (queue.clone(), Standing::Running));
            self.check_redelivery(place);
            self.check_one_handler(id, &queue);
        }
    }

    fn check_one_handler(&mut self, id: u64, queue: &str) {
        let Some(member) = self.members.get(&id) else { return };
        let is_same = |place: &Place| {
            let key = self.logs[place.partition].records[place.offset as usize].flatten();
            super::checks::queue(&self.options, place.partition, place.offset, key) == queue
        };
        if let Some(other) = member.running.iter().flat_map(|running| &running.places).find(|place| is_same(place)) {
            let words = format!("two handlers of {queue}; the other has {}", other.offset);
            self.violations.entry(5).or_insert(words);
        }
    }

    /// Invariant 16: what is handled again was finished after the last commit, and not by one that stopped gracefully.
    fn check_redelivery(&mut self, place: &Place) {
        let log = &self.logs[place.partition];
        let Some((at, generation)) = log.finished.get(&place.offset).copied() else { return };
        self.seen.redelivered += 1;
        if log.excused.contains(&place.offset) {
            return;
        }
        if self.graceful.contains(&generation) {
            self.say(16, format!("{} was finished by a member that stopped gracefully", place.offset));
        }
        if self.logs[place.partition].commit_made.get(&generation).is_some_and(|made| *made > at) {
            self.say(16, format!("{} was finished before the last commit", place.offset));
        }
    }

    /// Invariants 9 and 10.
    fn check_limits(&mut self, id: u64) {
        let Some(member) = self.members.get(&id) else { return };
        let handlers = member.running.iter().filter(|running| !running.is_letter).count();
        let snapshot = member.scheduler.snapshot(self.now);
        let (limit, held) = (self.options.max_in_flight, snapshot.concurrency.buffered_bytes);
        // The share of a partition may shrink under what it holds: what one poll brings comes on top for each.
        let room = self.options.buffer.bytes + self.logs.len() * self.options.poll_bytes;
        let most = snapshot.partitions.iter().map(|p| p.incomplete + p.completed_ahead).max().unwrap_or(0);
        let buffered = self.options.buffer.records * 2 + self.logs.len() * 10;
        if handlers > limit {
            self.say(9, format!("{handlers} handlers run, {limit} may"));
        }
        if held > room {
            self.say(9, format!("{held} bytes are held, {room} may"));
        }
        if snapshot.concurrency.buffered_records > buffered || most > self.options.window.records + 10 {
            let records = snapshot.concurrency.buffered_records;
            self.say(9, format!("{records} records are held ({buffered} may), a window has {most}"));
        }
        if let (Some(limit), Some(member)) = (self.options.rate_limit, self.members.get(&id)) {
            check_rate(limit, &member.starts, &mut self.violations);
        }
    }

    /// Invariants 11, 12 and 14: while a place is free, nothing that could run waits.
    fn check_work(&mut self, id: u64) {
        let Some(member) = self.members.get(&id).filter(|member| !member.is_stopping) else { return };
        let handlers = member.running.iter().filter(|running| !running.is_letter).count();
        if handlers >= self.options.max_in_flight || self.options.rate_limit.is_some() {
            return;
        }
        let owned = || {
            let logs = self.logs.iter().enumerate();
            logs.filter_map(|(n, log)| log.owner.as_ref().map(|owner| (n, owner))).filter(|(_, owner)| owner.member == id)
        };
        let mut busy: BTreeSet<String> = BTreeSet::new();
        for place in member.running.iter().flat_map(|running| &running.places) {
            let key = self.logs[place.partition].records[place.offset as usize].flatten();
            busy.insert(queue(&self.options, place.partition, place.offset, key));
        }
        let failed = owned().flat_map(|(_, owner)| owner.records.values());
        let is_held = |standing: &Standing| !matches!(standing, Standing::Waiting | Standing::Finished);
        busy.extend(failed.filter(|(_, standing)| is_held(standing)).map(|(queue, _)| queue.clone()));
        let idle = owned().filter(|(_, owner)| owner.revoked.is_none()).find_map(|(n, owner)| {
            let waiting = owner.records.iter().find(|(_, (queue, s))| *s == Standing::Waiting && !busy.contains(queue));
            waiting.map(|(offset, _)| (n, *offset))
        });
        let Some((partition, offset)) = idle else { return };
        let is_committing = member.commits.iter().any(|(.., commit)| commit.partition.index >= 0);
        let shares = member.running.iter().flat_map(|running| &running.places).any(|p| p.partition == partition);
        let words = format!("{offset} of partition {partition} could run");
        match () {
            () if is_committing => self.say(14, words),
            () if shares => self.say(12, words),
            () => self.say(11, words),
        }
    }

    /// Invariant 15, and the way out of a member.
    fn check_end(&mut self, id: u64) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let mut stopped = None;
        while let Some(end) = member.scheduler.end() {
            member.ends += 1;
            stopped = Some(end.stopped);
            if member.ends > 1 {
                self.say(15, "told of its end twice".into());
                break;
            }
        }
        if let Some(stopped) = stopped {
            let member = self.members.remove(&id).filter(|_| stopped == crate::Stopped::Graceful);
            self.graceful.extend(member.into_iter().flat_map(|member| member.stops_with));
            if self.members.is_empty() {
                self.add_member();
            }
            self.assign_free();
        }
    }

    fn chaos(&mut self) {
        let ids: Vec<u64> = self.members.keys().copied().collect();
        let id = *self.random.pick(&ids);
        let index = self.random.range(0, self.logs.len() as u64) as usize;
        match self.random.range(0, 6) {
            0 => self.crash(id),
            1 => self.revoke(index),
            2 => self.lose(index),
            3 => self.stop(id),
            4 if self.random.chance(30) => self.reset(index),
            _ => self.add_some(),
        }
    }

    fn add_some(&mut self) {
        if self.members.len() < 4 {
            self.add_member();
        }
    }

    fn crash(&mut self, id: u64) {
        self.seen.crashes += 1;
        self.members.remove(&id);
        for log in &mut self.logs {
            log.owner.take_if(|owner| owner.member == id);
        }
        if self.members.is_empty() {
            self.add_member();
        }
        self.assign_free();
    }

    fn revoke(&mut self, index: usize) {
        let (now, log) = (self.now, &mut self.logs[index]);
        let Some(owner) = log.owner.as_mut().filter(|owner| owner.revoked.is_none()) else { return };
        let was_idle = owner.records.values().all(|(_, standing)| matches!(standing, Standing::Waiting | Standing::Finished))
            && owner.records.values().all(|(_, standing)| *standing == Standing::Finished);
        owner.revoked = Some(Revoked { at: now, was_idle });
        let (id, partition) = (owner.member, log.name.clone());
        self.seen.revokes += 1;
        self.tell(id, Event::Revoked(vec![partition]));
        self.check_revoked_alone(id);
    }

    /// Invariant 13: a revoke concerns what it names.
    fn check_revoked_alone(&mut self, id: u64) {
        let Some(member) = self.members.get(&id).filter(|member| !member.is_stopping) else { return };
        let snapshot = member.scheduler.snapshot(self.now);
        for (index, log) in self.logs.iter().enumerate() {
            let is_kept = log.owner.as_ref().is_some_and(|owner| owner.member == id && owner.revoked.is_none());
            let shown = snapshot.partitions.iter().find(|partition| partition.partition == index as i32);
            if is_kept && shown.is_none_or(|partition| partition.state == "draining") {
                self.violations.entry(13).or_insert(format!("partition {index} is drained beside a revoked one"));
            }
        }
    }

    fn lose(&mut self, index: usize) {
        let log = &mut self.logs[index];
        let Some(owner) = log.owner.take() else { return };
        let partition = log.name.clone();
        self.seen.losses += 1;
        self.members.get_mut(&owner.member).map(|member| member.stops_with.remove(&owner.generation));
        self.tell(owner.member, Event::Lost(vec![partition]));
        self.assign_free();
    }

    fn stop(&mut self, id: u64) {
        let now = self.now;
        let Some(member) = self.members.get_mut(&id) else { return };
        self.seen.stops += 1;
        let owned = self.logs.iter().filter_map(|log| log.owner.as_ref()).filter(|owner| owner.member == id);
        (member.is_stopping, member.stops_with) = (true, owned.map(|owner| owner.generation).collect());
        member.scheduler.command(now, Command::Stop { within: None });
        self.pump(id);
    }

    /// The position of a partition goes back, as after a log was truncated.
    fn reset(&mut self, index: usize) {
        self.next_generation += 1;
        let generation = self.next_generation;
        let log = &mut self.logs[index];
        let Some(owner) = log.owner.as_mut().filter(|owner| owner.position > owner.start && owner.revoked.is_none())
        else {
            return;
        };
        let position = owner.position - 1;
        if self.members.get(&owner.member).is_some_and(|member| member.is_stopping) {
            let (id, partition) = (owner.member, log.name.clone());
            return self.tell(id, Event::Reset { partition, position }); // it must not be concerned
        }
        log.excused.extend(0..log.records.len() as i64);
        (owner.generation, owner.start, owner.position) = (generation, position, position);
        (owner.last_commit, owner.records, owner.restored) = (None, BTreeMap::new(), BTreeSet::new());
        owner.panicked = BTreeSet::new();
        // What lies before the new position was truncated away, as far as this run is concerned.
        (0..position).for_each(|offset| drop(log.finished.entry(offset).or_insert((0, 0))));
        let (id, partition) = (owner.member, log.name.clone());
        self.seen.resets += 1;
        self.tell(id, Event::Reset { partition, position });
    }

    /// Invariants 6 and 18.
    fn check_counters(&mut self) {
        let mut broken = Vec::new();
        for (id, member) in &self.members {
            let snapshot = member.scheduler.snapshot(self.now);
            let c = snapshot.counters;
            let incomplete: u64 = snapshot.partitions.iter().map(|partition| partition.incomplete).sum();
            let sum = c.succeeded + c.dead_lettered + c.restored + c.duplicates + c.dropped + incomplete;
            if c.fetched != sum {
                broken.push((18, format!("member {id}: {} fetched, {sum} accounted for: {c:?}", c.fetched)));
            }
            if c.succeeded + c.dead_lettered != member.completed {
                broken.push((6, format!("member {id}: {} completed, {c:?}", member.completed)));
            }
        }
        broken.into_iter().for_each(|(invariant, words)| self.say(invariant, words));
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

fn places_started(world: &mut World, id: u64, running: &Running) {
    if let Some(member) = world.members.get_mut(&id) {
        member.starts.push(running.began);
    }
}
