//! What the hot path costs: [`ValueState::entry`] on keys that are in the cache.
//!
//! `cargo bench -p mailer-state --bench value_state`. Without `--bench`, as a test runs it, small numbers.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

use mailer_core::{Clock, Key, KeyHash, SystemClock};
use mailer_state::testing::MapStore;
use mailer_state::{StateId, ValueState};

fn main() {
    let records = if std::env::args().any(|argument| argument == "--bench") { 50_000_000 } else { 10_000 };
    for keys in [1_000, 100_000, 1_000_000] {
        measure("u64", keys, records, |number| number);
        measure("String", keys, records, |number| format!("customer-{number:08}"));
    }
}

fn measure<K: Key>(name: &str, keys: u64, records: usize, make: impl Fn(u64) -> K) {
    let mut scratch = Vec::new();
    let mut keys: Vec<(KeyHash, K)> =
        (0..keys).map(make).map(|key| (KeyHash::of(&key, &mut scratch).unwrap(), key)).collect();
    let (mut store, mut state) =
        (MapStore::default(), ValueState::<K, u64>::new(StateId { operator: 1, state: 0 }, 1_024));
    for (hash, key) in &keys {
        *state.entry(*hash, key, &mut store).unwrap() = Some(0);
    }
    keys.sort_unstable_by_key(|(hash, _)| hash.0.rotate_left(17)); // no order that caches like

    let clock = SystemClock::default();
    let begin = clock.monotonic();
    for (hash, key) in keys.iter().cycle().take(records) {
        *state.entry(*hash, key, &mut store).unwrap().get_or_insert(0) += 1;
    }
    let nanoseconds = (clock.monotonic() - begin).as_nanos() as f64 / records as f64;
    let millions = 1e3 / nanoseconds;
    println!("{name:>8} keys: {:8} | {nanoseconds:6.1} ns an entry() | {millions:6.1} M/s", keys.len());
}
