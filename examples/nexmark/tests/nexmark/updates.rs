//! Queries that put out every change: in order all of them are compared, out of order the last of every key.

use crate::{COUNT, IN_ORDER, OUT_OF_ORDER, bids, events, run};
use mailer_nexmark::event::{Bid, Event};
use mailer_nexmark::queries::{Counts, Prices, q15, q16, q17, q18, q19};
use mailer_runtime::{Operator, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// What is put out of every key, in order.
type Updates<K, V> = BTreeMap<K, Vec<V>>;

fn by_key<K: Ord, V>(updates: impl IntoIterator<Item = (K, V)>) -> Updates<K, V> {
    let mut of_keys: Updates<K, V> = BTreeMap::new();
    updates.into_iter().for_each(|(key, value)| of_keys.entry(key).or_default().push(value));
    of_keys
}

fn check<K, V, Op, In>(query: impl Fn(Stream<Event>) -> Stream<(K, V), Op, In>, expected: &Updates<K, V>)
where
    K: Ord + Debug + Send + 'static,
    V: PartialEq + Debug + Send + 'static,
    In: Send + 'static,
    Op: Operator<In, Out = (K, V)>,
{
    assert!(!expected.is_empty());
    let seen = by_key(run(IN_ORDER, &query));
    assert!(seen.keys().eq(expected.keys()));
    for (key, updates) in &seen {
        assert_eq!(updates.len(), expected[key].len(), "{key:?}");
        updates.iter().zip(&expected[key]).for_each(|(seen, expected)| assert_eq!(seen, expected, "{key:?}"));
    }
    let seen = by_key(run(OUT_OF_ORDER, &query));
    assert!(seen.keys().eq(expected.keys()));
    for (key, updates) in &seen {
        assert_eq!(updates.last(), expected[key].last(), "{key:?}");
    }
}

fn rank(bid: &Bid) -> usize {
    1 + usize::from(bid.price >= 10_000) + usize::from(bid.price >= 1_000_000)
}

/// Sets of all that have been seen, of all ranks and of each.
#[derive(Default)]
struct Day {
    bids: [u64; 4],
    bidders: [BTreeSet<u64>; 4],
    auctions: [BTreeSet<u64>; 4],
    first: Option<i64>,
}

impl Day {
    fn with(&mut self, bid: &Bid) -> Counts {
        for rank in [0, rank(bid)] {
            self.bids[rank] += 1;
            self.bidders[rank].insert(bid.bidder);
            self.auctions[rank].insert(bid.auction);
        }
        let first = *self.first.get_or_insert(bid.timestamp);
        assert!(bid.timestamp - first < 60_000, "all within the first minute of a day");
        let sizes = |sets: &[BTreeSet<u64>; 4]| std::array::from_fn(|rank| sets[rank].len() as u64);
        Counts { bids: self.bids, bidders: sizes(&self.bidders), auctions: sizes(&self.auctions), minute: 0 }
    }
}

/// The day of all events.
const DAY: i64 = 16_631;

#[test]
fn q15_counts_a_day() {
    let mut day = Day::default();
    let expected = by_key(bids(&events(COUNT)).map(|bid| (DAY, day.with(bid))));
    check(q15, &expected);
}

#[test]
fn q16_counts_the_day_of_every_channel() {
    let mut days: BTreeMap<_, Day> = BTreeMap::new();
    let events = events(COUNT);
    let expected = bids(&events).map(|bid| {
        let key = (bid.channel.clone(), DAY);
        (key.clone(), days.entry(key).or_default().with(bid))
    });
    check(q16, &by_key(expected));
}

#[test]
fn q17_describes_the_prices_of_auctions() {
    let mut prices: BTreeMap<u64, Vec<&Bid>> = BTreeMap::new();
    let events = events(COUNT);
    let expected = bids(&events).map(|bid| {
        let all = prices.entry(bid.auction).or_default();
        all.push(bid);
        let of = |wanted: usize| all.iter().filter(|bid| wanted == 0 || rank(bid) == wanted).count() as u64;
        let in_order = || all.iter().map(|bid| bid.price);
        let (least, most) = (in_order().min().unwrap(), in_order().max().unwrap());
        let prices = Prices { bids: [of(0), of(1), of(2), of(3)], least, most, sum: in_order().sum() };
        ((bid.auction, DAY), prices)
    });
    check(q17, &by_key(expected));
}

#[test]
fn q18_keeps_the_last_bid() {
    let events = events(COUNT);
    let expected = by_key(bids(&events).map(|bid| ((bid.bidder, bid.auction), bid.clone())));
    assert!(expected.values().any(|bids| bids.len() > 10));
    check(|events| q18(events).map(|bid| ((bid.bidder, bid.auction), bid)), &expected);
}

#[test]
fn q19_keeps_the_ten_highest_bids() {
    let mut all: BTreeMap<u64, Vec<&Bid>> = BTreeMap::new();
    let events = events(COUNT);
    let expected = bids(&events).filter_map(|bid| {
        let of_auction = all.entry(bid.auction).or_default();
        let place = of_auction.iter().filter(|other| other.price >= bid.price).count();
        of_auction.insert(place, bid);
        (place < 10).then(|| (bid.auction, of_auction.iter().take(10).map(|bid| (*bid).clone()).collect::<Vec<_>>()))
    });
    let expected = by_key(expected);
    assert!(expected.values().any(|rankings| rankings.len() > 20));
    check(q19, &expected);
}
