//! Something is offered.

use super::Model;
use super::ids::{self, AUCTIONS, EPOCH, FIRST, IN_FLIGHT};
use super::random::Random;
use crate::event::Auction;

const FIRST_CATEGORY: u64 = 10;
const CATEGORIES: u64 = 5;
/// Three of four are sold by the hot seller.
const HOT_SELLERS: u64 = 4;
/// Bytes of an auction.
const SIZE: usize = 500;

pub(super) fn auction(model: &Model, number: u64, timestamp: i64, random: &mut Random) -> Auction {
    let seller = match random.mostly(HOT_SELLERS) {
        true => ids::hot(ids::last_person(number)),
        false => ids::any_person(number, random),
    };
    let (item, description) = (random.words(20), random.words(100));
    let initial_bid = random.price();
    let size = 7 * 8 + item.len() + description.len();
    Auction {
        id: FIRST + ids::last_auction(number),
        item: item.into(),
        description: description.into(),
        initial_bid,
        reserve: initial_bid + random.price(),
        timestamp,
        expires: timestamp + length(model, number, timestamp, random),
        seller: FIRST + seller,
        category: FIRST_CATEGORY + random.below(CATEGORIES),
        extra: random.extra(size, SIZE),
    }
}

/// On average as long as it takes until a hundred others have begun.
fn length(model: &Model, number: u64, timestamp: i64, random: &mut Random) -> i64 {
    let later = model.timestamp(number + IN_FLIGHT * EPOCH / AUCTIONS);
    let horizon = u64::try_from(later - timestamp).unwrap_or_default();
    1 + random.below((horizon * 2).max(1)) as i64
}
