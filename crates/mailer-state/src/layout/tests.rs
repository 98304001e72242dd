//! The layout against its frozen vectors, and against the collisions it exists to prevent.

use super::*;

const ENTRIES: &str = include_str!("../../testdata/v1/state-keys.txt");
const TIMERS: &str = include_str!("../../testdata/v1/timer-keys.txt");
const WINDOWS: &str = include_str!("../../testdata/v1/windows.txt");

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace().collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let text = text.trim_matches('-');
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn number(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

fn id(operator: &str, state: &str) -> StateId {
    StateId { operator: number(operator) as u16, state: number(state) as u16 }
}

#[test]
fn entries_match_the_frozen_vectors() {
    let mut count = 0;
    for line in lines(ENTRIES) {
        let [group, operator, state, hash, key, namespace, user_key, expected] = line[..] else { panic!("{line:?}") };
        let (key, namespace, user_key) = (unhex(key), unhex(namespace), unhex(user_key));
        let parts = StateKey {
            group: KeyGroup(number(group) as u16),
            id: id(operator, state),
            hash: KeyHash(number(hash)),
            key: &key,
            namespace: &namespace,
            user_key: &user_key,
        };
        let mut bytes = vec![1, 2, 3];
        parts.encode(&mut bytes).unwrap();
        assert_eq!(hex(&bytes), expected);
        assert_eq!(StateKey::parse(&unhex(expected)).unwrap(), parts);
        count += 1;
    }
    assert!(count >= 6, "the vectors are there");
}

#[test]
fn timers_match_the_frozen_vectors_and_sort_by_time() {
    let mut sorted = Vec::new();
    for line in lines(TIMERS) {
        let [group, operator, state, time, hash, key, expected] = line[..] else { panic!("{line:?}") };
        let (key, time) = (unhex(key), Timestamp(time.parse().unwrap()));
        let (group, hash) = (KeyGroup(number(group) as u16), KeyHash(number(hash)));
        let timer = TimerKey { group, id: id(operator, state), time, hash, key: &key };
        let mut bytes = Vec::new();
        timer.encode(&mut bytes);
        assert_eq!(hex(&bytes), expected);
        assert_eq!(TimerKey::parse(&bytes).unwrap(), timer);
        sorted.push((bytes, time));
    }
    assert!(sorted.len() >= 4 && sorted.is_sorted() && sorted.is_sorted_by_key(|(_, time)| *time));
}

#[test]
fn parts_of_different_lengths_never_collide() {
    let parts: [&[u8]; 4] = [b"", b"a", b"ab", b"b"];
    let mut seen = std::collections::BTreeSet::new();
    for key in parts {
        for namespace in parts {
            for user_key in parts {
                let id = StateId { operator: 1, state: 1 };
                let mut bytes = Vec::new();
                StateKey { group: KeyGroup(1), id, hash: KeyHash(1), key, namespace, user_key }
                    .encode(&mut bytes)
                    .unwrap();
                assert!(seen.insert(bytes), "{key:?} {namespace:?} {user_key:?}");
            }
        }
    }
}

#[test]
fn every_cut_of_the_fixed_parts_is_refused() {
    let id = StateId { operator: 1, state: 1 };
    let mut bytes = Vec::new();
    StateKey { group: KeyGroup(1), id, hash: KeyHash(1), key: b"key", namespace: b"w", user_key: b"" }
        .encode(&mut bytes)
        .unwrap();
    for length in 0..bytes.len() {
        let error = StateKey::parse(&bytes[..length]).unwrap_err();
        assert_eq!(error.kind(), mailer_core::ErrorKind::Corrupt, "{length} bytes");
    }
}

#[test]
fn windows_match_the_frozen_vectors_and_sort_by_start() {
    let mut sorted = Vec::new();
    for line in lines(WINDOWS) {
        let [start, end, expected] = line[..] else { panic!("{line:?}") };
        let window = mailer_core::TimeWindow::new(start.parse().unwrap(), end.parse().unwrap());
        let namespace = window_namespace(window);
        assert_eq!(hex(&namespace), expected);
        assert_eq!(parse_window(&namespace).unwrap(), window);
        sorted.push((namespace, window.start));
    }
    assert!(sorted.len() >= 5 && sorted.is_sorted() && sorted.is_sorted_by_key(|(_, start)| *start));
    assert!(parse_window(&[0; 15]).is_err() && parse_window(&[0; 17]).is_err());
}
