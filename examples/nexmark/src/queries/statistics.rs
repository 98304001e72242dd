//! Counts by day, put out with every bid.

use crate::event::{Bid, Event, Text};
use mailer_runtime::process::{Context, Map, ProcessFunction, States, Value};
use mailer_runtime::{Key, Keyed, Operator, Result, Stream};
use serde::{Deserialize, Serialize};

/// Milliseconds of a day, and of a minute.
const DAY: i64 = 86_400_000;
const MINUTE: i64 = 60_000;

fn day(bid: &Bid) -> i64 {
    bid.timestamp.div_euclid(DAY)
}

/// 1 to 3: below 100, below 10,000, and from there on.
fn rank(price: u64) -> usize {
    match price {
        ..10_000 => 1,
        10_000..1_000_000 => 2,
        1_000_000.. => 3,
    }
}

/// How many there are of all prices, and of each rank.
pub type ByRank = [u64; 4];

/// Bids, and those who take part in them, of a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Counts {
    /// Bids.
    pub bids: ByRank,
    /// Different bidders.
    pub bidders: ByRank,
    /// Different auctions.
    pub auctions: ByRank,
    /// The latest minute of the day in which there was a bid.
    pub minute: i64,
}

/// Counts what is different: beside the counts, a map of those who have been counted already.
///
/// Under each name lies a mask of the counts it is part of.
#[derive(Clone, Default)]
struct Distinct {
    counts: Value<Counts>,
    bidders: Map<u64, u8>,
    auctions: Map<u64, u8>,
}

/// Adds one to all for whom it is the first time.
fn count<K, O>(seen: &mut Map<u64, u8>, cx: &mut Context<'_, K, O>, id: u64, rank: usize) -> Result<ByRank> {
    let mask = 1 | 1 << rank;
    let first = seen.update(cx, &id, |seen| {
        let first = mask & !*seen;
        *seen |= mask;
        first
    })?;
    Ok(std::array::from_fn(|place| u64::from(first >> place & 1)))
}

fn add(counts: &mut ByRank, more: ByRank) {
    counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
}

impl<K: Key> ProcessFunction<K, Bid> for Distinct {
    type Out = (K, Counts);

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("counts", &mut self.counts);
        states.keyed("bidders", &mut self.bidders);
        states.keyed("auctions", &mut self.auctions);
    }

    fn on_record(&mut self, bid: Bid, cx: &mut Context<'_, K, Self::Out>) -> Result<()> {
        let rank = rank(bid.price);
        let bidders = count(&mut self.bidders, cx, bid.bidder, rank)?;
        let auctions = count(&mut self.auctions, cx, bid.auction, rank)?;
        let counts = self.counts.update(cx, |counts| {
            add(&mut counts.bids, std::array::from_fn(|place| u64::from(place == 0 || place == rank)));
            add(&mut counts.bidders, bidders);
            add(&mut counts.auctions, auctions);
            counts.minute = counts.minute.max(bid.timestamp.rem_euclid(DAY) / MINUTE);
            *counts
        })?;
        cx.emit((cx.key().clone(), counts));
        Ok(())
    }
}

type OfDay = (i64, Counts);

/// Bidding statistics of a day: one key, and as many entries in its maps as there are bidders and auctions.
pub fn q15(events: Stream<Event>) -> Stream<OfDay, impl Operator<Keyed<i64, Bid>, Out = OfDay>, Keyed<i64, Bid>> {
    events.flat_map(Event::bid).key_by(day).process("q15", Distinct::default())
}

type Channel = (Text, i64);
type OfChannel = (Channel, Counts);

/// The same by channel and day.
pub fn q16(
    events: Stream<Event>,
) -> Stream<OfChannel, impl Operator<Keyed<Channel, Bid>, Out = OfChannel>, Keyed<Channel, Bid>> {
    events.flat_map(Event::bid).key_by(|bid| (bid.channel.clone(), day(bid))).process("q16", Distinct::default())
}

/// The prices of an auction on a day. Their average is `sum` by `bids[0]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Prices {
    /// Bids.
    pub bids: ByRank,
    /// The lowest.
    pub least: u64,
    /// The highest.
    pub most: u64,
    /// All together.
    pub sum: u64,
}

impl Prices {
    const NONE: Self = Self { bids: [0; 4], least: u64::MAX, most: 0, sum: 0 };

    fn add(&mut self, price: u64) {
        self.bids[0] += 1;
        self.bids[rank(price)] += 1;
        (self.least, self.most, self.sum) = (self.least.min(price), self.most.max(price), self.sum + price);
    }
}

/// Auction and day.
type AuctionDay = (u64, i64);
type OfAuction = (AuctionDay, Prices);
/// Auction, day and price.
type Price = (u64, i64, u64);

/// Auction statistics by day.
pub fn q17(
    events: Stream<Event>,
) -> Stream<OfAuction, impl Operator<Keyed<AuctionDay, Price>, Out = OfAuction>, Keyed<AuctionDay, Price>> {
    events
        .flat_map(|event| event.bid().map(|bid| (bid.auction, day(&bid), bid.price)))
        .key_by(|price| (price.0, price.1))
        .aggregate("q17", || Prices::NONE, |prices, price| prices.add(price.2), |key, prices| (*key, *prices))
}
