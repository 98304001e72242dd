//! A job with a million sessions open at once: how much the process grows, checkpoint and state backend included.
//!
//! `cargo bench -p mailer-runtime --bench open_sessions`, or `cargo xtask bench session-memory`. Without `--bench`, as a test
//! runs it, few sessions and no judgement. Fails when it takes more than the guide states. Linux only.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

use mailer_runtime::{Blackhole, Env, FileStorage, Generator, Session, Stop, Watermarks};
use std::sync::mpsc;
use std::time::Duration;

/// Bytes a session that `docs/guide/windows.md` states for a key of eight bytes and a count.
const STATED: f64 = 700.0;
const HOUR: Duration = Duration::from_secs(3_600);

fn main() {
    let judge = std::env::args().any(|argument| argument == "--bench");
    let sessions: u64 = if judge { 1_000_000 } else { 1_000 };
    let folder = tempfile::tempdir().unwrap();
    let before = resident();
    let (read, all_read) = mpsc::channel();

    let env = Env::new("sessions").workers(1).checkpointing(HOUR, FileStorage::new(folder.path()));
    let visitors = Generator::new(move |n| {
        if n + 1 == sessions {
            let _ = read.send(()); // who waits for it may be gone
        }
        n
    });
    // The second source does not end, and its time does not move on: no session can be closed.
    let visitors = env.source("visitors", visitors.count(sessions)).watermarks(Watermarks::monotonic());
    let open = env.source("open", Generator::new(|_| 0).rate(1.0)).watermarks(Watermarks::monotonic());
    visitors.union(open).key_by(|visitor| *visitor).window(Session::gap(HOUR)).count("sessions").sink("out", Blackhole);
    let job = env.start().unwrap();
    all_read.recv().unwrap();

    // A savepoint stands behind all that has been read, so it waits until all sessions are open, and holds them.
    job.savepoint().unwrap();
    let grown = (resident() - before) as f64;
    println!("{sessions} sessions open: {:.0} MB, {:.0} bytes a session", grown / 1e6, grown / sessions as f64);
    println!(
        "open windows, the copy in the state backend and what a checkpoint needs; {STATED} bytes a session stated"
    );
    job.stop(Stop::Now).unwrap();
    job.wait().unwrap();
    assert!(!judge || grown <= STATED * sessions as f64, "more than stated");
}

/// Bytes of memory in use, by the kernel's count.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}
