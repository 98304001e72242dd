//! What a process function costs beside the hand-made operator that does the same.
//!
//! `cargo bench -p mailer-operators --bench process`. Without `--bench`, as a test runs it, small numbers.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

use mailer_core::{Clock, KeyHash, Keyed, Record, Result, SystemClock, Timestamp};
use mailer_operators::harness::Harness;
use mailer_operators::process::{Context, Process, ProcessFunction, States, Ttl, Value};
use mailer_operators::{Aggregate, Operator};
use std::time::Duration;

/// Counts, with or without a TTL and timers.
#[derive(Clone, Default)]
struct Count {
    ttl: Option<Ttl>,
    timers: bool,
    count: Value<u64>,
}

impl ProcessFunction<u64, u64> for Count {
    type Out = u64;

    fn states(&mut self, states: &mut States<'_>) {
        match self.ttl {
            Some(ttl) => states.expiring("count", &mut self.count, ttl),
            None => states.keyed("count", &mut self.count),
        }
    }

    #[inline]
    fn on_record(&mut self, value: u64, cx: &mut Context<'_, u64, u64>) -> Result<()> {
        let count = self.count.update(cx, |count| {
            *count += value;
            *count
        })?;
        if self.timers {
            let minute = cx.timestamp().0.div_euclid(60_000) + 1;
            cx.timers().event(Timestamp(minute * 60_000));
        }
        cx.emit(count);
        Ok(())
    }
}

fn main() {
    let batches = if std::env::args().any(|argument| argument == "--bench") { 5_000 } else { 10 };
    for keys in [1_000, 100_000] {
        let aggregate = Aggregate::new("count", || 0, |sum: &mut u64, n: u64| *sum += n, |_: &u64, sum: &u64| *sum);
        measure("aggregate", keys, batches, aggregate);
        measure("process", keys, batches, Process::new("count", Count::default()));
        let ttl = Some(Ttl::after(Duration::from_secs(3_600)));
        measure("process, TTL", keys, batches, Process::new("count", Count { ttl, ..Count::default() }));
        measure("process, timer", keys, batches, Process::new("count", Count { timers: true, ..Count::default() }));
    }
}

fn measure(name: &str, keys: u64, batches: u64, operator: impl Operator<Keyed<u64, u64>, Out = u64>) {
    let mut scratch = Vec::new();
    let mut input: Vec<_> =
        (0..keys).map(|key| Keyed { hash: KeyHash::of(&key, &mut scratch).unwrap(), key, value: 1 }).collect();
    input.sort_unstable_by_key(|keyed| keyed.hash.0.rotate_left(17)); // no order that caches like
    let mut harness = Harness::new(operator).unwrap();
    let mut records = input.iter().cycle().enumerate().map(|(n, keyed)| Record::new(Timestamp(n as i64 / 10), *keyed));
    let clock = SystemClock::default();
    let begin = clock.monotonic();
    for _ in 0..batches {
        harness.batch(records.by_ref().take(1_000)).unwrap();
        drop(harness.take_output());
    }
    let nanoseconds = (clock.monotonic() - begin).as_nanos() as f64 / (batches * 1_000) as f64;
    println!("{name:>15} keys: {keys:8} | {nanoseconds:6.1} ns a record");
}
