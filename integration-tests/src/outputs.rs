//! What the job that writes a folder and a table computes, and the checker of what they show.

use std::collections::BTreeMap;

/// Numbers that are summed: 0, 1, 2, …
pub const NUMBERS: u64 = 2_000;
/// A number belongs to the key that it is modulo this.
pub const KEYS: u64 = 7;

/// What does not hold of the sums that a reader sees, in the order in which he sees them. Every sum must be one number more
/// than the one before of its key, and every number must be in one: then none was lost or doubled, by the output or by
/// the state.
pub fn broken(shown: &[(u64, u64)]) -> Option<String> {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut numbers = Vec::new();
    for (key, sum) in shown {
        let before = last.insert(*key, *sum).unwrap_or_default();
        let Some(number) = sum.checked_sub(before).filter(|number| number % KEYS == *key) else {
            return Some(format!("key {key}: {sum} follows {before}"));
        };
        numbers.push(number);
    }
    numbers.sort_unstable();
    if numbers.iter().copied().eq(0..NUMBERS) {
        return None;
    }
    let wrong = numbers.iter().zip(0..).find(|(number, place)| **number != *place);
    Some(format!("{} numbers of {NUMBERS}, the first wrong one is {wrong:?}", numbers.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Vec<(u64, u64)> {
        let mut sums = [0; KEYS as usize];
        let sum = |n: u64| {
            sums[(n % KEYS) as usize] += n;
            (n % KEYS, sums[(n % KEYS) as usize])
        };
        (0..NUMBERS).map(sum).collect()
    }

    #[test]
    fn good_output_passes_and_what_is_lost_doubled_or_swapped_is_found() {
        assert_eq!(broken(&good()), None);
        let changed = |change: fn(&mut Vec<(u64, u64)>)| {
            let mut shown = good();
            change(&mut shown);
            broken(&shown)
        };
        assert!(changed(|shown| shown.truncate(1_999)).is_some());
        assert!(changed(|shown| shown.copy_within(101.., 100)).is_some());
        assert!(changed(|shown| shown.push(shown[500])).is_some());
        assert!(changed(|shown| shown.insert(500, shown[500])).is_some());
        assert!(changed(|shown| shown.swap(100, 107)).is_some());
    }
}
