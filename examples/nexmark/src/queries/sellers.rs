//! People and what they sell: one event of either kind after the other under the same key.

use super::{CATEGORY, TEN_SECONDS};
use crate::event::{Event, Text};
use mailer_runtime::process::{Context, List, ProcessFunction, States, Value};
use mailer_runtime::{Either, Keyed, Operator, Result, Stream, Tumbling};
use serde::{Deserialize, Serialize};

/// Somebody who sells near the people asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offered {
    /// Of the seller.
    pub name: Text,
    /// Of the seller.
    pub city: Text,
    /// Of the seller.
    pub state: Text,
    /// What is sold.
    pub auction: u64,
}

/// A person who has registered and sold something in the same window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NewSeller {
    /// The person.
    pub id: u64,
    /// The person's name.
    pub name: Text,
    /// The beginning of the window.
    pub start: i64,
}

/// Name, city and state.
type Address = (Text, Text, Text);
type Side = (u64, Either<Address, u64>);

/// Local item suggestion: who sells in a category, in three states? Both sides are kept for ever.
pub fn q3(events: Stream<Event>) -> Stream<Offered, impl Operator<Keyed<u64, Side>, Out = Offered>, Keyed<u64, Side>> {
    let side = |event: Event| match event {
        Event::Person(person) if ["OR", "ID", "CA"].contains(&&*person.state) => {
            Some((person.id, Either::Left((person.name, person.city, person.state))))
        }
        Event::Auction(auction) if auction.category == CATEGORY => Some((auction.seller, Either::Right(auction.id))),
        _ => None,
    };
    events.flat_map(side).key_by(|side| side.0).process("q3", Suggest::default())
}

/// What waits for the other side.
#[derive(Clone, Default)]
struct Suggest {
    person: Value<Address>,
    auctions: List<u64>,
}

fn offered((name, city, state): Address, auction: u64) -> Offered {
    Offered { name, city, state, auction }
}

impl ProcessFunction<u64, Side> for Suggest {
    type Out = Offered;

    fn states(&mut self, states: &mut States<'_>) {
        states.keyed("person", &mut self.person);
        states.keyed("auctions", &mut self.auctions);
    }

    fn on_record(&mut self, (_, side): Side, cx: &mut Context<'_, u64, Offered>) -> Result<()> {
        match side {
            Either::Left(person) => {
                self.auctions.take(cx)?.into_iter().for_each(|auction| cx.emit(offered(person.clone(), auction)));
                self.person.set(cx, person)
            }
            Either::Right(auction) => match self.person.get(cx)?.cloned() {
                Some(person) => {
                    cx.emit(offered(person, auction));
                    Ok(())
                }
                None => self.auctions.push(cx, auction),
            },
        }
    }
}

/// What a window has seen of a person.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Seen {
    name: Option<Text>,
    sells: bool,
}

type Sign = (u64, Option<Text>);

/// New users: who has registered and sold something within the same ten seconds?
pub fn q8(
    events: Stream<Event>,
) -> Stream<NewSeller, impl Operator<Keyed<u64, Sign>, Out = NewSeller>, Keyed<u64, Sign>> {
    let sign = |event: Event| match event {
        Event::Person(person) => Some((person.id, Some(person.name))),
        Event::Auction(auction) => Some((auction.seller, None)),
        Event::Bid(_) => None,
    };
    let add = |seen: &mut Seen, (_, name): Sign| match name {
        Some(name) => seen.name = Some(name),
        None => seen.sells = true,
    };
    let merge = |seen: &mut Seen, later: Seen| {
        (seen.name, seen.sells) = (seen.name.take().or(later.name), seen.sells || later.sells);
    };
    let windows = events.flat_map(sign).key_by(|sign| sign.0).window(Tumbling::of(TEN_SECONDS));
    windows.aggregate("q8", Seen::default, add, merge, |_, seen| seen.name.filter(|_| seen.sells)).flat_map(|seen| {
        let (id, start) = (seen.key, seen.window.start.0);
        seen.value.map(|name| NewSeller { id, name, start })
    })
}
