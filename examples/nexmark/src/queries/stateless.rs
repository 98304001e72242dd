//! Queries that look at one event at a time.

use crate::event::{Bid, Event, Text};
use mailer_runtime::{Operator, Stream};
use std::sync::Arc;

/// The price of a bid in another currency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priced {
    /// The auction.
    pub auction: u64,
    /// The bidder.
    pub bidder: u64,
    /// In thousandths of a cent.
    pub price: u64,
    /// Event time of the bid.
    pub timestamp: i64,
    /// As it came.
    pub extra: Text,
}

/// A bid with what a table says about its auction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sided {
    /// The auction.
    pub auction: u64,
    /// The bidder.
    pub bidder: u64,
    /// The price.
    pub price: u64,
    /// Event time of the bid.
    pub timestamp: i64,
    /// Of the table.
    pub value: Arc<str>,
}

/// A bid with the time of day, and how often a letter occurs in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByTime {
    /// The bid, its price in the other currency.
    pub bid: Priced,
    /// `dayTime`, `nightTime` or `otherTime`.
    pub time: &'static str,
    /// Letters `c` in `extra`.
    pub letters: usize,
}

/// A bid with the first three folders of its page.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Folders {
    /// The auction.
    pub auction: u64,
    /// The bidder.
    pub bidder: u64,
    /// The price.
    pub price: u64,
    /// Where the bid comes from.
    pub channel: Text,
    /// Empty where there is none.
    pub folders: [String; 3],
}

/// Dollars are so many thousandths of a euro.
const RATE: u64 = 908;
const HOUR: i64 = 3_600_000;
/// Lines of the table of q13.
const LINES: u64 = 10_000;

fn priced(bid: Bid) -> Priced {
    let Bid { auction, bidder, price, timestamp, extra, .. } = bid;
    Priced { auction, bidder, price: price * RATE, timestamp, extra }
}

/// Pass through: every bid.
pub fn q0(events: Stream<Event>) -> Stream<Bid, impl Operator<Event, Out = Bid>, Event> {
    events.flat_map(Event::bid)
}

/// Currency conversion.
pub fn q1(events: Stream<Event>) -> Stream<Priced, impl Operator<Event, Out = Priced>, Event> {
    events.flat_map(Event::bid).map(priced)
}

/// Selection: auction and price of bids for some auctions.
pub fn q2(events: Stream<Event>) -> Stream<(u64, u64), impl Operator<Event, Out = (u64, u64)>, Event> {
    events.flat_map(Event::bid).filter(|bid| bid.auction % 123 == 0).map(|bid| (bid.auction, bid.price))
}

/// Bounded side input: every bid with a line of a table.
pub fn q13(events: Stream<Event>) -> Stream<Sided, impl Operator<Event, Out = Sided>, Event> {
    let table: Arc<[Arc<str>]> = (0..LINES).map(|line| format!("line {line}").into()).collect();
    events.flat_map(Event::bid).map(move |bid| {
        let value = table[(bid.auction % LINES) as usize].clone();
        Sided { auction: bid.auction, bidder: bid.bidder, price: bid.price, timestamp: bid.timestamp, value }
    })
}

/// Calculation: bids between 10,000 and 500,000 of the other currency, with the time of day.
pub fn q14(events: Stream<Event>) -> Stream<ByTime, impl Operator<Event, Out = ByTime>, Event> {
    let wanted = 1_000_000 * 1_000 + 1..50_000_000 * 1_000;
    let bids = events.flat_map(Event::bid).filter(move |bid| wanted.contains(&(bid.price * RATE)));
    bids.map(|bid| {
        let time = match bid.timestamp.div_euclid(HOUR).rem_euclid(24) {
            8..=18 => "dayTime",
            ..=6 | 20.. => "nightTime",
            _ => "otherTime",
        };
        let letters = bid.extra.bytes().filter(|letter| *letter == b'c').count();
        ByTime { bid: priced(bid), time, letters }
    })
}

/// Channel ids: bids whose channel is known, or says its number in its page.
pub fn q21(events: Stream<Event>) -> Stream<(Bid, u64), impl Operator<Event, Out = (Bid, u64)>, Event> {
    events.flat_map(Event::bid).flat_map(|bid| channel_id(&bid).map(|id| (bid, id)))
}

fn channel_id(bid: &Bid) -> Option<u64> {
    let hot = ["apple", "google", "facebook", "baidu"].iter().position(|name| bid.channel.eq_ignore_ascii_case(name));
    let in_page = || {
        let (_, id) = bid.url.split_once("&channel_id=")?;
        id.split('&').next()?.parse().ok()
    };
    hot.map(|place| place as u64).or_else(in_page)
}

/// Folders of pages.
pub fn q22(events: Stream<Event>) -> Stream<Folders, impl Operator<Event, Out = Folders>, Event> {
    events.flat_map(Event::bid).map(|bid| {
        let mut parts = bid.url.split('/').skip(3);
        let folders = std::array::from_fn(|_| parts.next().unwrap_or_default().to_owned());
        Folders { auction: bid.auction, bidder: bid.bidder, price: bid.price, channel: bid.channel, folders }
    })
}
