//! What bidders do, by windows of their own.

use super::TEN_SECONDS;
use crate::event::Event;
use mailer_runtime::{Keyed, KeyedStream, Operator, Session, Stream, Tumbling, Windowed};

fn by_bidder(events: Stream<Event>) -> KeyedStream<u64, u64> {
    events.flat_map(|event| event.bid().map(|bid| bid.bidder)).key_by(|bidder| *bidder)
}

type Bids = Windowed<u64, u64>;

/// User sessions: how many bids has each made until it was silent for ten seconds?
pub fn q11(events: Stream<Event>) -> Stream<Bids, impl Operator<Keyed<u64, u64>, Out = Bids>, Keyed<u64, u64>> {
    by_bidder(events).window(Session::gap(TEN_SECONDS)).count("q11")
}

/// Processing time windows: how many bids has each made in ten seconds on the clock?
pub fn q12(events: Stream<Event>) -> Stream<Bids, impl Operator<Keyed<u64, u64>, Out = Bids>, Keyed<u64, u64>> {
    by_bidder(events).window(Tumbling::of(TEN_SECONDS)).over_processing_time().count("q12")
}
