//! A job's life on the thread driver: checkpoints, drain, resume, restart, failure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_runtime::{
    Collect, Env, ErrorKind, FileStorage, Generator, JobEvent, JobState, RestartPolicy, SliceSource, Stop,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Waits for a condition; a failure here means the job is stuck.
#[derive(Clone, Default)]
struct Flag(Arc<(Mutex<bool>, Condvar)>);

impl Flag {
    fn set(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let set = self.0.0.lock().unwrap();
        let (set, _) = self.0.1.wait_timeout_while(set, Duration::from_secs(60), |set| !*set).unwrap();
        assert!(*set, "not within a minute");
    }
}

/// Sums numbers per remainder, endless at 50,000 a second, with a checkpoint every 20 ms.
fn endless(folder: &Path, out: &Collect<(u64, u64)>, completed: Option<Flag>) -> Env {
    let env = Env::new("endless")
        .workers(2)
        .checkpointing(Duration::from_millis(20), FileStorage::new(folder))
        .listener(move |event| {
            if let (JobEvent::Completed { initial: false, .. }, Some(flag)) = (event, &completed) {
                flag.set();
            }
        });
    env.source("numbers", Generator::new(|n| n).rate(50_000.0))
        .key_by(|n| n % 7)
        .aggregate("counts", || 0u64, |count, _| *count += 1, |key, count| (*key, *count))
        .sink("out", out.clone());
    env
}

/// The highest count of every key.
fn totals(out: &Collect<(u64, u64)>) -> [u64; 7] {
    out.take().into_iter().fold([0; 7], |mut totals, (key, count)| {
        totals[key as usize] = totals[key as usize].max(count);
        totals
    })
}

#[test]
fn a_drained_job_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (out, completed) = (Collect::new(), Flag::default());
    let job = endless(folder.path(), &out, Some(completed.clone())).start().unwrap();
    completed.wait();
    job.stop(Stop::Drain).unwrap();
    job.wait().unwrap();
    let first = totals(&out);
    assert!(first.iter().sum::<u64>() > 0);

    let completed = Flag::default();
    let job = endless(folder.path(), &out, Some(completed.clone())).start().unwrap();
    completed.wait();
    let recovery = job.status().recovery.unwrap();
    assert_eq!(recovery.restored, ["numbers", "counts"]);
    job.stop(Stop::Drain).unwrap();
    job.wait().unwrap();
    let records: u64 = totals(&out).iter().sum();
    assert!(records > first.iter().sum(), "the counts go on from {first:?}");
}

#[test]
fn a_checkpoint_can_be_asked_for_and_a_savepoint_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let out = Collect::new();
    let job = endless(folder.path(), &out, None).start().unwrap();
    let running = || job.status().state == JobState::Running;
    while !running() {
        std::thread::yield_now();
    }
    let savepoint = job.savepoint().unwrap();
    let later = (0..4).map(|_| job.checkpoint().unwrap()).max().unwrap();
    assert!(later > savepoint);
    job.stop(Stop::Now).unwrap();
    job.wait().unwrap();
    let kept: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with(&format!("{savepoint}-")))
        .collect();
    assert_eq!(kept.len(), 1, "the savepoint is still there");
}

#[test]
fn a_job_that_fails_now_and_then_is_restarted_and_its_state_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let (out, failures) = (Collect::new(), Arc::new(AtomicU64::new(0)));
    let env = Env::new("restarting")
        .workers(2)
        .checkpointing(Duration::from_millis(5), FileStorage::new(folder.path()))
        .restart(RestartPolicy::FixedDelay { delay: Duration::ZERO, attempts: 3 });
    let count = failures.clone();
    env.source("numbers", Generator::new(|n| n).count(60_000).rate(200_000.0))
        .try_map(move |n| {
            // Fails at three places, each once.
            let fails = [15_000, 30_000, 45_000].contains(&n) && count.load(SeqCst) < n / 15_000;
            if fails {
                count.fetch_add(1, SeqCst);
                return Err("as planned");
            }
            Ok(n)
        })
        .key_by(|n| n % 7)
        .aggregate("counts", || 0u64, |count, _| *count += 1, |key, count| (*key, *count))
        .sink("out", out.clone());
    env.execute().unwrap();
    assert_eq!(failures.load(SeqCst), 3);
    assert_eq!(totals(&out).iter().sum::<u64>(), 60_000);
}

#[test]
fn a_panic_names_the_operator_and_the_split_and_the_host_lives_on() {
    let out = Collect::new();
    let env = Env::new("panicking");
    env.source("numbers", SliceSource::new(0..10u32))
        .map(|x| if x == 5 { panic!("five is too much") } else { x })
        .named("picky")
        .sink("out", out);
    let error = env.execute().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserFunction);
    let text = error.to_string();
    for part in ["map \"picky\"", "five is too much", "slice-0", "numbers"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[test]
fn a_panic_behind_an_exchange_names_stage_worker_and_time_but_never_the_key() {
    let env = Env::new("panicking");
    env.source("numbers", SliceSource::new(["secret-key".to_string()]))
        .key_by(|name| name.clone())
        .reduce("names", |_, _| ())
        .map(|_| panic!("boom"))
        .sink("out", Collect::<()>::new());
    let text = env.execute().unwrap_err().to_string();
    assert!(text.contains("operator map panicked: boom") && text.contains("event time 0"), "{text}");
    assert!(!text.contains("secret-key"), "{text}");
}

#[test]
fn a_failed_user_function_says_where() {
    let env = Env::new("failing");
    env.source("words", SliceSource::new(["7", "seven"]))
        .try_map(|word| word.parse::<u32>())
        .named("parse")
        .sink("out", Collect::new());
    let error = env.execute().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserFunction);
    assert!(error.to_string().contains("operator try_map \"parse\" failed: invalid digit"), "{error}");
}

#[test]
fn stop_now_leaves_the_newest_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (out, completed) = (Collect::new(), Flag::default());
    let job = endless(folder.path(), &out, Some(completed.clone())).start().unwrap();
    completed.wait();
    job.stop(Stop::Now).unwrap();
    job.wait().unwrap();
    let job = endless(folder.path(), &out, None).start().unwrap();
    while job.status().recovery.is_none() {
        std::thread::yield_now();
    }
    assert!(job.status().recovery.unwrap().from.is_some());
    job.stop(Stop::Now).unwrap();
    job.wait().unwrap();
}

#[test]
fn a_checkpoint_without_checkpointing_is_refused_with_the_way_out() {
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = go_on.clone();
    let env = Env::new("plain");
    env.source("numbers", Generator::new(move |n| (n, wait.load(SeqCst))).rate(1_000.0)).sink("out", Collect::new());
    let job = env.start().unwrap();
    while job.status().state != JobState::Running {
        std::thread::yield_now();
    }
    assert!(job.checkpoint().unwrap_err().to_string().contains(".checkpointing("));
    job.stop(Stop::Drain).unwrap();
    job.wait().unwrap();
}
