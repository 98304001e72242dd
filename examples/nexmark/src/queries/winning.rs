//! The bid that has won when an auction is over.

use crate::event::{Auction, Bid, Event};
use mailer_runtime::process::{Context, List, ProcessFunction, States, Timer, Value};
use mailer_runtime::{Either, Keyed, KeyedStream, Operator, Result, Stream, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::cmp::Reverse;

/// What a query needs to know of an auction.
trait Lot: Serialize + DeserializeOwned + Clone + Send + 'static {
    /// From when to when bids count, both included.
    fn open(&self) -> (i64, i64);
}

/// What a query needs to know of a bid.
trait Offer: Serialize + DeserializeOwned + Clone + Send + 'static {
    /// The greater wins: by price, then the earlier one, then the lesser bidder.
    fn order(&self) -> (u64, Reverse<i64>, Reverse<u64>);

    fn time(&self) -> i64 {
        self.order().1.0
    }
}

impl Lot for Box<Auction> {
    fn open(&self) -> (i64, i64) {
        (self.timestamp, self.expires)
    }
}

impl Offer for Bid {
    fn order(&self) -> (u64, Reverse<i64>, Reverse<u64>) {
        (self.price, Reverse(self.timestamp), Reverse(self.bidder))
    }
}

/// An auction in few words.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ShortLot {
    seller: u64,
    category: u64,
    open: (i64, i64),
}

impl Lot for ShortLot {
    fn open(&self) -> (i64, i64) {
        self.open
    }
}

/// Price, time and bidder of a bid.
type ShortOffer = (u64, i64, u64);

impl Offer for ShortOffer {
    fn order(&self) -> (u64, Reverse<i64>, Reverse<u64>) {
        (self.0, Reverse(self.1), Reverse(self.2))
    }
}

/// All that is known of an auction that is not over.
#[derive(Serialize, Deserialize)]
struct Going<L, B> {
    lot: Option<L>,
    best: Option<B>,
    /// Bids that came before the auction: they count if it turns out to have begun before them.
    early: Vec<B>,
}

impl<L, B> Default for Going<L, B> {
    fn default() -> Self {
        Self { lot: None, best: None, early: Vec::new() }
    }
}

impl<L: Lot, B: Offer> Going<L, B> {
    fn begin(&mut self, lot: L) {
        self.lot = Some(lot);
        std::mem::take(&mut self.early).into_iter().for_each(|bid| self.bid(bid));
    }

    fn bid(&mut self, bid: B) {
        let Some(lot) = &self.lot else { return self.early.push(bid) };
        let (begin, end) = lot.open();
        let counts = (begin..=end).contains(&bid.time());
        if counts && self.best.as_ref().is_none_or(|best| bid.order() > best.order()) {
            self.best = Some(bid);
        }
    }

    /// Forgets bids before `now`, of which an auction that is still to come knows nothing; the time of the next one.
    fn forget(&mut self, now: i64) -> Option<i64> {
        self.early.retain(|bid| bid.time() >= now);
        self.early.iter().map(Offer::time).min()
    }
}

/// Timers: the auction is over; a bid has come for which there was no auction.
const OVER: u32 = 0;
const EARLY: u32 = 1;

/// Puts every auction out with its best bid, when it is over. One without bids has no result.
struct Winning<L, B> {
    going: Value<Going<L, B>>,
}

impl<L, B> Default for Winning<L, B> {
    fn default() -> Self {
        Self { going: Value::default() }
    }
}

/// A clone is for another worker: it begins without state.
impl<L, B> Clone for Winning<L, B> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<L: Lot, B: Offer> Winning<L, B> {
    fn over(&mut self, cx: &mut Context<'_, u64, (L, B)>) -> Result<()> {
        if let Some(Going { lot: Some(lot), best: Some(best), .. }) = self.going.take(cx)? {
            cx.emit((lot, best));
        }
        Ok(())
    }

    fn forget(&mut self, cx: &mut Context<'_, u64, (L, B)>) -> Result<()> {
        let now = cx.watermark().0.0;
        let (next, none) = self.going.update(cx, |going| (going.forget(now), going.lot.is_none()))?;
        match next {
            Some(next) => cx.timers().kind(EARLY).event(Timestamp(next.saturating_add(1))),
            None if none => self.going.clear(cx)?,
            None => {}
        }
        Ok(())
    }
}

impl<L: Lot, B: Offer> ProcessFunction<u64, (u64, Either<L, B>)> for Winning<L, B> {
    type Out = (L, B);

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("going", &mut self.going);
    }

    fn on_record(&mut self, (_, side): (u64, Either<L, B>), cx: &mut Context<'_, u64, (L, B)>) -> Result<()> {
        match side {
            Either::Left(lot) => {
                // Bids of the last millisecond are still on time when the watermark is there.
                cx.timers().kind(OVER).event(Timestamp(lot.open().1 + 1));
                self.going.update(cx, |going| going.begin(lot))
            }
            Either::Right(bid) => {
                let time = bid.time();
                let first = self.going.update(cx, |going| {
                    going.bid(bid);
                    going.early.len() == 1 && going.lot.is_none()
                })?;
                if first {
                    cx.timers().kind(EARLY).event(Timestamp(time + 1));
                }
                Ok(())
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u64, (L, B)>) -> Result<()> {
        if timer.kind == OVER { self.over(cx) } else { self.forget(cx) }
    }
}

/// Auctions and bids in few words, by auction.
fn short(events: Stream<Event>) -> KeyedStream<u64, (u64, Either<ShortLot, ShortOffer>)> {
    let side = |event: Event| match event {
        Event::Auction(auction) => {
            let open = (auction.timestamp, auction.expires);
            let lot = ShortLot { seller: auction.seller, category: auction.category, open };
            Some((auction.id, Either::Left(lot)))
        }
        Event::Bid(bid) => Some((bid.auction, Either::Right((bid.price, bid.timestamp, bid.bidder)))),
        Event::Person(_) => None,
    };
    events.flat_map(side).key_by(|side| side.0)
}

/// What the auctions of a category that are over have brought. The average is `total` by `auctions`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Average {
    /// The category.
    pub category: u64,
    /// How many.
    pub auctions: u64,
    /// Their prices together.
    pub total: u64,
}

/// Category and price.
type Price = (u64, u64);

/// Average price for a category, with every auction that is over.
pub fn q4(
    events: Stream<Event>,
) -> Stream<Average, impl Operator<Keyed<u64, Price>, Out = Average>, Keyed<u64, Price>> {
    short(events)
        .process("q4 winning", Winning::default())
        .map(|(lot, offer)| (lot.category, offer.0))
        .key_by(|price| price.0)
        .aggregate(
            "q4 averages",
            || (0, 0),
            |sum, price| *sum = (sum.0 + 1, sum.1 + price.1),
            |category, sum| Average { category: *category, auctions: sum.0, total: sum.1 },
        )
}

/// What the last auctions of a seller have brought. The average is `total` by `auctions`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SellerAverage {
    /// The seller.
    pub seller: u64,
    /// When the last of them was over.
    pub expires: i64,
    /// How many: up to ten.
    pub auctions: usize,
    /// Their prices together.
    pub total: u64,
}

/// Auctions that count for q6.
const LAST: usize = 10;

/// Seller, the end of an auction, and its price.
type Sale = (u64, i64, u64);

/// Average selling price by seller, of the last ten auctions: with every auction that is over, in the order of their ends.
/// Those that are over at the same time come in the order of prices.
pub fn q6(
    events: Stream<Event>,
) -> Stream<SellerAverage, impl Operator<Keyed<u64, Sale>, Out = SellerAverage>, Keyed<u64, Sale>> {
    short(events)
        .process("q6 winning", Winning::default())
        .map(|(lot, offer)| (lot.seller, lot.open.1, offer.0))
        .key_by(|sale| sale.0)
        .process("q6 averages", Lasts::default())
}

/// Sales come from several workers: they wait until the watermark says which is next.
#[derive(Clone, Default)]
struct Lasts {
    waiting: List<Sale>,
    last: Value<Vec<u64>>,
}

impl ProcessFunction<u64, Sale> for Lasts {
    type Out = SellerAverage;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("waiting", &mut self.waiting);
        states.keyed("last", &mut self.last);
    }

    fn on_record(&mut self, sale: Sale, cx: &mut Context<'_, u64, SellerAverage>) -> Result<()> {
        let at = Timestamp(cx.timestamp().0 + 1);
        cx.timers().event(at);
        self.waiting.push(cx, sale)
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_, u64, SellerAverage>) -> Result<()> {
        // A result of `Winning` has the time of its timer, which is one behind the end.
        let is_due = |sale: &Sale| sale.1 + 1 < timer.time.0;
        let (mut due, later): (Vec<Sale>, Vec<Sale>) = self.waiting.take(cx)?.into_iter().partition(is_due);
        later.into_iter().try_for_each(|sale| self.waiting.push(cx, sale))?;
        due.sort_unstable();
        for (seller, expires, price) in due {
            let (auctions, total) = self.last.update(cx, |last| {
                last.push(price);
                last.drain(..last.len().saturating_sub(LAST));
                (last.len(), last.iter().sum())
            })?;
            cx.emit(SellerAverage { seller, expires, auctions, total });
        }
        Ok(())
    }
}

/// An auction and the bid that has won it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Won {
    /// What was sold.
    pub auction: Auction,
    /// To whom, and for how much.
    pub bid: Bid,
}

type Side = (u64, Either<Box<Auction>, Bid>);

/// Winning bids, whole.
pub fn q9(events: Stream<Event>) -> Stream<Won, impl Operator<Keyed<u64, Side>, Out = Won>, Keyed<u64, Side>> {
    let side = |event: Event| match event {
        Event::Auction(auction) => Some((auction.id, Either::Left(auction))),
        Event::Bid(bid) => Some((bid.auction, Either::Right(bid))),
        Event::Person(_) => None,
    };
    let winning = events.flat_map(side).key_by(|side| side.0).process("q9", Winning::default());
    winning.map(|(auction, bid)| Won { auction: *auction, bid })
}
