//! The greatest of a window over all keys, in two stages: each worker lets only through what may be the greatest.

use super::TEN_SECONDS;
use crate::event::{Bid, Event};
use mailer_runtime::{Keyed, Operator, Sliding, Stream, Tumbling, Windowed};
use std::time::Duration;

/// How far the windows of q5 are apart.
const SLIDE: Duration = Duration::from_secs(2);

/// An auction that had the most bids of a window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hottest {
    /// The end of the window.
    pub end: i64,
    /// The auction.
    pub auction: u64,
    /// Its bids.
    pub bids: u64,
}

/// What a worker has seen of a window: the greatest value so far.
///
/// It is not part of a checkpoint, and need not be: after a restart it lets more through, and the result is the same.
#[derive(Clone, Copy, Debug)]
struct Rising {
    window: i64,
    greatest: u64,
}

impl Rising {
    const NEW: Self = Self { window: i64::MIN, greatest: 0 };

    /// Whether `value` may be the greatest of `window`. Of windows before the latest everything may.
    fn admits(&mut self, window: i64, value: u64) -> bool {
        if window > self.window {
            *self = Self { window, greatest: value };
        }
        if window == self.window {
            let admitted = value >= self.greatest;
            self.greatest = self.greatest.max(value);
            return admitted;
        }
        true
    }
}

/// The greatest number so far, and all that have it.
type Top<T> = (u64, Vec<T>);

fn add<T>(top: &mut Top<T>, number: u64, value: T) {
    if number > top.0 {
        *top = (number, Vec::new());
    }
    if number == top.0 {
        top.1.push(value);
    }
}

fn merge<T>(top: &mut Top<T>, later: Top<T>) {
    let (number, values) = later;
    values.into_iter().for_each(|value| add(top, number, value));
}

/// End of the window, auction, and its bids in it.
type Hot = (i64, u64, u64);

/// Hot items: which auctions have had the most bids of the last ten seconds? Every two seconds.
pub fn q5(events: Stream<Event>) -> Stream<Hottest, impl Operator<Keyed<i64, Hot>, Out = Hottest>, Keyed<i64, Hot>> {
    let auctions = events.flat_map(|event| event.bid().map(|bid| bid.auction)).key_by(|auction| *auction);
    let counts = auctions.window(Sliding::of(TEN_SECONDS, SLIDE)).count("q5 bids");
    let mut rising = Rising::NEW;
    let most = move |count: &Windowed<u64, u64>| rising.admits(count.window.end.0, count.value);
    let counts = counts.filter(most).map(|count| (count.window.end.0, count.key, count.value));
    // Results carry the last millisecond of their window, so those of one window are in one pane as long as the slide.
    counts
        .key_by(|count| count.0)
        .window(Tumbling::of(SLIDE))
        .aggregate(
            "q5 most",
            || (0, Vec::new()),
            |top, (_, auction, bids)| add(top, bids, auction),
            merge,
            |_, top| top,
        )
        .flat_map(|top| {
            let (end, (bids, auctions)) = (top.key, top.value);
            auctions.into_iter().map(move |auction| Hottest { end, auction, bids })
        })
}

/// Highest bid: which bids have had the highest price of ten seconds?
pub fn q7(events: Stream<Event>) -> Stream<Bid, impl Operator<Keyed<i64, Bid>, Out = Bid>, Keyed<i64, Bid>> {
    let window = |bid: &Bid| bid.timestamp.div_euclid(TEN_SECONDS.as_millis() as i64);
    let mut rising = Rising::NEW;
    let highest = events.flat_map(Event::bid).filter(move |bid| rising.admits(window(bid), bid.price));
    highest
        .key_by(window)
        .window(Tumbling::of(TEN_SECONDS))
        .aggregate("q7", || (0, Vec::new()), |top, bid| add(top, bid.price, bid), merge, |_, top: Top<Bid>| top.1)
        .flat_map(|top| top.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ties at the top are rare in generated events.
    #[test]
    fn equals_are_let_through_and_older_windows_too() {
        let mut rising = Rising::NEW;
        let admitted = [(2, 5), (2, 4), (2, 5), (2, 7), (2, 6), (3, 1), (2, 1), (3, 0)];
        let admitted = admitted.map(|(window, value)| rising.admits(window, value));
        assert_eq!(admitted, [true, false, true, true, false, true, true, false]);
    }

    #[test]
    fn the_top_keeps_all_that_are_equal_whatever_is_merged() {
        let mut top: Top<char> = (0, Vec::new());
        [(3, 'a'), (5, 'b'), (5, 'c'), (4, 'd')].into_iter().for_each(|(number, value)| add(&mut top, number, value));
        merge(&mut top, (5, vec!['e']));
        assert_eq!(top, (5, vec!['b', 'c', 'e']));
        merge(&mut top, (4, vec!['f']));
        merge(&mut top, (6, vec!['g', 'h']));
        assert_eq!(top, (6, vec!['g', 'h']));
    }
}
