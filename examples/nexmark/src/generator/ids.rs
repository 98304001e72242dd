//! Which people and auctions there are at event number *n*.

use super::random::Random;

/// Ids of people and of auctions begin here.
pub(super) const FIRST: u64 = 1_000;
/// Events after which the order of kinds repeats: one person, three auctions, then bids.
pub(super) const EPOCH: u64 = 50;
pub(super) const AUCTIONS: u64 = 3;
/// Auctions that bids go to.
pub(super) const IN_FLIGHT: u64 = 100;
/// People who bid and sell.
const ACTIVE: u64 = 1_000;
/// Ids that are named before they exist: what is out of order in real life.
const LEAD: u64 = 10;
/// One of so many is hot.
const HOT: u64 = 100;

/// What an event is.
pub(super) enum Turn {
    Person,
    Auction,
    Bid,
}

pub(super) fn turn(number: u64) -> Turn {
    match number % EPOCH {
        0 => Turn::Person,
        1..=AUCTIONS => Turn::Auction,
        _ => Turn::Bid,
    }
}

/// The latest person at this event, counted from 0.
pub(super) fn last_person(number: u64) -> u64 {
    number / EPOCH
}

/// The latest auction at this event, counted from 0. For auctions and bids: before the first auction there is none.
pub(super) fn last_auction(number: u64) -> u64 {
    number / EPOCH * AUCTIONS + (number % EPOCH).min(AUCTIONS).saturating_sub(1)
}

/// The first of the latest hundred.
pub(super) fn hot(last: u64) -> u64 {
    last / HOT * HOT
}

/// One of the people who are active, or will soon be.
pub(super) fn any_person(number: u64, random: &mut Random) -> u64 {
    let people = last_person(number) + 1;
    let active = people.min(ACTIVE);
    people - active + random.below(active + LEAD)
}

/// One of the auctions in flight, or to come soon.
pub(super) fn any_auction(number: u64, random: &mut Random) -> u64 {
    let last = last_auction(number);
    let first = last.saturating_sub(IN_FLIGHT);
    first + random.below(last - first + 1 + LEAD)
}
