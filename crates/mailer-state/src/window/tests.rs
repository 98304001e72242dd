//! Open windows against a map of maps, and what they leave in the store.

use super::*;
use crate::testing::{MapStore, Rng};
use std::collections::BTreeMap;

const ID: StateId = StateId { operator: 3, state: 1 };
type Model = BTreeMap<(u16, i64), u32>;

fn hash(key: u16) -> KeyHash {
    KeyHash(u64::from(key % 7) << 55) // many keys share a hash, and lie in different groups
}

fn window(start: i64) -> TimeWindow {
    TimeWindow::new(start, start + 10)
}

fn contents(state: &WindowState<u16, u32>) -> Model {
    let of = |slot| state.panes(slot).map(move |pane| ((*state.key(slot).1, pane.window.start.0), pane.value));
    state.slots().flat_map(of).collect()
}

fn change(state: &mut WindowState<u16, u32>, model: &mut Model, store: &mut MapStore, rng: &mut Rng) {
    let (key, start, value) = (rng.below(8) as u16, rng.below(30) as i64 * 10 - 70, rng.below(1_000) as u32);
    let slot = state.slot(hash(key), &key).unwrap();
    if rng.chance(60) {
        match state.get_mut(slot, Timestamp(start)) {
            Some(old) => *old = value,
            None => state.insert(slot, window(start), value),
        }
        model.insert((key, start), value);
    } else {
        assert_eq!(state.take(slot, Timestamp(start), store).unwrap(), model.remove(&(key, start)));
    }
    state.release(slot);
}

#[test]
fn behaves_like_a_map_over_write_backs_and_restarts() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let (mut store, mut model) = (MapStore::default(), Model::new());
        let mut state = WindowState::<u16, u32>::new(ID, 16);
        for _ in 0..400 {
            match rng.below(20) {
                0 => state.write_back(&mut store).unwrap(),
                1 => {
                    state.write_back(&mut store).unwrap();
                    assert_eq!(store.entries.len(), model.len(), "seed {seed}");
                    state = WindowState::new(ID, 16);
                    state.load(0..7, &mut store).unwrap();
                    state.load(7..16, &mut store).unwrap();
                }
                _ => change(&mut state, &mut model, &mut store, &mut rng),
            }
            assert_eq!(contents(&state), model, "seed {seed}");
        }
    }
}

#[test]
fn an_entry_lies_under_its_key_with_its_window_as_namespace() {
    let (mut store, mut state) = (MapStore::default(), WindowState::<String, u32>::new(ID, 1_024));
    let key = "alice".to_string();
    let hash = KeyHash::of(&key, &mut Vec::new()).unwrap();
    let slot = state.slot(hash, &key).unwrap();
    state.insert(slot, TimeWindow::new(-5_000, 0), 7);
    state.write_back(&mut store).unwrap();
    let (bytes, value) = store.entries.first_key_value().unwrap();
    let parsed = StateKey::parse(bytes).unwrap();
    assert_eq!((parsed.id, parsed.hash, parsed.group), (ID, hash, hash.group(1_024)));
    assert_eq!((parsed.key, value.as_slice()), (b"\x05alice".as_slice(), [7].as_slice()));
    assert_eq!(parse_window(parsed.namespace).unwrap(), TimeWindow::new(-5_000, 0));
}

#[test]
fn only_what_changed_is_written() {
    let (mut store, mut state) = (MapStore::default(), WindowState::<u16, u32>::new(ID, 16));
    let slot = state.slot(hash(1), &1).unwrap();
    state.insert(slot, window(0), 1);
    state.insert(slot, window(10), 2);
    state.write_back(&mut store).unwrap();
    store.entries.clear();
    *state.get_mut(slot, Timestamp(10)).unwrap() += 1;
    state.write_back(&mut store).unwrap();
    assert_eq!(store.entries.into_values().collect::<Vec<_>>(), [[3]]);
}

#[test]
fn slots_are_ordered_by_the_bytes_of_their_keys() {
    let mut state = WindowState::<String, u32>::new(ID, 16);
    let mut keys: Vec<String> =
        ["", "\0", "b", "a long key that ends in 2", "a long key that ends in 1", "aa"].map(String::from).to_vec();
    let mut slots: Vec<u32> = keys.iter().map(|key| state.slot(KeyHash(9), key).unwrap()).collect();
    state.sort(&mut slots, |slot| *slot).unwrap();
    keys.sort_by_key(|key| {
        let mut bytes = Vec::new();
        codec::encode(key, &mut bytes).unwrap();
        bytes
    });
    assert_eq!(slots.iter().map(|&slot| state.key(slot).1.clone()).collect::<Vec<_>>(), keys);
    assert!(slots.windows(2).all(|pair| state.compare(pair[0], pair[1]).unwrap().is_lt()));
}

#[test]
fn a_value_of_another_type_is_corrupt_and_names_the_state() {
    let (mut store, mut text) = (MapStore::default(), WindowState::<u8, String>::new(ID, 16));
    let slot = text.slot(KeyHash(1), &1).unwrap();
    text.insert(slot, window(0), "long text".into());
    text.write_back(&mut store).unwrap();
    let error = WindowState::<u8, u8>::new(ID, 16).load(0..16, &mut store).unwrap_err();
    assert_eq!(error.kind(), mailer_core::ErrorKind::Corrupt);
    assert!(error.message().starts_with("state 1 of operator 3: "), "{error}");
}

#[test]
fn an_open_window_is_as_large_as_documented() {
    assert_eq!(size_of::<Pane<u64>>(), 32);
    assert_eq!(slots::Slots::<u64, Panes<u64>>::SLOT_BYTES, 64);
}
