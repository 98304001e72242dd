//! Found by a review that tried to break the engine: every test here failed once, and says for whom.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod target;

use mailer_checkpoint::CheckpointStorage;
use mailer_core::{Batch, Flush, Polled, SplitId, StartAt, WorkerContext};
use mailer_runtime::testing::run_seeded;
use mailer_runtime::{
    Collect, Env, ErrorKind, FileStorage, Generator, Job, JobEvent, JobState, Result, Sink, SinkFactory, SliceSource,
    Source, SourceFactory, Stop,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use target::{HidesOnce, Target};

const HOUR: Duration = Duration::from_secs(3_600);

/// What `run` returns; a failure when it hangs.
fn soon<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    #[expect(clippy::disallowed_methods, reason = "the test owns the thread that may hang")]
    std::thread::spawn(move || done.send(run()));
    result.recv_timeout(Duration::from_secs(20)).expect("hangs")
}

/// Sends what the job tells its host.
fn events(env: Env) -> (Env, mpsc::Receiver<JobEvent>) {
    let (sender, receiver) = mpsc::channel();
    let env = env.listener(move |event| {
        let _test_is_over = sender.send(event.clone());
    });
    (env, receiver)
}

fn until(events: &mpsc::Receiver<JobEvent>, wanted: impl Fn(&JobEvent) -> bool) {
    while !wanted(&events.recv_timeout(Duration::from_secs(20)).expect("it does not happen")) {}
}

fn until_running(events: &mpsc::Receiver<JobEvent>) {
    until(events, |event| matches!(event, JobEvent::Running));
}

fn stop(job: Job, how: Stop) {
    job.stop(how).unwrap();
    soon(|| job.wait()).unwrap();
}

// Panics outside of a task.

struct PanicsInFlush;

impl Sink<u64> for PanicsInFlush {
    fn write(&mut self, batch: &mut Batch<u64>) -> Result<()> {
        batch.clear();
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        Ok(Flush::Pending(Box::new(|| panic!("the flush gave up"))))
    }
}

impl SinkFactory<u64> for PanicsInFlush {
    type Sink = Self;

    fn build(&self, _: &WorkerContext) -> Result<Self> {
        Ok(Self)
    }

    fn describe(&self) -> String {
        "panics".into()
    }
}

/// The report of the job was waited for without end.
#[test]
fn a_panic_beside_the_workers_ends_the_job() {
    let error = soon(|| {
        let env = Env::new("panicking");
        env.source("numbers", SliceSource::new(0..10u64)).sink("out", PanicsInFlush);
        env.execute().unwrap_err()
    });
    assert!(error.to_string().contains("the flush gave up"), "{error}");
}

/// The supervisor died, its workers went on reading and writing, and whoever asked for a checkpoint waited for ever.
#[test]
fn a_panicking_listener_ends_the_job_and_leaves_nothing_running() {
    let folder = tempfile::tempdir().unwrap();
    let alive = Arc::new(());
    let token = alive.clone();
    let env = Env::new("panicking").checkpointing(HOUR, FileStorage::new(folder.path())).listener(|event| {
        if matches!(event, JobEvent::Completed { initial: false, .. }) {
            panic!("the listener gave up");
        }
    });
    env.source("numbers", Generator::new(|n| n).rate(10_000.0))
        .map(move |n| (n, Arc::strong_count(&token)))
        .sink("out", Collect::new());
    let job = Arc::new(env.start().unwrap());
    while job.status().state != JobState::Running {
        std::thread::yield_now();
    }
    let asked = job.clone();
    soon(move || asked.checkpoint()).ok();
    let asked = job.clone();
    soon(move || asked.checkpoint()).unwrap_err();
    let job = Arc::into_inner(job).unwrap();
    let error = soon(|| job.wait()).unwrap_err();
    assert!(error.to_string().contains("the listener gave up"), "{error}");
    assert_eq!(Arc::strong_count(&alive), 1, "a worker still runs");
}

// State and positions.

/// `count` ones, counted by every operator named.
fn counting(folder: &Path, count: u64, operators: &[&str]) -> (Env, BTreeMap<String, Collect<u64>>) {
    let env = Env::new("counting").workers(1).checkpointing(HOUR, FileStorage::new(folder));
    let numbers = env.source("numbers", Generator::new(|_| 1u64).count(count)).branch();
    let mut outs = BTreeMap::new();
    for operator in operators {
        let out = Collect::new();
        numbers.clone().key_by(|_| 0u64).reduce(operator, |a, b| *a += b).sink(&format!("{operator}-out"), out.clone());
        outs.insert((*operator).to_owned(), out);
    }
    (env, outs)
}

/// Ids of dropped operators were given out again one start later, and the new operator found the state of the old one.
#[test]
fn a_new_operator_never_finds_the_state_of_a_dropped_one() {
    for newcomer in ["c", "b"] {
        let folder = tempfile::tempdir().unwrap();
        counting(folder.path(), 10, &["a", "b"]).0.execute().unwrap();
        counting(folder.path(), 10, &["a"]).0.allow_dropped(["b"]).execute().unwrap();
        let (env, outs) = counting(folder.path(), 12, &["a", newcomer]);
        env.execute().unwrap();
        assert_eq!(outs["a"].take(), [11, 12]);
        assert_eq!(outs[newcomer].take(), [1, 2], "\"{newcomer}\" is new and begins empty");
    }
}

/// A reduce became an aggregate of the same name, and its accumulator was decoded out of the bytes of the old values.
#[test]
fn an_operator_that_keeps_something_else_now_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    counting(folder.path(), 10, &["a"]).0.execute().unwrap();
    let env = Env::new("counting").workers(1).checkpointing(HOUR, FileStorage::new(folder.path()));
    env.source("numbers", Generator::new(|_| 1u64).count(12))
        .key_by(|_| 0u64)
        .aggregate("a", || 0u64, |sum, one| *sum += one, |_, sum| *sum)
        .sink("a-out", Collect::new());
    let error = env.execute().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    for part in ["\"a\"", "value", "accumulator"] {
        assert!(error.to_string().contains(part), "{part} is missing in: {error}");
    }
}

/// Never has a record; remembers where it was told to start.
#[derive(Clone, Default)]
struct Silent(Arc<Mutex<Vec<StartAt<u64>>>>);

impl SourceFactory for Silent {
    type Source = Self;

    fn build(&self, _: &WorkerContext) -> Result<Self> {
        Ok(self.clone())
    }

    fn describe(&self) -> String {
        "silent".into()
    }
}

impl Source for Silent {
    type Item = u64;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok(vec![SplitId::new("only", 0)])
    }

    fn assign(&mut self, _: &SplitId, start: StartAt<u64>) -> Result<u64> {
        self.0.lock().unwrap().push(start);
        Ok(7)
    }

    fn poll(&mut self, _: &mut Batch<u64>) -> Result<Polled> {
        Ok(Polled::Nothing { caught_up: true })
    }

    fn position(&self, _: &SplitId) -> u64 {
        7
    }
}

/// A source added to a job that has checkpoints, starting at the end of its topic: a crash before the next checkpoint
/// skipped what had arrived meanwhile, because nothing held the offset it had started from.
#[test]
fn where_a_new_source_starts_is_durable_before_its_first_record() {
    let folder = tempfile::tempdir().unwrap();
    let added = Silent::default();
    for with_added in [false, true, true] {
        let env = Env::new("growing").workers(1).checkpointing(HOUR, FileStorage::new(folder.path()));
        let (env, events) = events(env);
        env.source("old", Silent::default()).sink("old-out", Collect::new());
        if with_added {
            env.source("added", added.clone()).sink("added-out", Collect::new());
        }
        let job = env.start().unwrap();
        until_running(&events);
        stop(job, Stop::Now);
    }
    assert_eq!(*added.0.lock().unwrap(), [StartAt::Configured, StartAt::Position(7)]);
}

// Recovery and its targets.

fn publishing(storage: impl CheckpointStorage, target: &Target, interval: Duration) -> (Env, mpsc::Receiver<JobEvent>) {
    publishing_through("out", storage, target, interval)
}

fn publishing_through(
    sink: &str,
    storage: impl CheckpointStorage,
    target: &Target,
    interval: Duration,
) -> (Env, mpsc::Receiver<JobEvent>) {
    let (env, events) = events(Env::new("publishing").workers(1).checkpointing(interval, storage));
    env.source("numbers", Generator::new(|n| n).rate(10_000.0)).sink(sink, target.clone());
    (env, events)
}

/// Recovery did not hear of it and went on trying to publish for five minutes.
#[test]
fn stop_now_ends_a_recovery_that_waits_for_its_target() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::default();
    let often = Duration::from_millis(10);
    let (env, events) = publishing(FileStorage::new(folder.path()), &target, often);
    let job = env.start().unwrap();
    until_running(&events);
    target.with(|shown| shown.is_down = true);
    while target.with(|shown| shown.refused) == 0 {
        std::thread::yield_now();
    }
    stop(job, Stop::Now);

    let (env, _events) = publishing(FileStorage::new(folder.path()), &target, often);
    let job = env.start().unwrap();
    job.stop(Stop::Now).unwrap();
    let error = soon(|| job.wait()).unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");

    target.with(|shown| shown.is_down = false);
    let (env, events) = publishing(FileStorage::new(folder.path()), &target, often);
    let job = env.start().unwrap();
    until_running(&events);
    stop(job, Stop::Drain);
    let records = target.records();
    assert_eq!(records, (0..records.len() as u64).collect::<Vec<_>>(), "visible once, in order");
}

/// Under a seed no time passes while a job waits, so a target that stays down was tried without end.
#[test]
fn a_target_that_stays_down_is_given_up_under_a_seed_too() {
    let outcome = soon(|| {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::default();
        target.with(|shown| shown.is_down = true);
        let env = Env::new("seeded").workers(1).checkpointing(HOUR, FileStorage::new(folder.path()));
        env.source("numbers", SliceSource::new(0..10u64)).sink("out", target);
        run_seeded(env, 1, None).unwrap().outcome
    });
    assert!(outcome.unwrap_err().contains("gave up after"));
}

/// It was refused, although the target is the same and nothing of it is lost.
#[test]
fn a_sink_that_is_renamed_goes_on_at_its_target() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::default();
    let often = Duration::from_millis(10);
    for (sink, how) in [("out", Stop::Now), ("renamed", Stop::Now), ("out", Stop::Drain)] {
        let (env, events) = publishing_through(sink, FileStorage::new(folder.path()), &target, often);
        let job = env.start().unwrap();
        until(&events, |event| matches!(event, JobEvent::Completed { initial: false, .. }));
        stop(job, how);
    }
    let records = target.records();
    assert_eq!(records, (0..records.len() as u64).collect::<Vec<_>>(), "visible once, in order");
}

/// Not broken, and new: what was decided under the old name is published there, and the rest under the new one.
#[test]
fn output_decided_before_a_target_was_renamed_appears_under_its_old_name() {
    let folder = tempfile::tempdir().unwrap();
    let old = Target::default().named("old");
    let new = old.named("new");
    let often = Duration::from_millis(10);
    let (env, events) = publishing(FileStorage::new(folder.path()), &old, often);
    let job = env.start().unwrap();
    until_running(&events);
    until(&events, |event| matches!(event, JobEvent::Completed { initial: false, .. }));
    old.with(|shown| shown.is_down = true);
    while old.with(|shown| shown.refused) == 0 {
        std::thread::yield_now();
    }
    stop(job, Stop::Now);
    old.with(|shown| shown.is_down = false);
    for target in [&new, &new, &new] {
        let (env, events) = publishing(FileStorage::new(folder.path()), target, often);
        let job = env.start().unwrap();
        until(&events, |event| matches!(event, JobEvent::Completed { .. }));
        stop(job, if new.records().is_empty() { Stop::Drain } else { Stop::Now });
    }
    let records = [old.records(), new.records()].concat();
    assert!(!old.records().is_empty() && !new.records().is_empty());
    assert_eq!(records, (0..records.len() as u64).collect::<Vec<_>>(), "visible once, in order");
}

/// A take-over was refused as "the checkpoints are older than the output" because its owner was still at work.
#[test]
fn a_checkpoint_that_is_published_while_recovery_looks_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::default();
    let (env, events) = publishing(FileStorage::new(folder.path()), &target, HOUR);
    let job = env.start().unwrap();
    until_running(&events);
    while job.status().sinks.iter().all(|sink| sink.records == 0) {
        std::thread::yield_now();
    }
    job.checkpoint().unwrap();
    stop(job, Stop::Drain);

    let (env, events) = publishing(HidesOnce(FileStorage::new(folder.path())), &target, HOUR);
    let job = env.start().unwrap();
    until_running(&events);
    stop(job, Stop::Drain);
    let records = target.records();
    assert_eq!(records, (0..records.len() as u64).collect::<Vec<_>>(), "visible once, in order");
}

/// A checkpoint that really is missing is still refused.
#[test]
fn output_newer_than_the_checkpoints_is_refused() {
    let (folder, older) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = Target::default();
    for root in [folder.path(), older.path()] {
        let (env, events) = publishing(FileStorage::new(root), &target, HOUR);
        let job = env.start_fresh(true).start().unwrap();
        until_running(&events);
        while job.status().sinks.iter().all(|sink| sink.records == 0) {
            std::thread::yield_now();
        }
        stop(job, Stop::Drain);
    }
    let (env, _events) = publishing(FileStorage::new(folder.path()), &target, HOUR);
    let job = env.start().unwrap();
    assert_eq!(soon(|| job.wait()).unwrap_err().kind(), ErrorKind::Refused);
}

// Everything tight at once.

/// Sums per key over a union, through small rings and a small staging budget, with checkpoints that time out.
fn tight(folder: &Path, target: &Target, turn: u64) -> (Env, mpsc::Receiver<JobEvent>) {
    let env = Env::new("tight")
        .workers(3)
        .checkpointing(Duration::from_millis(1), FileStorage::new(folder))
        .checkpoint_timeout(if turn == 0 { HOUR } else { Duration::from_millis(3 + turn % 3) })
        .tolerable_failures(1_000_000)
        .staging_budget(400)
        .edge_capacity(1, 1);
    let (env, events) = events(env);
    let even = env.source("even", Generator::new(|n| 2 * n)).map(|n| n);
    let odd = env.source("odd", Generator::new(|n| 2 * n + 1).rate(20_000.0)).partitions(1).rebalance();
    let silent = env.source("silent", Silent::default()).partitions(2);
    even.union(odd)
        .union(silent)
        .rebalance()
        .key_by(|n| n % 5)
        .aggregate("counts", || 0u64, |count, _| *count += 1, |key, count| count * 5 + key)
        .sink("out", target.clone());
    (env, events)
}

#[test]
fn cancelled_checkpoints_full_rings_and_a_full_budget_lose_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::default();
    for turn in 0..12 {
        let (env, events) = tight(folder.path(), &target, turn);
        let job = env.start().unwrap();
        until(&events, |event| matches!(event, JobEvent::Completed { initial: false, .. }));
        stop(job, if turn % 2 == 0 { Stop::Now } else { Stop::Drain });
    }
    let mut counts = [0; 5];
    for record in &target.records() {
        let (key, count) = ((record % 5) as usize, record / 5);
        counts[key] += 1;
        assert_eq!(count, counts[key], "key {key}: every count once, in order");
    }
}

// Publishing without running.

/// A decided checkpoint whose output a crash kept from being visible: `Env::publish` makes it visible and reads nothing.
#[test]
fn what_was_decided_is_published_without_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::default().named("out");
    let env = |from: u64| {
        let env = Env::new("job").workers(1).checkpointing(HOUR, FileStorage::new(folder.path()));
        env.source("numbers", SliceSource::new(from..from + 5)).sink("out", target.clone());
        env
    };
    assert_eq!(env(0).publish().unwrap(), None, "no checkpoint, nothing to do");
    target.with(|shown| shown.is_down = true);
    let job = env(0).start().unwrap();
    // The last checkpoint is decided, and its publish is refused again and again.
    let refused = || target.with(|shown| shown.refused > 0);
    while !refused() && !job.is_finished() {
        std::thread::yield_now();
    }
    job.stop(Stop::Now).unwrap();
    let _stopped_or_failed = soon(|| job.wait());
    assert_eq!(target.records(), [] as [u64; 0]);
    target.with(|shown| shown.is_down = false);
    let (_, rolled_forward) = env(100).publish().unwrap().unwrap();
    assert!(rolled_forward);
    assert_eq!(target.records(), [0, 1, 2, 3, 4], "what was decided, and nothing of the new source");
    let (_, again) = env(100).publish().unwrap().unwrap();
    assert!(!again, "it is visible now");
    assert_eq!(target.records(), [0, 1, 2, 3, 4]);
    let without = Env::new("job");
    without.source("numbers", SliceSource::new([1u64])).sink("out", Collect::new());
    assert_eq!(without.publish().unwrap_err().kind(), ErrorKind::InvalidPlan);
}
