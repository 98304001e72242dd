//! What must be true of everything that members wrote down. One property a check.

use crate::journal::Entry;
use crate::play::{INTERVAL, Played};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

/// How much longer than a commit interval the last commit before a kill may lie back: it has to be made, sent and
/// answered, on a machine that does other things too.
const SLACK: Duration = Duration::from_millis(750);

type Outcome = Result<String, String>;

pub(crate) fn all(played: &Played) -> Vec<(&'static str, Outcome)> {
    vec![
        ("every record is handled", handled(played)),
        ("records of a key are handled in order", in_order(&played.entries)),
        ("only what was completed since the last commit is handled again", repeated(played)),
        ("committed offsets never go back", commits(played)),
        ("members that are stopped end well", stopped(played)),
    ]
}

fn handled(played: &Played) -> Outcome {
    let numbers: HashSet<u64> = played.entries.iter().map(|entry| entry.number).collect();
    let missing: Vec<u64> = (0..played.written).filter(|number| !numbers.contains(number)).take(5).collect();
    match missing.is_empty() {
        true => Ok(format!("{} records, {} handlers ended", played.written, played.entries.len())),
        false => Err(format!("of {} records these were not, and perhaps others: {missing:?}", played.written)),
    }
}

/// Never an earlier record of a key for the first time behind a later one.
fn in_order(entries: &[Entry]) -> Outcome {
    let mut seen = HashSet::new();
    let mut last: HashMap<u64, i64> = HashMap::new();
    for entry in entries {
        if !seen.insert((entry.partition, entry.offset)) {
            continue;
        }
        let last = last.entry(entry.key).or_insert(-1);
        if entry.offset < *last {
            return Err(format!("{entry:?} was handled first behind offset {last} of its key"));
        }
        *last = entry.offset;
    }
    Ok(format!("{} keys", last.len()))
}

/// A record that is handled again was completed by a process that was killed, and not long before; or while one of the two
/// processes was frozen, which the group takes for dead.
fn repeated(played: &Played) -> Outcome {
    let kills: HashMap<u32, u64> = played.kills.iter().copied().collect();
    let limit = (INTERVAL + SLACK).as_micros() as u64;
    let mut completed: BTreeMap<(i32, i64), &Entry> = BTreeMap::new();
    let (mut times, mut by_frozen, mut oldest) = (0_u64, 0_u64, 0);
    for entry in &played.entries {
        let Some(before) = completed.insert((entry.partition, entry.offset), entry) else { continue };
        if was_frozen(played, before, entry, limit) {
            by_frozen += 1;
            continue;
        }
        let Some(killed) = kills.get(&before.process) else {
            return Err(format!("{entry:?} repeats {before:?}, whose process was not killed"));
        };
        let age = killed.saturating_sub(before.at);
        if age > limit {
            let (age, limit) = (Duration::from_micros(age), Duration::from_micros(limit));
            return Err(format!("{entry:?} was completed {age:?} before the kill, allowed is {limit:?}"));
        }
        times += 1;
        oldest = oldest.max(age);
    }
    let (kills, oldest) = (played.kills.len().max(1) as u64, Duration::from_micros(oldest));
    Ok(format!(
        "{times} repeated in {kills} kills, {} a kill; the oldest was completed {oldest:.0?} before its kill (limit {:?}); \
         {by_frozen} in {} freezes",
        times / kills,
        INTERVAL + SLACK,
        played.freezes.len()
    ))
}

fn was_frozen(played: &Played, before: &Entry, again: &Entry, limit: u64) -> bool {
    let concerns = |process: u32, begin: u64, end: u64| {
        (process == before.process || process == again.process) && begin <= before.at + limit && before.at <= end
    };
    played.freezes.iter().any(|(process, begin, end)| concerns(*process, *begin, *end))
}

fn commits(played: &Played) -> Outcome {
    match played.commits.went_back.first() {
        None => Ok(format!("looked at {} times", played.commits.looks)),
        Some(first) => Err(first.clone()),
    }
}

fn stopped(played: &Played) -> Outcome {
    match played.stopped {
        2 => Ok("2 members".to_owned()),
        count => Err(format!("{count} of 2 members")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::Watched;

    fn entry(at: u64, process: u32, offset: i64) -> Entry {
        Entry { at, process, partition: 0, offset, key: 1, number: offset as u64 }
    }

    fn played(entries: Vec<Entry>) -> Played {
        let commits = Watched::default();
        Played {
            entries,
            written: 2,
            kills: vec![(7, 2_000_000)],
            freezes: vec![(9, 5_000_000, 6_000_000)],
            commits,
            stopped: 2,
        }
    }

    #[test]
    fn each_check_notices_what_it_is_for() {
        let fine = played(vec![entry(1_900_000, 7, 0), entry(2_100_000, 8, 0), entry(2_200_000, 8, 1)]);
        assert!(all(&fine).iter().all(|(_, result)| result.is_ok()), "{:?}", all(&fine));
        let failing = |wrong: Vec<Entry>| -> Vec<&str> {
            let results = all(&played(wrong));
            results.iter().filter(|(_, result)| result.is_err()).map(|(name, _)| *name).collect()
        };
        assert_eq!(failing(vec![entry(1, 8, 0)]), ["every record is handled"]);
        assert_eq!(failing(vec![entry(1, 8, 1), entry(2, 8, 0)]), ["records of a key are handled in order"]);
        let again = "only what was completed since the last commit is handled again";
        assert_eq!(failing(vec![entry(1, 7, 0), entry(2_100_000, 8, 0), entry(2_100_001, 8, 1)]), [again], "too old");
        assert_eq!(failing(vec![entry(1, 8, 0), entry(2, 8, 0), entry(3, 8, 1)]), [again], "nobody died");
        let frozen = |at| vec![entry(at, 9, 0), entry(7_000_000, 8, 0), entry(7_000_001, 8, 1)];
        assert_eq!((failing(frozen(5_500_000)).len(), failing(frozen(1_000_000))), (0, vec![again]));
    }
}
