//! The lock between real processes: held while its owner lives, free the moment it is killed.

#![expect(clippy::unwrap_used, reason = "a step of a test that fails ends the test")]

use mailer_checkpoint::manifest::{FORMAT_VERSION, Manifest};
use mailer_checkpoint::{AcquireOptions, Base, CheckpointStorage, FileStorage, Status};
use mailer_core::ErrorKind;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ROOT: &str = "MAILER_TEST_ROOT";

fn options(take_over: bool) -> AcquireOptions {
    AcquireOptions { job: "two".into(), take_over }
}

#[test]
fn a_second_process_is_refused_until_the_first_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let storage = FileStorage::new(folder.path());
    let mut owner = spawn_owner(folder.path());
    let error = storage.acquire(&options(false)).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.message().contains(&format!("pid {} on host ", owner.id())), "{error}");
    drop(storage.acquire(&options(true)).unwrap());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let root = storage.acquire(&options(false)).unwrap();
    assert_eq!(root.epoch().0, 3);
    assert_eq!(root.list().unwrap()[0].status, Status::Prepared);
}

/// This program again, as the first process; returns when that one holds the root.
fn spawn_owner(root: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "the_first_process", "--nocapture"]).env(ROOT, root);
    let mut owner = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("holds the root")), "the other process failed");
    owner
}

#[test]
#[ignore = "the other process of the test above"]
fn the_first_process() {
    let Some(path) = std::env::var_os(ROOT) else { return };
    let root = FileStorage::new(path).acquire(&options(false)).unwrap();
    root.record_base(Base::default()).unwrap();
    let (job, epoch) = ("two".into(), root.epoch().0);
    root.prepare(&Manifest { format_version: FORMAT_VERSION, job, id: 1, epoch, ..Manifest::default() }).unwrap();
    println!("holds the root");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap(); // until the parent kills it, or is gone itself
}
