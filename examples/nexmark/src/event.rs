//! What happens in the auction house.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Text that is shared where it can be: of a list, or of the arena of a [`Replay`](crate::replay::Replay). Read back from
/// a checkpoint it is owned.
pub type Text = Cow<'static, str>;

/// Somebody registers: about 200 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Person {
    /// From 1,000 on, without gaps.
    pub id: u64,
    /// First and last name.
    pub name: Text,
    /// An address.
    pub email: Text,
    /// Sixteen digits in groups of four.
    pub credit_card: Text,
    /// One of ten.
    pub city: Text,
    /// One of six, not always that of the city.
    pub state: Text,
    /// Event time in milliseconds.
    pub timestamp: i64,
    /// Letters that make the event as long as it is to be.
    pub extra: Text,
}

/// Something is offered: about 500 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Auction {
    /// From 1,000 on, without gaps.
    pub id: u64,
    /// What it is.
    pub item: Text,
    /// More about it.
    pub description: Text,
    /// In cents, like all prices.
    pub initial_bid: u64,
    /// What the seller wants at least.
    pub reserve: u64,
    /// Event time in milliseconds.
    pub timestamp: i64,
    /// The last millisecond in which a bid counts.
    pub expires: i64,
    /// A person, who may not have registered yet.
    pub seller: u64,
    /// 10 to 14.
    pub category: u64,
    /// Letters that make the event as long as it is to be.
    pub extra: Text,
}

/// Somebody bids: about 100 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Bid {
    /// An auction, which may not have begun yet, or may be over.
    pub auction: u64,
    /// A person, who may not have registered yet.
    pub bidder: u64,
    /// In cents.
    pub price: u64,
    /// Where the bid comes from.
    pub channel: Text,
    /// The page it comes from.
    pub url: Text,
    /// Event time in milliseconds.
    pub timestamp: i64,
    /// Letters that make the event as long as it is to be.
    pub extra: Text,
}

/// One of the three. Most are bids, which therefore lie in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// Somebody registers.
    Person(Box<Person>),
    /// Something is offered.
    Auction(Box<Auction>),
    /// Somebody bids.
    Bid(Bid),
}

impl Event {
    /// Event time in milliseconds.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        match self {
            Event::Person(person) => person.timestamp,
            Event::Auction(auction) => auction.timestamp,
            Event::Bid(bid) => bid.timestamp,
        }
    }

    /// The bid, if it is one.
    #[inline]
    pub fn bid(self) -> Option<Bid> {
        match self {
            Event::Bid(bid) => Some(bid),
            _ => None,
        }
    }
}
