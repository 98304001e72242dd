//! Bids with the whole auction they are for.

use super::CATEGORY;
use crate::event::{Auction, Bid, Event};
use mailer_runtime::process::{Context, ProcessFunction, States, Value};
use mailer_runtime::{Either, Keyed, Operator, Result, Stream};
use serde::{Deserialize, Serialize};

/// A bid and its auction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expanded {
    /// The bid.
    pub bid: Bid,
    /// What it is for.
    pub auction: Auction,
}

type Side = Either<Box<Auction>, Bid>;

/// Expand bid with auction, of one category: both sides are kept for ever, as there is no time in the question.
pub fn q20(
    events: Stream<Event>,
) -> Stream<Expanded, impl Operator<Keyed<u64, Side>, Out = Expanded>, Keyed<u64, Side>> {
    let side = |event: Event| match event {
        Event::Auction(auction) => Some(Either::Left(auction)),
        Event::Bid(bid) => Some(Either::Right(bid)),
        Event::Person(_) => None,
    };
    let id = |side: &Side| match side {
        Either::Left(auction) => auction.id,
        Either::Right(bid) => bid.auction,
    };
    events.flat_map(side).key_by(id).process("q20", Expand::default())
}

/// What is known of an auction.
#[derive(Serialize, Deserialize)]
enum Known {
    /// Only bids.
    Bids(Vec<Bid>),
    /// It is of the category.
    Wanted(Box<Auction>),
    /// It is of another.
    Other,
}

impl Default for Known {
    fn default() -> Self {
        Self::Bids(Vec::new())
    }
}

#[derive(Clone, Default)]
struct Expand {
    known: Value<Known>,
}

impl Expand {
    fn offered(&mut self, auction: Box<Auction>, cx: &mut Context<'_, u64, Expanded>) -> Result<()> {
        let wanted = auction.category == CATEGORY;
        let known = if wanted { Known::Wanted(auction.clone()) } else { Known::Other };
        if let (true, Known::Bids(bids)) = (wanted, self.known.update(cx, |before| std::mem::replace(before, known))?) {
            bids.into_iter().for_each(|bid| cx.emit(Expanded { bid, auction: (*auction).clone() }));
        }
        Ok(())
    }

    fn bid(&mut self, bid: Bid, cx: &mut Context<'_, u64, Expanded>) -> Result<()> {
        let pair = self.known.update(cx, |known| match known {
            Known::Bids(bids) => {
                bids.push(bid);
                None
            }
            Known::Wanted(auction) => Some(Expanded { bid, auction: (**auction).clone() }),
            Known::Other => None,
        })?;
        pair.into_iter().for_each(|pair| cx.emit(pair));
        Ok(())
    }
}

impl ProcessFunction<u64, Side> for Expand {
    type Out = Expanded;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("known", &mut self.known);
    }

    fn on_record(&mut self, side: Side, cx: &mut Context<'_, u64, Expanded>) -> Result<()> {
        match side {
            Either::Left(auction) => self.offered(auction, cx),
            Either::Right(bid) => self.bid(bid, cx),
        }
    }
}
