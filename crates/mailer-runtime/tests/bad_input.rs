//! Bad input: every error says what to change, and nothing ever starts fresh silently.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_runtime::{Collect, Env, ErrorKind, FileStorage, Result, SliceSource};
use std::path::Path;
use std::time::Duration;

fn refused(outcome: Result<()>, kind: ErrorKind, parts: &[&str]) {
    let error = outcome.expect_err("accepted");
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

fn counting(folder: &Path, operator: &str, workers: u16) -> Env {
    let env = Env::new("counting").checkpointing(Duration::from_secs(60), FileStorage::new(folder));
    env.source("numbers", SliceSource::new(0..100u64))
        .partitions(1)
        .key_by(|n| n % 3)
        .partitions(workers)
        .reduce(operator, |a, b| *a += b)
        .sink("out", Collect::new());
    env
}

#[test]
fn no_source() {
    refused(Env::new("empty").execute(), ErrorKind::InvalidPlan, &["source"]);
}

#[test]
fn no_sink() {
    let env = Env::new("endless");
    let stream = env.source("numbers", SliceSource::new(0..3)).map(|x| x + 1).branch();
    drop(stream);
    refused(env.execute(), ErrorKind::InvalidPlan, &["sink"]);
}

#[test]
fn two_equal_names_and_everything_else_that_is_wrong_at_once() {
    let env = Env::new("names");
    env.source("same", SliceSource::new(0..3)).sink("same", Collect::new());
    env.source("other", SliceSource::new(0..3)).sink("", Collect::new());
    refused(env.execute(), ErrorKind::InvalidPlan, &["same", "empty"]);
}

#[test]
fn a_lock_that_is_held_names_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let env = Env::new("counting").checkpointing(Duration::from_secs(60), FileStorage::new(folder.path()));
    env.source("numbers", mailer_runtime::Generator::new(|n| n).rate(100.0)).sink("out", Collect::new());
    let first = env.start().unwrap();
    while first.status().recovery.is_none() {
        std::thread::yield_now();
    }
    let pid = format!("{}", std::process::id());
    refused(counting(folder.path(), "sum", 1).execute(), ErrorKind::Refused, &[&pid, "take_over"]);
    first.stop(mailer_runtime::Stop::Now).unwrap();
    first.wait().unwrap();
}

#[test]
fn a_damaged_manifest_is_refused_and_never_skipped() {
    let folder = tempfile::tempdir().unwrap();
    counting(folder.path(), "sum", 1).execute().unwrap();
    let mut manifests: Vec<_> = walk(folder.path()).into_iter().filter(|path| path.ends_with("manifest")).collect();
    manifests.sort();
    let newest = manifests.pop().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(&newest, bytes).unwrap();
    refused(counting(folder.path(), "sum", 1).execute(), ErrorKind::Corrupt, &["manifest", "not skipped"]);
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn another_number_of_workers_is_refused_naming_both() {
    let folder = tempfile::tempdir().unwrap();
    counting(folder.path(), "sum", 2).execute().unwrap();
    refused(counting(folder.path(), "sum", 3).execute(), ErrorKind::Refused, &["sum", "had 2 workers", "has 3 now"]);
    counting(folder.path(), "sum", 2).execute().unwrap();
}

#[test]
fn state_without_an_operator_is_refused_unless_it_may_be_dropped() {
    let folder = tempfile::tempdir().unwrap();
    counting(folder.path(), "sum", 1).execute().unwrap();
    refused(counting(folder.path(), "renamed", 1).execute(), ErrorKind::Refused, &["sum", "allow_dropped"]);
    counting(folder.path(), "renamed", 1).allow_dropped(["sum"]).execute().unwrap();
}

#[test]
fn a_root_of_another_job_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    counting(folder.path(), "sum", 1).execute().unwrap();
    let env = Env::new("another").checkpointing(Duration::from_secs(60), FileStorage::new(folder.path()));
    env.source("numbers", SliceSource::new(0..3)).sink("out", Collect::new());
    refused(env.execute(), ErrorKind::Refused, &["counting", "another"]);
}

#[test]
fn a_root_that_is_a_file_is_refused_with_its_path() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_string_lossy().into_owned();
    refused(counting(file.path(), "sum", 1).execute(), ErrorKind::InvalidPlan, &[&path]);
}
