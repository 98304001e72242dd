//! Every query against a computation over all events at once, sorted by time, that uses nothing of the engine: on one
//! worker with events in order, on three with events out of order, and with crashes in between.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod joins;
mod recovery;
mod stateless;
mod updates;
mod windows;

use mailer_nexmark::event::{Auction, Bid, Event, Person};
use mailer_nexmark::generator::Model;
use mailer_nexmark::replay::Replay;
use mailer_runtime::{Collect, Env, Operator, Stream};
use std::fmt::Debug;

/// Events of a test: forty seconds, each with a millisecond of its own.
const COUNT: u64 = 40_000;

/// How the events come.
#[derive(Clone, Copy, Debug)]
struct Way {
    workers: u16,
    /// Events in groups that are out of order within.
    group: u64,
}

const IN_ORDER: Way = Way { workers: 1, group: 1 };
const OUT_OF_ORDER: Way = Way { workers: 3, group: 20 };

fn model(group: u64) -> Model {
    Model { seed: 11, rate: 1_000, group, ..Model::default() }
}

/// The events, sorted by time.
fn events(count: u64) -> Vec<Event> {
    let events: Vec<Event> = (0..count).map(|number| model(1).event(number)).collect();
    assert!(events.is_sorted_by_key(Event::timestamp));
    events
}

fn bids(events: &[Event]) -> impl Iterator<Item = &Bid> {
    events.iter().filter_map(|event| if let Event::Bid(bid) = event { Some(bid) } else { None })
}

fn auctions(events: &[Event]) -> impl Iterator<Item = &Auction> {
    events.iter().filter_map(|event| if let Event::Auction(auction) = event { Some(&**auction) } else { None })
}

fn people(events: &[Event]) -> impl Iterator<Item = &Person> {
    events.iter().filter_map(|event| if let Event::Person(person) = event { Some(&**person) } else { None })
}

/// What the query puts out.
fn run<T, Op, In>(way: Way, query: impl FnOnce(Stream<Event>) -> Stream<T, Op, In>) -> Vec<T>
where
    T: Send + 'static,
    In: Send + 'static,
    Op: Operator<In, Out = T>,
{
    let (out, env) = (Collect::new(), Env::new("nexmark").workers(way.workers));
    let replay = Replay::new(&model(way.group), COUNT);
    query(replay.source(&env, way.workers, COUNT)).sink("out", out.clone());
    env.execute().unwrap();
    out.take()
}

/// The same results, in whatever order, both ways.
fn check<T, Op, In>(query: impl Fn(Stream<Event>) -> Stream<T, Op, In>, expected: Vec<T>)
where
    T: Ord + Debug + Send + 'static,
    In: Send + 'static,
    Op: Operator<In, Out = T>,
{
    let expected = sorted(expected);
    assert!(!expected.is_empty(), "a question that nothing answers shows nothing");
    for way in [IN_ORDER, OUT_OF_ORDER] {
        let seen = sorted(run(way, &query));
        assert_eq!(seen.len(), expected.len(), "{way:?}");
        for (seen, expected) in seen.iter().zip(&expected) {
            assert_eq!(seen, expected, "{way:?}");
        }
    }
}

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values
}
