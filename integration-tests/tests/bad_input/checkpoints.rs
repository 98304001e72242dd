//! What a checkpoint folder says decides: a lock, damage, another number of workers, another state backend.

use crate::life::{Counting, lines};
use mailer_core::ErrorKind;
use mailer_runtime::{Collect, Env, Generator, MemoryBackend, Stop};
use mailer_state_rocksdb::RocksDbBackend;
use std::fs;
use std::path::Path;
use std::time::Duration;

fn rocksdb(job: &Counting) -> Env {
    job.env().state_backend(RocksDbBackend::new(&job.state))
}

/// A job on RocksDB that has counted to 100.
fn lived() -> Counting {
    let job = Counting::new();
    job.live(rocksdb(&job), 100).began();
    assert_eq!(job.written(), lines(0..100));
    job
}

/// The next life goes on, and counts to 150.
fn goes_on(job: &Counting) {
    assert_eq!(job.written(), [""; 0], "a refused life has written");
    job.live(rocksdb(job), 150).went_on();
    assert_eq!(job.written(), lines(100..150));
}

/// Waits for a job that runs.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let so = xtask::wait::until(Duration::from_secs(60), Duration::from_millis(5), || Ok(so().then_some(())));
    assert!(so.unwrap().is_some(), "waited in vain until {what}");
}

#[test]
fn a_lock_that_is_held_names_its_owner() {
    let job = lived();
    let endless = rocksdb(&job);
    endless
        .source("numbers", Generator::new(|n| n).rate(1_000.0))
        .partitions(1)
        .key_by(crate::life::key)
        .aggregate("counts", || 0u64, |count, _| *count += 1, |_, count| *count)
        .sink("out", Collect::new());
    let owner = endless.start().unwrap();
    until("it owns the folder", || owner.status().recovery.is_some());

    let pid = std::process::id().to_string();
    let folder = job.checkpoints.to_string_lossy();
    job.live(rocksdb(&job), 150).refused(ErrorKind::Refused, &[&folder, &pid, "\"counting\"", "take_over"]);

    owner.stop(Stop::Now).unwrap();
    owner.wait().unwrap();
    goes_on(&job);
}

/// Changes a file, sees the job refused, and mends the file.
fn damaged(job: &Counting, path: &Path, damage: impl FnOnce(&[u8]) -> Vec<u8>, parts: &[&str]) {
    let whole = fs::read(path).unwrap();
    fs::write(path, damage(&whole)).unwrap();
    job.live(rocksdb(job), 150).refused(ErrorKind::Corrupt, parts);
    fs::write(path, whole).unwrap();
}

fn flip_the_middle(whole: &[u8]) -> Vec<u8> {
    flip(whole, whole.len() / 2)
}

fn flip(whole: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    bytes[at] ^= 0x40;
    bytes
}

fn cut_off(whole: &[u8]) -> Vec<u8> {
    whole[..whole.len() - 1].to_vec()
}

#[test]
fn a_damaged_manifest_is_corrupt_and_not_skipped() {
    let job = lived();
    let manifest = job.newest("/manifest");
    let parts = [&*manifest.to_string_lossy(), "not skipped", "backup"];
    damaged(&job, &manifest, flip_the_middle, &parts);
    damaged(&job, &manifest, cut_off, &parts);
    damaged(&job, &manifest, |_| Vec::new(), &parts);
    goes_on(&job);
}

#[test]
fn a_damaged_state_file_is_corrupt() {
    let job = lived();
    let current = job.newest("/CURRENT");
    damaged(&job, &current, flip_the_middle, &["CURRENT"]);
    let table = job.newest(".sst");
    damaged(&job, &table, cut_off, &[&table.to_string_lossy()]);
    goes_on(&job);
}

/// Length and time are those of the whole table: it is found by RocksDB's own checksums, when the block is read.
#[test]
fn a_table_with_a_flipped_bit_is_corrupt_when_it_is_read() {
    let job = lived();
    let table = job.newest(".sst");
    let whole = fs::read(&table).unwrap();
    fs::write(&table, flip(&whole, 10)).unwrap();
    let error = job.live(rocksdb(&job), 150).result.unwrap_err();
    println!("{error:?}\n");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    job.written(); // of keys in whole blocks
    fs::write(&table, whole).unwrap();
    goes_on(&job);
}

#[test]
fn another_number_of_workers_is_refused_naming_both() {
    let job = lived();
    let parts = ["\"counts\"", "had 2 workers", "has 3 now", "partitions(2)"];
    job.live(rocksdb(&job).workers(3), 150).refused(ErrorKind::Refused, &parts);
    job.live(rocksdb(&job).workers(1), 150).refused(ErrorKind::Refused, &["had 2 workers", "has 1 now"]);
    goes_on(&job);
}

#[test]
fn a_checkpoint_of_another_state_backend_is_refused_naming_both() {
    let job = lived();
    job.live(job.env().state_backend(MemoryBackend), 150)
        .refused(ErrorKind::Refused, &["\"rocksdb\"", "\"memory\"", ".state_backend("]);
    goes_on(&job);

    let job = Counting::new();
    job.live(job.env(), 100).began();
    job.live(rocksdb(&job), 150).refused(ErrorKind::Refused, &["\"memory\"", "\"rocksdb\"", ".state_backend("]);
    assert_eq!(job.written(), lines(0..100));
    job.live(job.env(), 150).went_on();
    assert_eq!(job.written(), lines(100..150));
}
