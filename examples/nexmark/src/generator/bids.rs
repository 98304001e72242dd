//! Somebody bids.

use super::ids::{self, FIRST};
use super::random::Random;
use crate::event::Bid;
use std::sync::OnceLock;

/// Half of all bids go to the hot auction.
const HOT_AUCTIONS: u64 = 2;
/// Three of four bids come from the hot bidder, who is the one behind the hot seller.
const HOT_BIDDERS: u64 = 4;
const HOT_CHANNELS: [&str; 4] = ["Google", "Facebook", "Baidu", "Apple"];
const CHANNELS: u64 = 10_000;
/// Bytes of a bid, without channel and page.
const SIZE: usize = 100;

pub(super) fn bid(number: u64, timestamp: i64, random: &mut Random) -> Bid {
    let auction = match random.mostly(HOT_AUCTIONS) {
        true => ids::hot(ids::last_auction(number)),
        false => ids::any_auction(number, random),
    };
    let bidder = match random.mostly(HOT_BIDDERS) {
        true => ids::hot(ids::last_person(number)) + 1,
        false => ids::any_person(number, random),
    };
    let price = random.price();
    let (hot, others) = channels().split_at(HOT_CHANNELS.len());
    let channel = if random.mostly(2) { hot } else { others };
    let (channel, url) = &channel[random.below(channel.len() as u64) as usize];
    Bid {
        auction: FIRST + auction,
        bidder: FIRST + bidder,
        price,
        channel: channel.as_str().into(),
        url: url.as_str().into(),
        timestamp,
        extra: random.extra(4 * 8, SIZE),
    }
}

/// Name and page of every channel: the hot ones, then the others, the same whatever the seed.
fn channels() -> &'static [(String, String)] {
    static TABLE: OnceLock<Vec<(String, String)>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut random = Random::of(0, 0);
        let mut page = || {
            let mut folder = || random.letters(5);
            format!("https://www.nexmark.com/{}/{}/{}/item.htm?query=1", folder(), folder(), folder())
        };
        let hot: Vec<_> = HOT_CHANNELS.iter().map(|name| ((*name).to_owned(), page())).collect();
        let others = (0..CHANNELS).map(|number| {
            // One of ten does not say who it is.
            let id =
                if number % 10 > 0 { format!("&channel_id={}", number.reverse_bits() >> 34) } else { String::new() };
            (format!("channel-{number}"), page() + &id)
        });
        hot.into_iter().chain(others.collect::<Vec<_>>()).collect()
    })
}
