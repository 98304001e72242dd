//! A block of events that is made once and repeated: making an event costs more than most queries do with it.

use crate::event::{Event, Text};
use crate::generator::Model;
use mailer_runtime::{Env, Generator, Stream, Watermarks};
use std::mem::size_of;
use std::sync::Arc;

/// Hot ids are those of every hundredth person and auction; after so many events both begin anew.
const ALIGNMENT: u64 = 5_000;

/// Events of a model. Behind the end of the block they begin again, with ids and times that go on where it ended. So each
/// block begins, as the first one does, with few people and auctions in flight.
///
/// Text lies in one arena, which stays in memory for the life of the process.
#[derive(Clone, Debug)]
pub struct Replay {
    model: Model,
    block: Arc<[Event]>,
}

impl Replay {
    /// Makes a block of at least `events` events: a multiple of 5,000 in which no group of the model is cut in two.
    pub fn new(model: &Model, events: u64) -> Self {
        let mut length = events.max(1).next_multiple_of(ALIGNMENT);
        while !length.is_multiple_of(model.group) {
            length += ALIGNMENT;
        }
        let mut block: Vec<Event> = (0..length).map(|at| model.event(model.number_at(at))).collect();
        settle(&mut block);
        Self { model: model.clone(), block: block.into() }
    }

    /// The event at `position`.
    #[inline]
    pub fn at(&self, position: u64) -> Event {
        let length = self.block.len() as u64;
        let (round, at) = (position / length, position % length);
        let event = self.block[at as usize].clone();
        if round == 0 { event } else { self.shifted(event, round * length) }
    }

    /// The same `events` events later.
    fn shifted(&self, mut event: Event, events: u64) -> Event {
        let (people, auctions) = (events / 50, events / 50 * 3);
        let time = self.model.timestamp(events) - self.model.begin;
        match &mut event {
            Event::Person(person) => {
                person.id += people;
                person.timestamp += time;
            }
            Event::Auction(auction) => {
                auction.id += auctions;
                auction.seller += people;
                auction.timestamp += time;
                auction.expires += time;
            }
            Event::Bid(bid) => {
                bid.auction += auctions;
                bid.bidder += people;
                bid.timestamp += time;
            }
        }
        event
    }

    /// The first `count` events as a source with event time, read by `workers` workers.
    pub fn source(&self, env: &Env, workers: u16, count: u64) -> Stream<Event> {
        let (replay, time) = (self.clone(), Watermarks::bounded(self.model.disorder()));
        let events = Generator::new(move |position| replay.at(position)).count(count).bytes_each(size_of::<Event>());
        env.source("events", events).partitions(workers).watermarks(time.timestamps(Event::timestamp))
    }
}

/// Moves owned text into one arena.
fn settle(events: &mut [Event]) {
    let mut arena = String::new();
    events.iter_mut().flat_map(texts).for_each(|text| arena.push_str(text));
    let mut left: &'static str = Box::leak(arena.into_boxed_str());
    for text in events.iter_mut().flat_map(texts) {
        let (own, rest) = left.split_at(text.len());
        (*text, left) = (own.into(), rest);
    }
}

/// The texts that an event owns; others are of lists already.
fn texts(event: &mut Event) -> Vec<&mut Text> {
    match event {
        Event::Person(person) => {
            vec![&mut person.name, &mut person.email, &mut person.credit_card, &mut person.extra]
        }
        Event::Auction(auction) => vec![&mut auction.item, &mut auction.description, &mut auction.extra],
        Event::Bid(bid) => vec![&mut bid.extra],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn the_first_block_is_that_of_the_model_and_others_go_on() {
        let model = Model { seed: 3, rate: 1_000, group: 20, ..Model::default() };
        let replay = Replay::new(&model, 7_000);
        for position in 0..10_000 {
            assert_eq!(replay.at(position), model.event(model.number_at(position)));
        }
        let (first, second) = (replay.at(104), replay.at(10_104));
        assert_eq!(second.timestamp() - first.timestamp(), 10_000);
        let (Some(first), Some(second)) = (first.bid(), second.bid()) else { panic!("both are bids") };
        assert_eq!((second.auction - first.auction, second.bidder - first.bidder), (600, 200));
        assert!(matches!((first.extra, first.url), (Cow::Borrowed(_), Cow::Borrowed(_))));
    }
}
