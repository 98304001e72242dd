//! The checkers: one property each.

use super::log::{Entry, ModelLog};
use super::pipeline::{KEYS, RECORDS, key};
use super::storage::SimStorage;
use mailer_checkpoint::Status;
use mailer_checkpoint::manifest::{Kind, Manifest};
use std::collections::{BTreeMap, BTreeSet};

/// A property and, where it does not hold, how.
pub type Verdict = (&'static str, Result<(), String>);

/// Asks everything of a finished world.
pub fn all(storage: &SimStorage, counts: &ModelLog, copies: &ModelLog) -> Vec<Verdict> {
    vec![
        ("nothing lost", nothing_lost(&copies.committed())),
        ("nothing doubled", nothing_doubled(&copies.committed())),
        ("order per key", order_per_key(&counts.committed())),
        ("state equals a replay", state_equals_replay(&counts.committed())),
        ("positions contiguous", positions_at_end(storage)),
        ("no transaction open", no_open_transaction(&[counts, copies])),
        ("nothing left behind", nothing_left_behind(storage)),
    ]
}

/// Every record was copied.
pub fn nothing_lost(copies: &[Entry]) -> Result<(), String> {
    let seen: BTreeSet<_> = copies.iter().map(|entry| entry.value).collect();
    let lost: Vec<_> = (0..RECORDS).filter(|n| !seen.contains(n)).collect();
    if lost.is_empty() { Ok(()) } else { Err(format!("lost {lost:?}")) }
}

/// No record was copied twice.
pub fn nothing_doubled(copies: &[Entry]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let doubled: Vec<_> = copies.iter().filter(|entry| !seen.insert(entry.value)).map(|entry| entry.value).collect();
    if doubled.is_empty() { Ok(()) } else { Err(format!("doubled {doubled:?}")) }
}

/// The counts of a key go up by one from record to record.
pub fn order_per_key(counts: &[Entry]) -> Result<(), String> {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in counts {
        let before = last.insert(entry.key, entry.value).unwrap_or(0);
        if entry.value != before + 1 {
            return Err(format!("key {}: {} follows {before}", entry.key, entry.value));
        }
    }
    Ok(())
}

/// The last count of every key is what a single-threaded program counts.
pub fn state_equals_replay(counts: &[Entry]) -> Result<(), String> {
    let mut expected = vec![0u64; KEYS as usize];
    (0..RECORDS).for_each(|n| expected[key(n) as usize] += 1);
    let mut actual = vec![0u64; KEYS as usize];
    counts.iter().for_each(|entry| actual[entry.key as usize] = actual[entry.key as usize].max(entry.value));
    if actual == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {actual:?}")) }
}

/// The last checkpoint is completed, final, and stands at the end of every split.
pub fn positions_at_end(storage: &SimStorage) -> Result<(), String> {
    let Some((manifest, status)) = storage.newest() else { return Err("no checkpoint at all".into()) };
    if status != Status::Completed || manifest.kind() != Kind::Final {
        return Err(format!("the last checkpoint is {:?} and {status:?}", manifest.kind()));
    }
    let read = positions(&manifest)?;
    if read == RECORDS { Ok(()) } else { Err(format!("positions add up to {read} of {RECORDS}")) }
}

fn positions(manifest: &Manifest) -> Result<u64, String> {
    let splits = manifest.sources.iter().flat_map(|source| &source.splits);
    splits.map(|split| mailer_core::codec::decode::<u64>(&split.position).map_err(|e| e.to_string())).sum()
}

/// No transaction waits for its end.
pub fn no_open_transaction(logs: &[&ModelLog]) -> Result<(), String> {
    let open = logs.iter().filter(|log| log.has_open_transaction()).count();
    if open == 0 { Ok(()) } else { Err(format!("{open} transactions are open")) }
}

/// No staged segment outlives its publish.
pub fn nothing_left_behind(storage: &SimStorage) -> Result<(), String> {
    let left = storage.segments();
    if left.is_empty() { Ok(()) } else { Err(format!("segments left: {left:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(values: impl IntoIterator<Item = u64>) -> Vec<Entry> {
        values.into_iter().map(|n| Entry { key: key(n), value: n }).collect()
    }

    #[test]
    fn each_checker_fails_on_its_own_fault_only() {
        let good = copies(0..RECORDS);
        assert!(nothing_lost(&good).is_ok() && nothing_doubled(&good).is_ok());
        assert!(nothing_lost(&good[1..]).is_err() && nothing_doubled(&good[1..]).is_ok());
        let doubled = copies((0..RECORDS).chain([7]));
        assert!(nothing_lost(&doubled).is_ok() && nothing_doubled(&doubled).is_err());
    }

    #[test]
    fn counts_that_skip_repeat_or_stop_early_are_found() {
        let count = |key, value| Entry { key, value };
        assert!(order_per_key(&[count(1, 1), count(2, 1), count(1, 2)]).is_ok());
        assert!(order_per_key(&[count(1, 1), count(1, 3)]).is_err());
        assert!(order_per_key(&[count(1, 1), count(1, 1)]).is_err());
        assert!(state_equals_replay(&[count(1, 1)]).is_err());
    }
}
