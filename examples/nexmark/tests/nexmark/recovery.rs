//! The same answers over crashes, under the seeded driver.

use crate::joins::{new_sellers, offered, won};
use crate::windows::{hottest, visits};
use crate::{events, model};
use mailer_nexmark::event::Event;
use mailer_nexmark::queries::{q3, q5, q8, q9, q11};
use mailer_nexmark::replay::Replay;
use mailer_runtime::testing::{Outcome, run_seeded};
use mailer_runtime::{Collect, Env, FileStorage, Operator, Stream};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

const COUNT: u64 = 15_000;

/// Crashes after ever more steps until a run comes to its end. Plain sinks get results a second time; they must be the same.
fn check<T, Op, In>(query: impl Fn(Stream<Event>) -> Stream<T, Op, In>, expected: Vec<T>)
where
    T: Ord + Debug + Send + 'static,
    In: Send + 'static,
    Op: Operator<In, Out = T>,
{
    let folder = tempfile::tempdir().unwrap();
    let (out, replay) = (Collect::new(), Replay::new(&model(20), COUNT));
    let (mut restored, mut finished) = (0, false);
    for seed in 0..60 {
        let storage = FileStorage::new(folder.path());
        let env = Env::new("nexmark").workers(2).checkpointing(Duration::from_millis(1), storage);
        query(replay.source(&env, 2, COUNT)).sink("out", out.clone());
        let run = run_seeded(env, seed, (seed < 59).then_some(60 + 30 * seed)).unwrap();
        restored += usize::from(run.status.recovery.as_ref().is_some_and(|recovery| recovery.from.is_some()));
        finished = run.outcome.unwrap() == Outcome::Finished;
        if finished {
            break;
        }
    }
    assert!(finished && restored >= 2, "finished: {finished}, restored {restored} times");
    let expected: BTreeSet<T> = expected.into_iter().collect();
    let seen: BTreeSet<T> = out.take().into_iter().collect();
    assert_eq!(seen.len(), expected.len());
    seen.iter().zip(&expected).for_each(|(seen, expected)| assert_eq!(seen, expected));
}

#[test]
fn q3_goes_on_with_what_waits() {
    check(q3, offered(&events(COUNT)));
}

#[test]
fn q5_goes_on_with_its_panes() {
    check(q5, hottest(&events(COUNT)));
}

#[test]
fn q8_goes_on_with_half_a_window() {
    check(q8, new_sellers(&events(COUNT)));
}

#[test]
fn q9_goes_on_with_its_timers() {
    check(q9, won(&events(COUNT)));
}

#[test]
fn q11_goes_on_with_its_sessions() {
    let query = |events| q11(events).map(|bids| (bids.key, bids.window.start.0, bids.window.end.0, bids.value));
    check(query, visits(&events(COUNT)));
}
