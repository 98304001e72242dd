//! Queries that look at one event at a time.

use crate::{COUNT, IN_ORDER, bids, check, events, run};
use mailer_nexmark::by_hand;
use mailer_nexmark::queries::{ByTime, Folders, Priced, Sided, q0, q1, q2, q13, q14, q21, q22};
use mailer_nexmark::replay::Replay;

fn in_euros(events: &[mailer_nexmark::event::Event]) -> Vec<Priced> {
    let mut priced = Vec::new();
    for bid in bids(events) {
        let price = bid.price * 1_000 - bid.price * 92;
        let (auction, bidder, timestamp, extra) = (bid.auction, bid.bidder, bid.timestamp, bid.extra.clone());
        priced.push(Priced { auction, bidder, price, timestamp, extra });
    }
    priced
}

#[test]
fn q0_is_every_bid_in_order() {
    let all: Vec<_> = bids(&events(COUNT)).cloned().collect();
    assert_eq!(run(IN_ORDER, q0), all);
    check(q0, all);
}

#[test]
fn q1_converts_prices() {
    let expected = in_euros(&events(COUNT));
    let sum: u64 = expected.iter().map(|priced| priced.price).sum();
    assert_eq!(by_hand::q1(&Replay::new(&crate::model(1), COUNT), COUNT), sum);
    check(q1, expected);
}

#[test]
fn q2_selects_auctions() {
    let multiples: Vec<u64> = (0..100).map(|n| n * 123).collect();
    let events = events(COUNT);
    let selected = bids(&events).filter(|bid| multiples.contains(&bid.auction));
    check(q2, selected.map(|bid| (bid.auction, bid.price)).collect());
}

#[test]
fn q13_looks_in_its_table() {
    let side = |bid: &mailer_nexmark::event::Bid| Sided {
        auction: bid.auction,
        bidder: bid.bidder,
        price: bid.price,
        timestamp: bid.timestamp,
        value: format!("line {}", bid.auction).into(), // none is as far as 10,000
    };
    check(q13, bids(&events(COUNT)).map(side).collect());
}

/// All events are of the first minute after midnight.
#[test]
fn q14_calculates() {
    let events = events(COUNT);
    let mut expected = Vec::new();
    for (bid, priced) in bids(&events).zip(in_euros(&events)) {
        assert_eq!(bid.timestamp / 1_000 % 86_400 / 3_600, 0);
        let euros = bid.price as f64 * 0.908;
        if euros > 1_000_000.0 && euros < 50_000_000.0 {
            let letters = bid.extra.chars().filter(|letter| *letter == 'c').count();
            expected.push(ByTime { bid: priced, time: "nightTime", letters });
        }
    }
    check(q14, expected);
}

#[test]
fn q21_finds_channels() {
    let mut expected = Vec::new();
    for bid in bids(&events(COUNT)) {
        let id = match bid.channel.to_lowercase().as_str() {
            "apple" => 0,
            "google" => 1,
            "facebook" => 2,
            "baidu" => 3,
            _ => match bid.url.rfind("channel_id=") {
                Some(at) => bid.url[at + "channel_id=".len()..].parse().unwrap(),
                None => continue,
            },
        };
        expected.push((bid.clone(), id));
    }
    let known = expected.iter().filter(|(_, id)| *id < 4).count();
    assert!(known > expected.len() / 3 && known < expected.len());
    check(q21, expected);
}

#[test]
fn q22_takes_pages_apart() {
    let mut expected = Vec::new();
    for bid in bids(&events(COUNT)) {
        let path = bid.url.strip_prefix("https://www.nexmark.com/").unwrap();
        let folders = [&path[..5], &path[6..11], &path[12..17]].map(str::to_owned);
        assert!(folders.iter().all(|folder| !folder.contains('/')));
        let (auction, bidder, price, channel) = (bid.auction, bid.bidder, bid.price, bid.channel.clone());
        expected.push(Folders { auction, bidder, price, channel, folders });
    }
    check(q22, expected);
}
