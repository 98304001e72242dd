//! Queries over windows.

use crate::{COUNT, IN_ORDER, OUT_OF_ORDER, bids, check, events, model, run, sorted};
use mailer_nexmark::by_hand;
use mailer_nexmark::event::{Bid, Event};
use mailer_nexmark::queries::{Hottest, q5, q7, q11, q12};
use mailer_nexmark::replay::Replay;
use std::collections::BTreeMap;

/// Every window is counted for itself, from all bids.
pub(crate) fn hottest(events: &[Event]) -> Vec<Hottest> {
    let (first, last) = (events[0].timestamp(), events[events.len() - 1].timestamp());
    let ends = (first..last + 10_001).filter(|time| time % 2_000 == 0 && *time > first);
    let mut hottest = Vec::new();
    for end in ends {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let within = bids(events).filter(|bid| end - 10_000 <= bid.timestamp && bid.timestamp < end);
        within.for_each(|bid| *counts.entry(bid.auction).or_default() += 1);
        let most = counts.values().copied().max();
        let most_of = counts.into_iter().filter(|(_, bids)| Some(*bids) == most);
        hottest.extend(most_of.map(|(auction, bids)| Hottest { end, auction, bids }));
    }
    hottest
}

#[test]
fn q5_finds_the_hottest_auctions() {
    let expected = hottest(&events(COUNT));
    assert_eq!(sorted(by_hand::q5(&Replay::new(&model(1), COUNT), COUNT)), sorted(expected.clone()));
    check(q5, expected);
}

#[test]
fn q7_finds_the_highest_bids() {
    let mut windows: BTreeMap<i64, Vec<Bid>> = BTreeMap::new();
    bids(&events(COUNT)).for_each(|bid| windows.entry(bid.timestamp / 10_000).or_default().push(bid.clone()));
    let mut expected = Vec::new();
    for (_, bids) in windows {
        let most = bids.iter().map(|bid| bid.price).max();
        expected.extend(bids.into_iter().filter(|bid| Some(bid.price) == most));
    }
    assert_eq!(by_hand::q7(&Replay::new(&model(1), COUNT), COUNT), expected);
    check(q7, expected);
}

/// Bidder, begin and end of a session, and its bids.
pub(crate) type Visit = (u64, i64, i64, u64);

pub(crate) fn visits(events: &[Event]) -> Vec<Visit> {
    let mut times: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    bids(events).for_each(|bid| times.entry(bid.bidder).or_default().push(bid.timestamp));
    let mut visits = Vec::new();
    for (bidder, times) in times {
        let sessions = times.chunk_by(|a, b| b - a < 10_000);
        visits.extend(sessions.map(|s| (bidder, s[0], s[s.len() - 1] + 10_000, s.len() as u64)));
    }
    visits
}

#[test]
fn q11_counts_the_bids_of_a_visit() {
    let expected = visits(&events(COUNT));
    let bidders: std::collections::BTreeSet<u64> = expected.iter().map(|visit| visit.0).collect();
    assert!(bidders.len() < expected.len(), "some came twice");
    check(|events| q11(events).map(|bids| (bids.key, bids.window.start.0, bids.window.end.0, bids.value)), expected);
}

/// When is a matter of the clock, so only what holds at any time is checked.
#[test]
fn q12_counts_every_bid_in_one_window_of_the_clock() {
    let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
    bids(&events(COUNT)).for_each(|bid| *expected.entry(bid.bidder).or_default() += 1);
    for way in [IN_ORDER, OUT_OF_ORDER] {
        let (mut sums, mut windows) = (BTreeMap::new(), std::collections::BTreeSet::new());
        for bids in run(way, q12) {
            assert_eq!((bids.window.start.0 % 10_000, bids.window.end.0 - bids.window.start.0), (0, 10_000));
            assert!(windows.insert((bids.key, bids.window.start)), "one result per bidder and window");
            *sums.entry(bids.key).or_default() += bids.value;
        }
        assert_eq!(sums, expected, "{way:?}");
    }
}
