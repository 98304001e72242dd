//! The scheduler and its ledgers against a model that fits on a page: what happens is drawn by proptest, so a failure is
//! shrunk to the few steps that matter. 2,000 cases, or as many as `MAILER_PC_CASES` says.

use super::{Action, Done, Failed, Job, Outcome, Scheduler, Several};
use crate::clock::Nanos;
use crate::offset_map::{self, Expected};
use crate::source::{Assignment, Event, Fetched, OffsetCommit};
use crate::{BoxError, FailureKind, Options, Partition, Record, RetryPolicy, Traits};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Clone, Debug)]
enum Step {
    /// Records with these keys arrive, each behind a gap.
    Fetch(Vec<(u8, i64)>),
    /// One of the running jobs ends.
    Succeed(usize),
    Fail(usize),
    /// So many milliseconds pass.
    Wait(u64),
    /// The answer to the commit under way.
    Answer,
    /// The process dies; another takes over from what is committed.
    Crash,
    /// Another member has the partition, and then this one again.
    Lose,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec((0_u8..5, 0_i64..3), 1..8).prop_map(Step::Fetch),
        6 => any::<usize>().prop_map(Step::Succeed),
        2 => any::<usize>().prop_map(Step::Fail),
        2 => (1_u64..2_000).prop_map(Step::Wait),
        2 => Just(Step::Answer),
        1 => Just(Step::Crash),
        1 => Just(Step::Lose),
    ]
}

/// What is true of one partition, and the scheduler beside it.
struct Model {
    scheduler: Scheduler,
    now: Nanos,
    /// The log: keys by offset.
    log: BTreeMap<i64, u8>,
    end: i64,
    /// What this assignment has fetched, and what of it is complete.
    fetched: BTreeSet<i64>,
    done: BTreeSet<i64>,
    next: i64,
    jobs: Vec<Job>,
    /// Jobs of an assignment that has gone.
    old: Vec<Job>,
    commit: Option<OffsetCommit>,
    committed: (i64, String),
    ever: BTreeSet<i64>,
}

fn scheduler() -> Scheduler {
    let milli = Duration::from_millis;
    let retry = RetryPolicy::exponential(milli(50), milli(400), 0);
    let options = Options { max_in_flight: 3, retry, ..Options::default() };
    Scheduler::new(options, 1, BTreeMap::new(), 0)
}

impl Model {
    fn new() -> Self {
        let mut model = Self {
            scheduler: scheduler(),
            now: 0,
            log: BTreeMap::new(),
            end: 0,
            fetched: BTreeSet::new(),
            done: BTreeSet::new(),
            next: 0,
            jobs: Vec::new(),
            old: Vec::new(),
            commit: None,
            committed: (0, String::new()),
            ever: BTreeSet::new(),
        };
        model.assign();
        model
    }

    fn assign(&mut self) {
        let (position, metadata) = self.committed.clone();
        let expected = Expected { topic_id: [0; 16], base: position, log_end: self.end };
        let claims: BTreeSet<i64> = offset_map::decode(&metadata, &expected).unwrap().from(0).flatten().collect();
        assert!(claims.is_subset(&self.ever), "the map claims what was never complete");
        (self.fetched, self.done, self.next, self.commit) = (BTreeSet::new(), claims, position, None);
        let (partition, log_end) = (Partition::new("t", 0), Some(self.end));
        let assignment = Assignment { partition, topic_id: [0; 16], position, metadata, log_end };
        self.scheduler.event(self.now, Event::Assigned(vec![assignment]));
        self.fetch(); // again what lies behind the position
    }

    /// Delivers what the log has behind the position.
    fn fetch(&mut self) {
        let records: Vec<Record> = self.log.range(self.next..).map(|(offset, key)| record(*offset, *key)).collect();
        self.fetched.extend(records.iter().map(|record| record.offset));
        self.next = self.end;
        let fetched =
            Fetched { partition: Partition::new("t", 0), records, next: self.end, log_end: None, broker: None };
        self.scheduler.event(self.now, Event::Records(fetched));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Fetch(entries) => {
                for (key, gap) in entries {
                    self.log.insert(self.end + gap, *key);
                    self.end += gap + 1;
                }
                self.fetch();
            }
            Step::Succeed(n) => self.end_job(*n, true),
            Step::Fail(n) => self.end_job(*n, false),
            Step::Wait(millis) => self.now += millis * 1_000_000,
            Step::Answer => self.answer(),
            Step::Crash => {
                (self.scheduler, self.now) = (scheduler(), 0);
                (self.jobs, self.old) = (Vec::new(), Vec::new());
                self.assign();
            }
            Step::Lose => {
                self.old.append(&mut self.jobs);
                self.scheduler.event(self.now, Event::Lost(vec![Partition::new("t", 0)]));
                self.assign();
            }
        }
        self.settle();
    }

    fn end_job(&mut self, n: usize, is_good: bool) {
        let (jobs, is_old) = match self.old.is_empty() || !n.is_multiple_of(3) {
            true => (&mut self.jobs, false),
            false => (&mut self.old, true),
        };
        if jobs.is_empty() {
            return;
        }
        let index = n % jobs.len();
        let Job { refs, records, queue, .. } = jobs.remove(index);
        let offset = records.as_slice()[0].offset;
        if is_good {
            self.ever.insert(offset);
            if !is_old {
                assert!(self.done.insert(offset), "{offset} completes twice");
            }
        }
        let (kind, error) = (FailureKind::Error, BoxError::from("drawn"));
        let failed = Failed { records, completed: 0, kind, error, after: None, is_fatal: false };
        let outcome = if is_good { Outcome::Success } else { Outcome::Failed(Box::new(failed)) };
        let done = Done { refs, queue, is_dead_letter: false, took: 0, traits: Traits::NONE, outcome };
        self.scheduler.done(self.now, done);
    }

    fn answer(&mut self) {
        if let Some(commit) = self.commit.take() {
            self.committed = (commit.offset, commit.metadata);
            let (partition, offset) = (commit.partition, commit.offset);
            self.scheduler.event(self.now, Event::Committed { partition, offset, result: Ok(()) });
        }
    }

    /// What the driver does after each event, and what must be true then.
    fn settle(&mut self) {
        if self.scheduler.is_due(self.now) {
            self.scheduler.tick(self.now);
        }
        let actions: Vec<Action> = self.scheduler.actions().collect();
        for action in actions {
            if let Action::Commit(commit) = action {
                self.check_commit(&commit);
                assert!(self.commit.replace(commit).is_none(), "two commits under way");
            }
        }
        let mut jobs = Vec::new();
        self.scheduler.start(self.now, &mut jobs, 100);
        jobs.into_iter().for_each(|job| self.check_start(job));
        assert!(self.jobs.len() + self.old.len() <= 3, "too many handlers");
        self.check_snapshot();
    }

    /// The first fetched record that is not complete, or what is fetched next.
    fn position(&self) -> i64 {
        self.fetched.difference(&self.done).next().copied().unwrap_or(self.next)
    }

    fn check_commit(&self, commit: &OffsetCommit) {
        assert!(commit.offset <= self.position(), "{} passes {}", commit.offset, self.position());
        assert!(commit.offset >= self.committed.0, "it goes back");
        let expected = Expected { topic_id: [0; 16], base: commit.offset, log_end: i64::MAX };
        let claims: Vec<i64> = offset_map::decode(&commit.metadata, &expected).unwrap().from(0).flatten().collect();
        let wanted: Vec<i64> = self.done.range(commit.offset..).copied().collect();
        assert_eq!(claims, wanted, "the map is not what is complete");
    }

    fn check_start(&mut self, job: Job) {
        assert!(matches!(job.records, Several::One(_)));
        let first = &job.records.as_slice()[0];
        let (offset, key) = (first.offset, self.log[&first.offset]);
        assert!(self.fetched.contains(&offset) && !self.done.contains(&offset), "{offset} is complete");
        let earlier = self.fetched.range(..offset).find(|o| self.log[o] == key && !self.done.contains(o));
        assert_eq!(earlier, None, "{offset} starts before an earlier record of its key");
        let is_busy = self.jobs.iter().chain(&self.old).any(|job| self.log[&job.records.as_slice()[0].offset] == key);
        assert!(!is_busy, "two handlers of a key");
        self.jobs.push(job);
    }

    fn check_snapshot(&self) {
        let snapshot = self.scheduler.snapshot(self.now);
        let (partition, c) = (&snapshot.partitions[0], &snapshot.counters);
        assert_eq!(partition.position, self.position());
        let open = self.fetched.difference(&self.done).count() as u64;
        assert_eq!((partition.incomplete, partition.buffered_records), (open, open as usize));
        assert_eq!(c.fetched, c.succeeded + c.restored + c.dropped + open, "{c:?}");
    }
}

fn record(offset: i64, key: u8) -> Record {
    Record { key: Some(vec![key].into()), ..Record::at(Partition::new("t", 0), offset) }
}

fn cases() -> u32 {
    std::env::var("MAILER_PC_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

#[test]
fn the_scheduler_agrees_with_its_model() {
    let mut runner =
        proptest::test_runner::TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases()) });
    let steps = prop::collection::vec(step(), 1..60);
    let result = runner.run(&steps, |steps| {
        let mut model = Model::new();
        steps.iter().for_each(|step| model.step(step));
        Ok(())
    });
    println!("{} cases", cases());
    result.unwrap_or_else(|failure| panic!("{failure}"));
}
