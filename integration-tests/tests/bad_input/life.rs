//! A job that counts, run again and again over one checkpoint folder: a life that went on can be told from one that began
//! anew by its first count.

use mailer_core::{ErrorKind, Result};
use mailer_runtime::{Collect, Env, FileStorage, Generator, JobEvent, RecoveryReport};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Checkpoints are taken at the end of input only.
pub(crate) const NEVER: Duration = Duration::from_secs(3_600);

const KEYS: u64 = 3;

/// What a number, as the `count`-th of its key, becomes.
pub(crate) fn line(key: u64, count: u64) -> String {
    format!("{key}:{count}")
}

/// Everything a job writes about these numbers when it knows all smaller ones.
pub(crate) fn lines(numbers: Range<u64>) -> Vec<String> {
    sorted(numbers.map(|number| line(number % KEYS, number / KEYS + 1)).collect())
}

pub(crate) fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// The key of a number.
pub(crate) fn key(number: &u64) -> u64 {
    number % KEYS
}

/// One run of a job, over.
pub(crate) struct Life {
    pub(crate) result: Result<()>,
    /// What it started from; `None` when it was refused before.
    pub(crate) recovery: Option<RecoveryReport>,
}

/// Runs a job to its end.
pub(crate) fn live(env: Env, pipeline: impl FnOnce(&Env)) -> Life {
    let recovery = Arc::new(Mutex::new(None));
    let heard = recovery.clone();
    let env = env.listener(move |event| {
        if let JobEvent::Recovered(report) = event {
            *heard.lock().unwrap() = Some(report.clone());
        }
    });
    pipeline(&env);
    let result = env.execute();
    let recovery = recovery.lock().unwrap().take();
    Life { result, recovery }
}

impl Life {
    /// Not one record was read, and the message has all of `parts`.
    pub(crate) fn refused(self, kind: ErrorKind, parts: &[&str]) {
        let error = self.result.expect_err("accepted");
        println!("{error:?}\n");
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is missing in: {text}"));
        assert_eq!(self.recovery, None, "it ran");
    }

    /// It ended well, and had begun with a checkpoint.
    pub(crate) fn went_on(self) {
        self.result.unwrap();
        let from = self.recovery.and_then(|report| report.from);
        assert!(from.is_some(), "it started fresh");
    }

    /// It ended well, and had begun without one.
    pub(crate) fn began(self) {
        self.result.unwrap();
        assert_eq!(self.recovery.unwrap().from, None);
    }
}

/// Counts numbers per remainder, into memory.
pub(crate) struct Counting {
    _temporary: tempfile::TempDir,
    pub(crate) checkpoints: PathBuf,
    pub(crate) state: PathBuf,
    out: Collect<String>,
}

impl Counting {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let path = |name| temporary.path().join(name);
        Self { checkpoints: path("checkpoints"), state: path("state"), out: Collect::new(), _temporary: temporary }
    }

    pub(crate) fn env(&self) -> Env {
        Env::new("counting").workers(2).checkpointing(NEVER, FileStorage::new(&self.checkpoints))
    }

    /// All numbers below `until`; those of earlier lives are not read again.
    pub(crate) fn live(&self, env: Env, until: u64) -> Life {
        live(env, |env| count(env, until, &self.out))
    }

    /// What was written since the last look.
    pub(crate) fn written(&self) -> Vec<String> {
        sorted(self.out.take())
    }

    /// The only file below the checkpoints whose name ends so and which is the last in order.
    pub(crate) fn newest(&self, name_end: &str) -> PathBuf {
        let mut files: Vec<_> = walk(&self.checkpoints);
        files.retain(|path| path.to_string_lossy().ends_with(name_end));
        files.sort();
        files.pop().unwrap()
    }
}

pub(crate) fn count(env: &Env, until: u64, out: &Collect<String>) {
    env.source("numbers", Generator::new(|n| n).count(until))
        .partitions(1)
        .key_by(key)
        .aggregate("counts", || 0, |count: &mut u64, _| *count += 1, |key, count| line(*key, *count))
        .sink("out", out.clone());
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
