//! Memory of open windows: how much the process grows with each, keys and accumulators of eight bytes.
//!
//! `cargo bench -p mailer-operators --bench window_memory`, or `cargo xtask bench window-memory`. Without `--bench`, as a test runs it, small numbers and no
//! judgement. Fails when an open window takes more than the documentation states. Linux only.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

use mailer_core::{KeyHash, Keyed};
use mailer_operators::harness::Harness;
use mailer_operators::{Assigner, Session, Sliding, Tumbling, Windows};
use std::time::Duration;

type Input = Keyed<u64, u64>;

fn main() {
    let (keys, judge) =
        if std::env::args().any(|argument| argument == "--bench") { (1_000_000, true) } else { (1_000, false) };
    let seconds = Duration::from_secs;
    let cases = [
        ("tumbling 10 s, one window a key", grow(Tumbling::of(seconds(10)), keys, 1), 110),
        ("session 10 s, one session a key", grow(Session::gap(seconds(10)), keys, 1), 200),
        ("sliding 60 s / 1 s, 10 panes a key", grow(Sliding::of(seconds(60), seconds(1)), keys / 10, 10), 660),
    ];
    for (name, bytes, stated) in cases {
        println!("{name}: {bytes:.0} bytes a key, {stated} stated");
        assert!(!judge || bytes <= f64::from(stated), "{name} takes more than stated");
    }
}

/// Bytes that the process grows by for each of `keys` with a record in each of the first `seconds`.
fn grow(assigner: impl Assigner, keys: u64, seconds: u64) -> f64 {
    let before = resident();
    let mut harness: Harness<Input, _> = Harness::new(Windows::of(assigner).count("counts")).unwrap();
    let mut scratch = Vec::new();
    for key in 0..keys {
        let hash = KeyHash::of(&key, &mut scratch).unwrap();
        (0..seconds).for_each(|second| harness.record(second as i64 * 1_000, Keyed { hash, key, value: 1 }).unwrap());
    }
    let grown = resident().saturating_sub(before);
    harness.end().unwrap();
    assert!(harness.take_output().len() as u64 >= keys, "all of them were open");
    grown as f64 / keys as f64
}

/// Bytes of memory in use, by the kernel's count.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}
