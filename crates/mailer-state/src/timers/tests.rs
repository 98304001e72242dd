//! Timers against a set, over write-backs and restarts; and their bytes in the store.

use super::*;
use crate::layout::TimerKey;
use crate::testing::{MapStore, Rng};
use std::collections::BTreeSet;

const ID: StateId = StateId { operator: 3, state: 1 };
const GROUPS: u16 = 16;

fn open<P: TimerPayload>(store: &mut MapStore) -> Timers<String, P> {
    Timers::open(ID, GROUPS, 0..GROUPS, store).unwrap()
}

fn hash(key: &str) -> KeyHash {
    KeyHash::of(key, &mut Vec::new()).unwrap()
}

/// Time, encoded key, payload: the order that is promised.
type Model = BTreeSet<(i64, Vec<u8>, u8)>;

fn encoded(key: &str) -> Vec<u8> {
    EncodedKey::of(key, &mut Vec::new()).unwrap().as_bytes().to_vec()
}

fn check_pop(timers: &mut Timers<String, u8>, model: &mut Model, now: i64) {
    let expected = model.first().filter(|(time, ..)| *time <= now).cloned();
    expected.iter().for_each(|first| assert!(model.remove(first)));
    let popped = timers.pop_due(Timestamp(now)).unwrap();
    assert!(popped.iter().all(|due| due.hash == hash(&due.key)));
    assert_eq!(popped.map(|due| (due.time.0, encoded(&due.key), due.payload)), expected);
}

#[test]
fn behave_like_a_set() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let (mut store, mut model) = (MapStore::default(), Model::new());
        let mut timers = open::<u8>(&mut store);
        for _ in 0..400 {
            let key = ["a", "bb", "", "a key of more than twenty-two bytes"][rng.below(4)].to_owned();
            let (time, payload) = (rng.below(30) as i64 - 15, rng.below(3) as u8);
            match rng.below(10) {
                0..=4 => {
                    timers.register(Timestamp(time), hash(&key), &key, payload).unwrap();
                    model.insert((time, encoded(&key), payload));
                }
                5 => {
                    timers.delete(Timestamp(time), hash(&key), &key, payload).unwrap();
                    model.remove(&(time, encoded(&key), payload));
                }
                6 | 7 => check_pop(&mut timers, &mut model, time),
                8 => timers.write_back(&mut store).unwrap(),
                _ => {
                    timers.write_back(&mut store).unwrap();
                    timers = open(&mut store);
                }
            }
            assert_eq!(timers.len(), model.len(), "seed {seed}");
            assert_eq!(timers.next_time().map(|time| time.0), model.first().map(|(time, ..)| *time), "seed {seed}");
        }
        while !model.is_empty() {
            check_pop(&mut timers, &mut model, i64::MAX);
        }
        timers.write_back(&mut store).unwrap();
        assert!(store.entries.is_empty(), "seed {seed}");
    }
}

#[test]
fn lie_in_the_frozen_layout_with_their_payloads_as_a_list() {
    let (mut store, key) = (MapStore::default(), "alice".to_owned());
    let mut timers = open::<u8>(&mut store);
    for payload in [9, 2] {
        timers.register(Timestamp(-1), hash(&key), &key, payload).unwrap();
    }
    timers.write_back(&mut store).unwrap();
    let (bytes, value) = store.entries.first_key_value().unwrap();
    let group = hash(&key).group(GROUPS);
    let expected = TimerKey { group, id: ID, time: Timestamp(-1), hash: hash(&key), key: b"\x05alice" };
    assert_eq!((TimerKey::parse(bytes).unwrap(), value.as_slice()), (expected, [2, 2, 9].as_slice()));
    assert_eq!(store.entries.len(), 1);
    timers.delete(Timestamp(-1), hash(&key), &key, 2).unwrap();
    timers.write_back(&mut store).unwrap();
    assert_eq!(store.entries.values().next().unwrap(), &[1, 9]);
}

#[test]
fn a_group_of_another_worker_is_left_alone() {
    let mut store = MapStore::default();
    let mut timers = open::<()>(&mut store);
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"].map(str::to_owned);
    keys.iter().for_each(|key| timers.register(Timestamp(5), hash(key), key, ()).unwrap());
    timers.write_back(&mut store).unwrap();
    let of = |owned: Range<u16>, store: &mut MapStore| Timers::<String, ()>::open(ID, GROUPS, owned, store).unwrap();
    let (low, high) = (of(0..8, &mut store), of(8..16, &mut store));
    assert!(!low.is_empty() && !high.is_empty());
    assert_eq!(low.len() + high.len(), keys.len());
}

#[test]
fn what_came_and_went_between_two_write_backs_is_never_written() {
    /// Fails at every write.
    struct Full(MapStore);
    impl StateStore for Full {
        fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
            self.0.get(key, value)
        }
        fn put(&mut self, _: &[u8], _: &[u8]) -> Result<()> {
            Err(mailer_core::Error::unavailable("full"))
        }
        fn delete(&mut self, _: &[u8]) -> Result<()> {
            Err(mailer_core::Error::unavailable("full"))
        }
        fn scan(&mut self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<bool>) -> Result<()> {
            self.0.scan(prefix, visit)
        }
        fn snapshot(&mut self, id: mailer_core::CheckpointId) -> Result<crate::SnapshotJob> {
            self.0.snapshot(id)
        }
    }
    let (mut full, key) = (Full(MapStore::default()), "k".to_owned());
    let mut timers = open::<u8>(&mut full.0);
    timers.register(Timestamp(1), hash(&key), &key, 0).unwrap();
    assert!(timers.pop_due(Timestamp(1)).unwrap().is_some());
    timers.write_back(&mut full).unwrap();
    timers.register(Timestamp(2), hash(&key), &key, 0).unwrap();
    timers.write_back(&mut full).unwrap_err();
    timers.write_back(&mut full.0).unwrap();
    assert_eq!(full.0.entries.len(), 1, "a failed write-back is made good by the next");
}
