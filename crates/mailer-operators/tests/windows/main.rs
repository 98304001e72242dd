//! Window operators from outside: the vectors, a naive model under random scripts, restores at every point.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod early;
mod kinds;
mod late;
mod model;
mod properties;
mod restores;
mod top_n;
mod vectors;

use mailer_core::TimeWindow;
use mailer_operators::harness::{Harness, Input};
use mailer_operators::{KeyBy, Operator, SideTag, Then, Windowed};
use std::time::Duration;

/// A key and a value: what flows in most of these tests.
type Pair = (String, u32);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn pair(key: &str, value: u32) -> Pair {
    (key.to_owned(), value)
}

/// `window` behind a `key_by`.
fn by_key<W>(window: W) -> impl Operator<Pair, Out = W::Out>
where
    W: Operator<mailer_core::Keyed<String, Pair>>,
{
    Then(KeyBy::new(|pair: &Pair| pair.0.clone()), window)
}

/// A final result at the last millisecond of its window.
fn last<T>(key: &str, start: i64, end: i64, value: T) -> (i64, Windowed<String, T>) {
    (end - 1, Windowed::new(key.to_owned(), TimeWindow::new(start, end), value))
}

fn record(time: i64, key: &str, value: u32) -> Input<Pair> {
    Input::Record(time, pair(key, value))
}

/// Entries left in the store at the next barrier.
fn entries<Op: Operator<Pair>>(harness: &mut Harness<Pair, Op>) -> usize {
    harness.snapshot().unwrap();
    harness.state_entries()
}

fn late_tag() -> SideTag<Pair> {
    SideTag::new("late")
}
