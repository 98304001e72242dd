//! The last, and the best, of a key.

use crate::event::{Bid, Event};
use mailer_runtime::{Keyed, Operator, Stream};

type Pair = (u64, u64);

/// Find last bid: the latest bid of every bidder for every auction; of those at the same time, the highest. Every bid puts
/// out what is the latest then.
pub fn q18(events: Stream<Event>) -> Stream<Bid, impl Operator<Keyed<Pair, Bid>, Out = Bid>, Keyed<Pair, Bid>> {
    events.flat_map(Event::bid).key_by(|bid| (bid.bidder, bid.auction)).reduce("q18", |last, bid| {
        if (bid.timestamp, bid.price) >= (last.timestamp, last.price) {
            *last = bid;
        }
    })
}

type TopTen = (u64, Vec<Bid>);

/// Auction top-10: the ten highest bids of every auction, whenever they change; of equals, the earlier is higher.
pub fn q19(events: Stream<Event>) -> Stream<TopTen, impl Operator<Keyed<u64, Bid>, Out = TopTen>, Keyed<u64, Bid>> {
    let order = |a: &Bid, b: &Bid| (b.price, a.timestamp).cmp(&(a.price, b.timestamp));
    events.flat_map(Event::bid).key_by(|bid| bid.auction).top_n("q19", 10, order)
}
