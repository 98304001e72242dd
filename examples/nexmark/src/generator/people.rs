//! Somebody registers.

use super::ids::{self, FIRST};
use super::random::Random;
use crate::event::Person;

const STATES: [&str; 6] = ["AZ", "CA", "ID", "OR", "WA", "WY"];
const CITIES: [&str; 10] =
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"];
const FIRST_NAMES: [&str; 11] =
    ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"];
const LAST_NAMES: [&str; 9] = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"];
/// Bytes of a person.
const SIZE: usize = 200;

pub(super) fn person(number: u64, timestamp: i64, random: &mut Random) -> Person {
    let name = format!("{} {}", random.one(&FIRST_NAMES), random.one(&LAST_NAMES));
    let email = format!("{}@{}.com", random.words(7), random.words(5));
    let mut digits = || format!("{:04}", random.below(10_000));
    let credit_card = [digits(), digits(), digits(), digits()].join(" ");
    let (city, state) = (random.one(&CITIES), random.one(&STATES));
    let size = 8 + name.len() + email.len() + credit_card.len() + city.len() + state.len();
    Person {
        id: FIRST + ids::last_person(number),
        name: name.into(),
        email: email.into(),
        credit_card: credit_card.into(),
        city: city.into(),
        state: state.into(),
        timestamp,
        extra: random.extra(size, SIZE),
    }
}
