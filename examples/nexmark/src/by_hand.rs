//! Some answers without an engine: loops over the same events on one thread, with no state that survives, no exchange and
//! no events out of order. What an answer costs at the least.

use crate::event::{Bid, Event};
use crate::queries::{Hottest, Query};
use crate::replay::Replay;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hint::black_box;

/// Panes of q5, and how many of them make a window.
const PANE: i64 = 2_000;
const PANES: usize = 5;
const TEN_SECONDS: i64 = 10_000;

/// The loops there are; the answer is dropped. Whether there is one.
pub fn discard(query: Query, replay: &Replay, count: u64) -> bool {
    match query {
        Query::Q0 => drop(black_box(bids(replay, count).map(black_box).count())),
        Query::Q1 => drop(black_box(q1(replay, count))),
        Query::Q5 => drop(black_box(q5(replay, count))),
        Query::Q7 => drop(black_box(q7(replay, count))),
        _ => return false,
    }
    true
}

fn bids(replay: &Replay, count: u64) -> impl Iterator<Item = Bid> + '_ {
    (0..count).filter_map(|position| replay.at(position).bid())
}

/// All prices in the other currency together.
pub fn q1(replay: &Replay, count: u64) -> u64 {
    bids(replay, count).fold(0, |sum, bid| sum + black_box(bid).price * 908)
}

/// Counts per auction, one map a pane.
pub fn q5(replay: &Replay, count: u64) -> Vec<Hottest> {
    let mut panes: VecDeque<FxHashMap<u64, u64>> = VecDeque::new();
    let (mut pane, mut results) = (i64::MIN, Vec::new());
    for position in 0..count {
        let Event::Bid(bid) = replay.at(position) else { continue };
        let of_bid = bid.timestamp.div_euclid(PANE);
        if pane == i64::MIN {
            pane = of_bid;
            panes.push_back(FxHashMap::default());
        }
        while pane < of_bid {
            turn(&mut panes, &mut pane, &mut results);
        }
        if let Some(counts) = panes.back_mut() {
            *counts.entry(bid.auction).or_insert(0) += 1;
        }
    }
    for _ in 0..PANES {
        turn(&mut panes, &mut pane, &mut results);
    }
    results
}

/// The pane is over, and with it a window.
fn turn(panes: &mut VecDeque<FxHashMap<u64, u64>>, pane: &mut i64, results: &mut Vec<Hottest>) {
    let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
    for (auction, bids) in panes.iter().flatten() {
        *counts.entry(*auction).or_insert(0) += bids;
    }
    *pane += 1;
    let (end, most) = (*pane * PANE, counts.values().copied().max());
    let hottest = counts.into_iter().filter(|(_, bids)| Some(*bids) == most);
    results.extend(hottest.map(|(auction, bids)| Hottest { end, auction, bids }));
    panes.push_back(FxHashMap::default());
    if panes.len() > PANES {
        panes.pop_front();
    }
}

/// The highest of a window, and all that are as high.
pub fn q7(replay: &Replay, count: u64) -> Vec<Bid> {
    let (mut window, mut highest, mut results) = (i64::MIN, Vec::<Bid>::new(), Vec::new());
    for bid in bids(replay, count) {
        let of_bid = bid.timestamp.div_euclid(TEN_SECONDS);
        if of_bid > window {
            window = of_bid;
            results.append(&mut highest);
        }
        let most = highest.first().map_or(0, |bid| bid.price);
        if bid.price > most {
            highest.clear();
        }
        if bid.price >= most {
            highest.push(bid);
        }
    }
    results.append(&mut highest);
    results
}
