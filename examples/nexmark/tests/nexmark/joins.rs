//! Queries that bring events of two kinds together.

use crate::{COUNT, IN_ORDER, OUT_OF_ORDER, auctions, bids, check, events, people, run};
use mailer_nexmark::event::{Bid, Event};
use mailer_nexmark::queries::{Average, Expanded, NewSeller, Offered, SellerAverage, Won, q3, q4, q6, q8, q9, q20};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn q3_finds_sellers_nearby() {
    check(q3, offered(&events(COUNT)));
}

pub(crate) fn offered(events: &[Event]) -> Vec<Offered> {
    let nearby: BTreeMap<u64, _> =
        people(events).filter(|person| matches!(&*person.state, "OR" | "ID" | "CA")).map(|p| (p.id, p)).collect();
    let mut offered = Vec::new();
    for auction in auctions(events).filter(|auction| auction.category == 10) {
        if let Some(person) = nearby.get(&auction.seller) {
            let (name, city, state) = (person.name.clone(), person.city.clone(), person.state.clone());
            offered.push(Offered { name, city, state, auction: auction.id });
        }
    }
    offered
}

#[test]
fn q8_finds_new_sellers() {
    check(q8, new_sellers(&events(COUNT)));
}

pub(crate) fn new_sellers(events: &[Event]) -> Vec<NewSeller> {
    let start = |time: i64| time / 10_000 * 10_000;
    let sellers: BTreeSet<(u64, i64)> = auctions(events).map(|a| (a.seller, start(a.timestamp))).collect();
    let new = people(events).filter(|person| sellers.contains(&(person.id, start(person.timestamp))));
    new.map(|person| NewSeller { id: person.id, name: person.name.clone(), start: start(person.timestamp) }).collect()
}

/// Every auction with its best bid.
pub(crate) fn won(events: &[Event]) -> Vec<Won> {
    let mut by_auction: BTreeMap<u64, Vec<&Bid>> = BTreeMap::new();
    bids(events).for_each(|bid| by_auction.entry(bid.auction).or_default().push(bid));
    let mut won = Vec::new();
    for auction in auctions(events) {
        let of_it = by_auction.get(&auction.id).into_iter().flatten();
        let in_time = of_it.filter(|bid| auction.timestamp <= bid.timestamp && bid.timestamp <= auction.expires);
        let best = in_time.max_by(|a, b| a.price.cmp(&b.price).then(b.timestamp.cmp(&a.timestamp)));
        won.extend(best.map(|bid| Won { auction: auction.clone(), bid: (*bid).clone() }));
    }
    won
}

#[test]
fn q9_finds_winning_bids() {
    let events = events(COUNT);
    let won = won(&events);
    assert!(won.len() < auctions(&events).count(), "some end without a bid");
    check(q9, won);
}

/// With every auction that is over an average is put out: in the end that of all of them.
#[test]
fn q4_averages_categories() {
    let mut all: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    won(&events(COUNT)).iter().for_each(|won| all.entry(won.auction.category).or_default().push(won.bid.price));
    assert_eq!(all.keys().copied().collect::<Vec<_>>(), [10, 11, 12, 13, 14]);
    for way in [IN_ORDER, OUT_OF_ORDER] {
        let mut averages: BTreeMap<u64, Vec<Average>> = BTreeMap::new();
        run(way, q4).into_iter().for_each(|average| averages.entry(average.category).or_default().push(average));
        for (category, prices) in &all {
            let averages = &averages[category];
            assert!(averages.iter().map(|average| average.auctions).eq(1..=prices.len() as u64), "{way:?}");
            assert_eq!(averages.last().unwrap().total, prices.iter().sum::<u64>(), "{way:?}");
        }
        assert_eq!(averages.len(), all.len());
    }
}

#[test]
fn q6_averages_the_last_ten_of_a_seller() {
    let mut sales: BTreeMap<u64, Vec<(i64, u64)>> = BTreeMap::new();
    for won in won(&events(COUNT)) {
        sales.entry(won.auction.seller).or_default().push((won.auction.expires, won.bid.price));
    }
    let mut expected = Vec::new();
    for (seller, mut sales) in sales {
        sales.sort_unstable();
        for end in 1..=sales.len() {
            let last = &sales[end.saturating_sub(10)..end];
            let total = last.iter().map(|sale| sale.1).sum();
            expected.push(SellerAverage { seller, expires: sales[end - 1].0, auctions: last.len(), total });
        }
    }
    assert!(expected.iter().any(|average| average.auctions == 10));
    check(q6, expected);
}

#[test]
fn q20_expands_bids() {
    let events = events(COUNT);
    let wanted: BTreeMap<u64, _> = auctions(&events).filter(|a| a.category == 10).map(|a| (a.id, a)).collect();
    let mut expected = Vec::new();
    for bid in bids(&events) {
        let auction = wanted.get(&bid.auction);
        expected.extend(auction.map(|auction| Expanded { bid: bid.clone(), auction: (*auction).clone() }));
    }
    check(q20, expected);
}
