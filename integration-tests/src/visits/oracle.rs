//! What must come out, computed without an engine; one property a checker.

use super::{GAP, Gathered, Late, TUMBLING, Visit, Visits, straggles, visit};
use std::collections::{BTreeMap, BTreeSet};

const KINDS: [Gathered; 3] = [Gathered::Tumbling, Gathered::Session, Gathered::Sorted];

/// What does not hold of the output of the first `count` visits; empty when all is well.
///
/// Which of the stragglers were late depends on the speed of the partitions: whatever is late is late once, and everything
/// else is in its window, once.
pub fn broken(count: u64, results: &[Visits], late: &[Late]) -> Vec<String> {
    let visits: Vec<_> = (0..count).map(visit).collect();
    let mut broken = Vec::new();
    for by in KINDS {
        let late: Vec<_> = late.iter().filter(|late| late.by == by).map(|late| late.id).collect();
        let results: Vec<_> = results.iter().filter(|visits| visits.by == by).cloned().collect();
        let verdicts = [
            ("late once", once(&late)),
            ("on time is never late", only_stragglers(&late)),
            ("something is late", if late.is_empty() { Err("nothing is: it proves nothing".into()) } else { Ok(()) }),
            ("no window twice", no_window_twice(&results)),
            (
                "all that is not late is in its window",
                match by {
                    Gathered::Session => in_sessions(&visits, &late, &results),
                    _ => equal(&expected(by, &visits, &late), &results),
                },
            ),
            ("in order per user", if by == Gathered::Sorted { in_order(&results) } else { Ok(()) }),
        ];
        let failed = verdicts.into_iter().filter_map(|(name, verdict)| Some((name, verdict.err()?)));
        broken.extend(failed.map(|(name, how)| format!("{name} ({by:?}): {how}")));
    }
    broken
}

fn once(ids: &[u64]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match ids.iter().find(|id| !seen.insert(**id)) {
        None => Ok(()),
        Some(id) => Err(format!("visit {id} is late twice")),
    }
}

fn only_stragglers(late: &[u64]) -> Result<(), String> {
    match late.iter().find(|id| !straggles(**id)) {
        None => Ok(()),
        Some(id) => Err(format!("visit {id} came within the bound")),
    }
}

fn no_window_twice(results: &[Visits]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let same = |visits: &&Visits| !seen.insert((visits.user.clone(), visits.start, visits.ids.first().copied()));
    match results.iter().find(same) {
        None => Ok(()),
        Some(visits) => Err(format!("{visits:?} comes again")),
    }
}

fn equal(expected: &[Visits], actual: &[Visits]) -> Result<(), String> {
    let (mut expected, mut actual) = (expected.to_vec(), actual.to_vec());
    expected.sort();
    actual.sort();
    if expected == actual {
        return Ok(());
    }
    let missing = expected.iter().find(|visits| !actual.contains(visits));
    let extra = actual.iter().find(|visits| !expected.contains(visits));
    Err(format!("{} results, {} expected; missing {missing:?} …, too many {extra:?} …", actual.len(), expected.len()))
}

/// A straggler may be on time and yet come after the session it would have joined was closed: it begins another. Apart from
/// that sessions do not overlap.
fn in_sessions(visits: &[Visit], late: &[u64], results: &[Visits]) -> Result<(), String> {
    let mut gathered: Vec<_> = results.iter().flat_map(|session| session.ids.clone()).collect();
    gathered.sort_unstable();
    let late: BTreeSet<_> = late.iter().collect();
    let on_time: Vec<_> = visits.iter().map(|visit| visit.id).filter(|id| !late.contains(id)).collect();
    if gathered != on_time {
        return Err(format!("{} visits in sessions, {} were not late", gathered.len(), on_time.len()));
    }
    if let Some(session) = results.iter().find(|session| !is_session(session)) {
        return Err(format!("{session:?} is no session"));
    }
    let mut users: BTreeMap<&str, Vec<&Visits>> = BTreeMap::new();
    results.iter().for_each(|session| users.entry(&session.user).or_default().push(session));
    for sessions in users.values_mut() {
        sessions.sort_by_key(|session| session.start);
        let begins_late = |session: &Visits| session.ids.iter().any(|id| straggles(*id));
        let apart = |pair: &&[&Visits]| pair[0].end > pair[1].start && !begins_late(pair[0]) && !begins_late(pair[1]);
        if let Some(pair) = sessions.windows(2).find(apart) {
            return Err(format!("{:?} and {:?} are one session", pair[0], pair[1]));
        }
    }
    Ok(())
}

/// Whether its visits follow each other within the gap, and its bounds are theirs.
fn is_session(session: &Visits) -> bool {
    let mut times: Vec<_> = session.ids.iter().map(|id| visit(*id).at).collect();
    times.sort_unstable();
    let bounds = times.first().copied().zip(times.last().map(|last| last + GAP));
    let users = session.ids.iter().all(|id| visit(*id).user == session.user);
    users && bounds == Some((session.start, session.end)) && times.windows(2).all(|pair| pair[1] - pair[0] < GAP)
}

fn in_order(results: &[Visits]) -> Result<(), String> {
    let mut last: BTreeMap<&str, i64> = BTreeMap::new();
    for visits in results {
        let before = last.insert(&visits.user, visits.start).unwrap_or(i64::MIN);
        if visits.start < before {
            return Err(format!("{}: {} follows {before}", visits.user, visits.start));
        }
    }
    Ok(())
}

/// What is gathered of the visits that were not late.
fn expected(by: Gathered, visits: &[Visit], late: &[u64]) -> Vec<Visits> {
    let late: BTreeSet<_> = late.iter().collect();
    let mut users: BTreeMap<&str, Vec<&Visit>> = BTreeMap::new();
    for visit in visits.iter().filter(|visit| !late.contains(&visit.id)) {
        users.entry(&visit.user).or_default().push(visit);
    }
    let mut results = Vec::new();
    for (user, mut visits) in users {
        visits.sort_by_key(|visit| visit.at);
        let bounds = |visit: &Visit| match by {
            Gathered::Tumbling => {
                let start = visit.at.div_euclid(TUMBLING) * TUMBLING;
                (start, start + TUMBLING)
            }
            Gathered::Session => (visit.at, visit.at + GAP),
            Gathered::Sorted => (visit.at, visit.at + 1),
        };
        let mut open: Option<Visits> = None;
        for visit in visits {
            let (start, end) = bounds(visit);
            match &mut open {
                Some(visits) if by != Gathered::Sorted && start < visits.end => {
                    visits.end = end;
                    visits.ids.push(visit.id);
                }
                _ => results.extend(open.replace(Visits { by, user: user.into(), start, end, ids: vec![visit.id] })),
            }
        }
        results.extend(open);
    }
    results.iter_mut().for_each(|visits| visits.ids.sort_unstable());
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 1_500;

    /// What a run writes in which every straggler is late.
    fn good() -> (Vec<Visits>, Vec<Late>) {
        let visits: Vec<_> = (0..COUNT).map(visit).collect();
        let late: Vec<_> = (0..COUNT).filter(|id| straggles(*id)).collect();
        let results = KINDS.iter().flat_map(|by| expected(*by, &visits, &late)).collect();
        (results, KINDS.iter().flat_map(|by| late.iter().map(|id| Late { by: *by, id: *id })).collect())
    }

    fn names(results: &[Visits], late: &[Late]) -> Vec<String> {
        let broken = broken(COUNT, results, late);
        broken.into_iter().map(|text| text.split(" (").next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_good_output_breaks_nothing_and_has_sessions_and_late_visits() {
        let (results, late) = good();
        assert_eq!(names(&results, &late), [""; 0]);
        let sessions = results.iter().filter(|visits| visits.by == Gathered::Session);
        assert!(sessions.clone().count() > 100 && sessions.clone().any(|visits| visits.ids.len() > 5));
        assert!(late.len() > 300);
    }

    #[test]
    fn each_checker_finds_its_planted_fault() {
        let (results, late) = good();
        let window = "all that is not late is in its window";
        assert_eq!(names(&results[1..], &late), [window], "a window less");
        let mut split = results.clone();
        let session = split.iter_mut().find(|r| r.by == Gathered::Session && r.ids.len() > 1).unwrap();
        session.ids.pop();
        assert_eq!(names(&split, &late), [window], "a visit less in a session");
        let twice = [&results[..], &results[..1]].concat();
        assert_eq!(names(&twice, &late), ["no window twice", window]);
        let again = [&late[..], &late[..1]].concat();
        assert_eq!(names(&results, &again), ["late once"]);
        let on_time = Late { by: Gathered::Session, id: (0..).find(|id| !straggles(*id)).unwrap_or_default() };
        let and_late = names(&results, &[&late[..], &[on_time]].concat());
        assert_eq!(and_late, ["on time is never late", window]);
        let reversed: Vec<_> = results.iter().rev().cloned().collect();
        assert_eq!(names(&reversed, &late), ["in order per user"]);
    }
}
