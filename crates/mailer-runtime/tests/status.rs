//! What a running job says of its checkpoints, its recoveries, its state and its errors.

#![allow(clippy::unwrap_used, reason = "this is a test")]

#[path = "review/target.rs"]
#[allow(dead_code, reason = "a part of it is used here")]
mod target;

use mailer_core::{Batch, Flush, Sink, SinkFactory, WorkerContext};
use mailer_runtime::{
    Blackhole, CheckpointOutcome, CheckpointPhase, Env, FileStorage, Generator, JobState, JobStatus, JobWatch,
    RestartPolicy, Result, Stop,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use target::Target;

/// Looks again and again until what it sees is right.
fn until(job: &JobWatch, what: &str, mut is_right: impl FnMut(&JobStatus) -> bool) -> JobStatus {
    loop {
        let status = job.status();
        if is_right(&status) {
            return status;
        }
        assert!(!status.state.is_over(), "{what}: the job has ended: {status:?}");
        std::thread::yield_now();
    }
}

fn watched(env: Env) -> (Env, std::sync::mpsc::Receiver<JobWatch>) {
    let (sender, watches) = channel();
    (env.observer(move |watch| sender.send(watch).unwrap()), watches)
}

#[test]
fn checkpoints_and_state_are_told_phase_by_phase() {
    let folder = tempfile::tempdir().unwrap();
    let env = Env::new("told").workers(2).checkpointing(Duration::from_millis(20), FileStorage::new(folder.path()));
    let (env, watches) = watched(env);
    env.source("numbers", Generator::new(|n| n).rate(50_000.0))
        .key_by(|n| n % 100)
        .aggregate("counts", || 0u64, |count, _| *count += 1, |key, count| (*key, *count))
        .sink("out", Blackhole);
    let job = env.start().unwrap();
    let watch = watches.recv().unwrap();
    let status = until(&watch, "four checkpoints and all keys", |status| {
        status.completed >= 4 && status.state_sizes.iter().any(|state| state.entries == 100)
    });
    assert_eq!(status.checkpoints[0].kind, "initial");
    let done: Vec<_> = status.checkpoints.iter().filter(|it| it.outcome == CheckpointOutcome::Completed).collect();
    for checkpoint in &done {
        let phases: Vec<_> = checkpoint.phases.iter().map(|(phase, _)| *phase).collect();
        assert_eq!(phases, CheckpointPhase::ALL, "{checkpoint:?}");
        assert!(checkpoint.took() > Duration::ZERO && checkpoint.waits_for.is_empty());
    }
    let last = done.last().unwrap();
    assert!(last.kind == "periodic" && last.state_bytes > 0 && last.started.0 > 0, "{last:?}");
    assert_eq!(status.state_sizes.len(), 1);
    assert_eq!(status.state_sizes[0].operator.as_deref(), Some("counts"));
    // Each of the hundred keys was asked for at the backend once; every later look-up found it.
    let [lookups] = status.lookups.as_slice() else { panic!("{:?}", status.lookups) };
    assert!(lookups.operator == "counts" && lookups.misses == 100 && lookups.hits > 100, "{lookups:?}");
    let flushing: Vec<_> = status.stages.iter().map(|stage| !stage.flushing.is_zero()).collect();
    assert_eq!(flushing, [false, true], "only the keyed stage writes state back");
    until(&watch, "how far it has read", |status| {
        status.sources[0].splits.iter().all(|split| split.position.is_some_and(|position| position > 0))
    });
    let plan = watch.plan();
    assert_eq!(plan.edges[0].name, status.edges[0].name);
    assert!(status.edges[0].records > 0);
    let before = status.last_completed;
    watch.request_savepoint().unwrap();
    until(&watch, "a savepoint", |status| status.checkpoints.iter().any(|it| it.kind == "savepoint"));
    watch.drain();
    job.wait().unwrap();
    let end = watch.status();
    assert_eq!((end.state, end.checkpoints.last().unwrap().kind), (JobState::Finished, "final"));
    assert!(end.last_completed > before);
    assert!(watch.request_checkpoint().unwrap_err().to_string().contains("ended"));
}

#[test]
fn a_recovery_says_what_it_started_from_and_after_what() {
    let folder = tempfile::tempdir().unwrap();
    let fail = Arc::new(AtomicBool::new(false));
    let restart = RestartPolicy::FixedDelay { delay: Duration::from_millis(10), attempts: 1 };
    let env = Env::new("again").workers(1).restart(restart);
    let (env, watches) = watched(env.checkpointing(Duration::from_millis(20), FileStorage::new(folder.path())));
    let failing = fail.clone();
    env.source("numbers", Generator::new(|n| n).rate(10_000.0))
        .map(move |n| if failing.swap(false, SeqCst) { panic!("out of luck") } else { n })
        .sink("out", Blackhole);
    let job = env.start().unwrap();
    let watch = watches.recv().unwrap();
    until(&watch, "checkpoints", |status| status.completed >= 3);
    fail.store(true, SeqCst);
    let status =
        until(&watch, "a recovery", |status| status.recoveries.len() == 2 && status.state == JobState::Running);
    let [first, second] = status.recoveries.as_slice() else { panic!("{:?}", status.recoveries) };
    assert_eq!((first.from, &first.after), (None, &None));
    assert!(second.from.is_some() && second.took > Duration::ZERO && second.at >= first.at, "{second:?}");
    let after = second.after.as_ref().unwrap();
    assert!(after.contains("out of luck") && after.contains("stage numbers[0]"), "{after}");
    assert_eq!((status.errors.len(), status.errors[0].of), (1, "run"));
    assert_eq!(status.errors[0].kind, mailer_runtime::ErrorKind::UserFunction);
    assert_eq!(status.restarts, 1);
    job.stop(Stop::Now).unwrap();
    job.wait().unwrap();
}

/// A sink whose flush does not return while it is shut.
#[derive(Clone, Default)]
struct Stuck(Arc<(Mutex<bool>, Condvar, AtomicU64)>);

impl Stuck {
    fn set(&self, shut: bool) {
        *self.0.0.lock().unwrap() = shut;
        self.0.1.notify_all();
    }
}

impl SinkFactory<u64> for Stuck {
    type Sink = Stuck;

    fn build(&self, _: &WorkerContext) -> Result<Stuck> {
        Ok(self.clone())
    }

    fn describe(&self) -> String {
        "stuck".into()
    }
}

impl Sink<u64> for Stuck {
    fn write(&mut self, batch: &mut Batch<u64>) -> Result<()> {
        self.0.2.fetch_add(batch.len() as u64, SeqCst);
        batch.clear();
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        let gate = self.0.clone();
        Ok(Flush::Pending(Box::new(move || {
            drop(gate.1.wait_while(gate.0.lock().unwrap(), |shut| *shut).unwrap());
            Ok(())
        })))
    }
}

#[test]
fn a_checkpoint_that_does_not_finish_names_what_it_waits_for() {
    let (folder, sink) = (tempfile::tempdir().unwrap(), Stuck::default());
    let env = Env::new("stuck").workers(1);
    let (env, watches) = watched(env.checkpointing(Duration::from_millis(20), FileStorage::new(folder.path())));
    env.source("numbers", Generator::new(|n| n).rate(10_000.0)).sink("out", sink.clone());
    let job = env.start().unwrap();
    let watch = watches.recv().unwrap();
    until(&watch, "a checkpoint", |status| status.completed >= 2);
    sink.set(true);
    let status = until(&watch, "one that waits", |status| {
        status.checkpoints.last().is_some_and(|last| !last.waits_for.is_empty() && last.took().as_millis() > 250)
    });
    let waiting = status.checkpoints.last().unwrap();
    assert_eq!(waiting.outcome, CheckpointOutcome::Running);
    assert_eq!(waiting.waits_for, ["sink of numbers[0], which flushes"]);
    assert!(waiting.phase(CheckpointPhase::Snapshot).unwrap() > Duration::from_millis(200), "{waiting:?}");
    sink.set(false);
    let id = waiting.id;
    until(&watch, "its end", |status| status.last_completed >= Some(id));
    job.stop(Stop::Drain).unwrap();
    job.wait().unwrap();
}

#[test]
fn a_target_that_is_down_is_named_and_its_tries_are_counted() {
    let (folder, target) = (tempfile::tempdir().unwrap(), Target::default().named("ledger"));
    let env = Env::new("published").workers(1);
    let (env, watches) = watched(env.checkpointing(Duration::from_millis(20), FileStorage::new(folder.path())));
    env.source("numbers", Generator::new(|n| n).rate(10_000.0)).sink("out", target.clone());
    let job = env.start().unwrap();
    let watch = watches.recv().unwrap();
    let status = until(&watch, "a publish", |status| status.publishes.iter().any(|it| it.transactions >= 2));
    assert_eq!(status.publishes[0].target, "memory ledger");
    assert!(status.publishes[0].records > 0 && status.publishes[0].bytes > 0 && status.publishes[0].retries == 0);
    target.with(|shown| shown.is_down = true);
    let status = until(&watch, "a publish that waits", |status| {
        let waits = status.checkpoints.iter().any(|it| it.waits_for == ["target memory ledger"]);
        waits && status.publishes[0].retries >= 2
    });
    let error = status.errors.last().unwrap();
    assert_eq!((error.of, error.message.as_str()), ("publish", "target memory ledger: the target is down"));
    target.with(|shown| shown.is_down = false);
    let before = status.publishes[0].transactions;
    until(&watch, "it goes on", |status| status.publishes[0].transactions > before + 1);
    job.stop(Stop::Drain).unwrap();
    job.wait().unwrap();
    let status = watch.status();
    assert_eq!(status.publishes[0].records, target.records().len() as u64);
    let output: u64 = status.checkpoints.iter().map(|checkpoint| checkpoint.output_records).sum();
    assert!(output > 0);
}
