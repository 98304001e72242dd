//! Broadcast state under every schedule, over restores, and for another number of workers.

use super::*;
use crate::harness::{Harness, Input, check_script};
use crate::process::{Context, States, Value};
use mailer_core::{Either, Keyed};

/// Puts out how often a key was seen, times the factor of its colour.
#[derive(Clone, Default)]
struct Factors {
    factors: Broadcast<String, u64>,
    count: Value<u64>,
}

type Change = (String, Option<u64>);

impl BroadcastFunction<u8, String, Change> for Factors {
    type Out = u64;

    fn states(&mut self, states: &mut States<'_>) {
        states.broadcast("factors", &mut self.factors);
        states.keyed("count", &mut self.count);
    }

    fn on_record(&mut self, colour: String, cx: &mut Context<'_, u8, u64>) -> Result<()> {
        let count = self.count.update(cx, |count| {
            *count += 1;
            *count
        })?;
        cx.emit(count * self.factors.get(&colour).copied().unwrap_or(0));
        Ok(())
    }

    fn on_broadcast(&mut self, (colour, factor): Change, cx: &mut BroadcastContext<'_, u64>) -> Result<()> {
        match factor {
            Some(factor) => self.factors.set(cx, colour, factor),
            None => {
                self.factors.remove(cx, &colour);
                cx.emit(self.factors.len() as u64);
            }
        }
        Ok(())
    }
}

type In = Either<Keyed<u8, String>, Change>;

fn seen(time: i64, key: u8, colour: &str) -> Input<In> {
    let hash = KeyHash::of(&key, &mut Vec::new()).unwrap();
    Input::Record(time, Either::Left(Keyed { hash, key, value: colour.to_owned() }))
}

fn change(time: i64, colour: &str, factor: Option<u64>) -> Input<In> {
    Input::Record(time, Either::Right((colour.to_owned(), factor)))
}

fn operator() -> BroadcastProcess<u8, String, Change, Factors> {
    BroadcastProcess::new("factors", Factors::default())
}

#[test]
fn the_keyed_side_sees_what_the_broadcast_side_has_written() {
    let script = [
        seen(1, 1, "red"),
        change(2, "red", Some(10)),
        change(2, "blue", Some(100)),
        seen(3, 1, "red"),
        seen(4, 2, "blue"),
        change(5, "blue", None),
        seen(6, 2, "blue"),
        change(7, "green", None),
        Input::Watermark(7),
        seen(8, 1, "red"),
    ];
    let expected = [(1, 0), (3, 20), (4, 100), (5, 1), (6, 0), (7, 1), (8, 30)];
    check_script(operator(), &script, &expected).unwrap();
}

#[test]
fn every_worker_reads_what_the_first_has_written_and_only_it_writes() {
    let id = StateId { operator: 1, state: 2 };
    let mut store = mailer_state::testing::MapStore::default();
    let state = |writes| Broadcast::<String, u64> { id: Some(id), writes, ..Broadcast::default() };
    for (writes, entries) in [(false, 0), (true, 1)] {
        let mut worker = state(writes);
        worker.change(&"red".to_owned());
        worker.entries.insert("red".to_owned(), 7);
        Named(&mut worker).write_back(&mut store).unwrap();
        assert_eq!(store.entries.len(), entries);
    }
    let place = store.entries.keys().next().unwrap();
    assert_eq!(StateKey::parse(place).unwrap().group, KeyGroup(FIRST_UNKEYED_GROUP));
    let mut other = state(false);
    other.read(id, &mut store).unwrap();
    assert_eq!(other.iter().collect::<Vec<_>>(), [(&"red".to_owned(), &7)]);
}

#[test]
fn only_changes_are_written() {
    let mut harness = Harness::new(operator()).unwrap();
    harness.feed([change(0, "red", Some(1)), change(0, "blue", Some(2))]).unwrap();
    harness.snapshot().unwrap();
    assert_eq!(harness.state_entries(), 2);
    harness.feed([change(0, "red", None), change(0, "blue", Some(3))]).unwrap();
    harness.snapshot().unwrap();
    assert_eq!(harness.state_entries(), 1);
}
