//! The standard event model: event number *n* of an auction house, as a function of seed and number.
//!
//! Of every 50 events one is a person, three are auctions, 46 are bids. Ids have no gaps, so it is known without any memory
//! which people and auctions there are at event *n*. Some are hot: half of all bids go to one auction of the last hundred,
//! three of four bids come from one person of the last hundred, and three of four auctions are sold by one.

mod auctions;
mod bids;
mod ids;
mod people;
mod random;

use crate::event::Event;
use ids::Turn;
use random::Random;
use std::time::Duration;

/// What is generated. Equal settings give equal events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Chance begins here.
    pub seed: u64,
    /// Event time of event 0, in milliseconds.
    pub begin: i64,
    /// Events in a second of event time.
    pub rate: u64,
    /// Events come in groups of so many, in another order than that of their time within each. 1: in order. Not a multiple
    /// of 953.
    pub group: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self { seed: 0, begin: 1_436_918_400_000, rate: 10_000, group: 1 }
    }
}

impl Model {
    /// The number of the event that comes at `position`.
    #[inline]
    pub fn number_at(&self, position: u64) -> u64 {
        let offset = position % self.group;
        position - offset + offset * 953 % self.group
    }

    /// Event time of event `number`, in milliseconds.
    #[inline]
    pub fn timestamp(&self, number: u64) -> i64 {
        self.begin + (u128::from(number) * 1_000 / u128::from(self.rate)) as i64
    }

    /// How much later than a following event an event can be: the bound for watermarks.
    pub fn disorder(&self) -> Duration {
        if self.group == 1 { Duration::ZERO } else { Duration::from_millis(self.group * 1_000 / self.rate + 1) }
    }

    /// Event `number`.
    pub fn event(&self, number: u64) -> Event {
        let (mut random, timestamp) = (Random::of(self.seed, number), self.timestamp(number));
        match ids::turn(number) {
            Turn::Person => Event::Person(Box::new(people::person(number, timestamp, &mut random))),
            Turn::Auction => Event::Auction(Box::new(auctions::auction(self, number, timestamp, &mut random))),
            Turn::Bid => Event::Bid(bids::bid(number, timestamp, &mut random)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn events(count: u64) -> Vec<Event> {
        (0..count).map(|number| Model::default().event(number)).collect()
    }

    #[test]
    fn equal_seeds_give_equal_events_and_others_do_not() {
        let model = Model { seed: 7, ..Model::default() };
        assert_eq!(model.event(123_456), model.clone().event(123_456));
        assert_ne!(model.event(123_456), Model { seed: 8, ..model.clone() }.event(123_456));
    }

    #[test]
    fn of_fifty_events_one_is_a_person_and_three_are_auctions() {
        for (number, event) in events(500).into_iter().enumerate() {
            let offset = number % 50;
            match event {
                Event::Person(person) => assert!(offset == 0 && person.id == 1_000 + number as u64 / 50),
                Event::Auction(auction) => {
                    assert!((1..4).contains(&offset) && auction.id == 1_000 + (number / 50 * 3 + offset - 1) as u64);
                }
                Event::Bid(_) => assert!(offset >= 4),
            }
        }
    }

    /// The hot auction and the hot bidder at the time of event `number`.
    fn hot(number: u64) -> (u64, u64) {
        let (person, auction) = (number / 50, number / 50 * 3 + 2);
        (1_000 + auction / 100 * 100, 1_000 + person / 100 * 100 + 1)
    }

    #[test]
    fn hot_keys_have_their_share() {
        let (mut bids, mut to_hot, mut by_hot, mut auctions, mut hot_sellers) = (0u32, 0u32, 0u32, 0u32, 0u32);
        for (number, event) in events(100_000).into_iter().enumerate().skip(50_000) {
            let (auction, bidder) = hot(number as u64);
            match event {
                Event::Bid(bid) => {
                    (bids, to_hot) = (bids + 1, to_hot + u32::from(bid.auction == auction));
                    by_hot += u32::from(bid.bidder == bidder);
                }
                Event::Auction(offered) => {
                    (auctions, hot_sellers) = (auctions + 1, hot_sellers + u32::from(offered.seller == bidder - 1));
                }
                Event::Person(_) => {}
            }
        }
        let share = |part: u32, of: u32| f64::from(part) / f64::from(of);
        assert!((share(to_hot, bids) - 0.5).abs() < 0.02, "{to_hot} of {bids}");
        assert!((share(by_hot, bids) - 0.75).abs() < 0.02, "{by_hot} of {bids}");
        assert!((share(hot_sellers, auctions) - 0.75).abs() < 0.03, "{hot_sellers} of {auctions}");
    }

    #[test]
    fn ids_point_at_what_is_in_flight_and_a_little_ahead() {
        for (number, event) in events(60_000).into_iter().enumerate() {
            let (person, auction) = (1_000 + number as u64 / 50, 1_000 + number as u64 / 50 * 3 + 2);
            match event {
                Event::Bid(bid) => {
                    assert!(bid.auction <= auction + 10 && bid.auction + 200 > auction, "{number}: {bid:?}");
                    assert!(bid.bidder <= person + 10 && bid.bidder + 1_000 > person, "{number}: {bid:?}");
                    assert!((100..=100_000_000).contains(&bid.price));
                }
                Event::Auction(offered) => {
                    assert!(offered.seller <= person + 10 && offered.seller + 1_000 > person);
                    assert!((10..15).contains(&offered.category) && offered.expires > offered.timestamp);
                    // Twice the time of 100 auctions, which are 1,666 events.
                    assert!(offered.expires <= offered.timestamp + 1 + 2 * 167);
                }
                Event::Person(_) => {}
            }
        }
    }

    #[test]
    fn events_are_as_long_as_they_are_to_be() {
        let mut sizes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut channels = BTreeSet::new();
        for event in events(20_000) {
            let (kind, size) = match &event {
                Event::Person(p) => (
                    "person",
                    p.name.len()
                        + p.email.len()
                        + p.credit_card.len()
                        + p.city.len()
                        + p.state.len()
                        + p.extra.len()
                        + 8,
                ),
                Event::Auction(a) => ("auction", a.item.len() + a.description.len() + a.extra.len() + 7 * 8),
                Event::Bid(b) => ("bid", b.extra.len() + 4 * 8),
            };
            let sum = sizes.entry(kind).or_default();
            *sum = (sum.0 + size, sum.1 + 1);
            channels.extend(event.bid().map(|bid| bid.channel));
        }
        let mean = |kind| sizes[kind].0 / sizes[kind].1;
        assert!((190..=210).contains(&mean("person")), "{}", mean("person"));
        assert!((480..=520).contains(&mean("auction")), "{}", mean("auction"));
        assert!((95..=105).contains(&mean("bid")), "{}", mean("bid"));
        assert!(channels.contains("Google") && channels.len() > 4_000);
    }

    #[test]
    fn disorder_stays_within_its_group_and_loses_nothing() {
        let model = Model { group: 20, rate: 1_000, ..Model::default() };
        let numbers: Vec<u64> = (0..2_000).map(|position| model.number_at(position)).collect();
        assert!(numbers.iter().enumerate().all(|(position, number)| position as u64 / 20 == number / 20));
        assert!(!numbers.is_sorted());
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), 2_000);
        let (mut most, bound) = (i64::MIN, model.disorder().as_millis() as i64);
        for number in numbers {
            most = most.max(model.timestamp(number));
            assert!(model.timestamp(number) >= most - bound);
        }
    }
}
