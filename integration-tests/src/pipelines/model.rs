//! What must come out: computed over whole lists, without an engine.

use super::case::{Case, Event, Fold, Join, Kind, Running, Stage, mix};
use super::draw::keeps_order;
use std::collections::BTreeMap;

/// What a case puts out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// At its end. Where [`Expected::ordered`], the records of each key are in their order.
    pub out: Vec<Event>,
    /// Beside.
    pub aside: Vec<Event>,
    /// Whether the order of each key's records is known.
    pub ordered: bool,
}

impl Expected {
    /// Of a case, whose first input is without the records `lost`: those that were late.
    pub fn of(case: &Case, lost: &[Event]) -> Self {
        let mut expected = Self { out: case.inputs[0].all(), aside: Vec::new(), ordered: true };
        expected.out.retain(|event| !lost.contains(event));
        for stage in &case.stages {
            let before = std::mem::take(&mut expected.out);
            expected.out = match stage {
                Stage::Split(n) => {
                    let (aside, out) = before.into_iter().partition(|event| event.id.is_multiple_of(*n));
                    expected.aside.extend::<Vec<_>>(aside);
                    out
                }
                Stage::With(input, join) => joined(&before, &case.inputs[*input].all(), join),
                other => alone(before, other),
            };
            expected.ordered = keeps_order(stage, expected.ordered);
        }
        expected
    }
}

impl super::case::Input {
    /// The records of all splits: those of each key in order.
    pub fn all(&self) -> Vec<Event> {
        self.splits.concat()
    }

    /// Records that come later than the bound allows, in their own split.
    pub fn beyond_the_bound(&self) -> Vec<Event> {
        let of_split = |split: &Vec<Event>| {
            let mut newest = i64::MIN;
            let mut late = Vec::new();
            for event in split {
                if event.at < newest.saturating_sub(self.bound) {
                    late.push(event.clone());
                }
                newest = newest.max(event.at);
            }
            late
        };
        self.splits.iter().flat_map(of_split).collect()
    }
}

fn alone(events: Vec<Event>, stage: &Stage) -> Vec<Event> {
    match stage {
        Stage::Filter(n) => events.into_iter().filter(|event| !event.id.is_multiple_of(*n)).collect(),
        Stage::FlatMap(n) => events.iter().flat_map(|event| copies(event, *n)).collect(),
        Stage::Rekey(n) => events.into_iter().map(|event| Event { key: rekeyed(&event, *n), ..event }).collect(),
        Stage::Async(_) => events.into_iter().map(answered).collect(),
        Stage::Window(kind, fold, _) => {
            let windows = windows(&events, *kind).into_iter();
            windows.map(|(window, inside)| of_window(window, folded(*fold, &inside, window))).collect()
        }
        Stage::Running(running) => per_record(&events, *running),
        Stage::Sort => {
            let mut sorted = events;
            sorted.sort_by_key(|event| (event.at, event.id));
            sorted
        }
        Stage::Split(_) | Stage::With(..) => events,
    }
}

/// What [`Stage::FlatMap`] makes of an event.
pub(super) fn copies(event: &Event, n: u64) -> Vec<Event> {
    (0..n).map(|i| Event { id: mix([event.id, i]), ..event.clone() }).collect()
}

/// The key [`Stage::Rekey`] gives.
pub(super) fn rekeyed(event: &Event, n: u32) -> u32 {
    (mix([event.id]) % u64::from(n)) as u32
}

/// What an asynchronous lookup makes of an event.
pub(super) fn answered(event: Event) -> Event {
    Event { id: mix([event.id, 77]), ..event }
}

/// Key, end and start: in this order they are put out.
type Window = (u32, i64, i64);

fn of_window((key, end, _): Window, id: u64) -> Event {
    Event { key, at: end - 1, id }
}

/// All windows with what is in them.
fn windows(events: &[Event], kind: Kind) -> BTreeMap<Window, Vec<Event>> {
    match kind {
        Kind::Aligned(size, slide, offset) => aligned(events, size, slide, offset),
        Kind::Session(gap, inclusive) => sessions(events, gap, inclusive),
    }
}

fn aligned(events: &[Event], size: i64, slide: i64, offset: i64) -> BTreeMap<Window, Vec<Event>> {
    let mut windows: BTreeMap<Window, Vec<Event>> = BTreeMap::new();
    for event in events {
        let mut start = (event.at - offset).div_euclid(slide) * slide + offset;
        while start > event.at - size {
            windows.entry((event.key, start + size, start)).or_default().push(event.clone());
            start -= slide;
        }
    }
    windows
}

fn sessions(events: &[Event], gap: i64, inclusive: bool) -> BTreeMap<Window, Vec<Event>> {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|event| (event.key, event.at));
    let mut windows = BTreeMap::new();
    let mut open: Option<(Window, Vec<Event>)> = None;
    for event in sorted {
        match &mut open {
            Some(((key, end, _), inside))
                if *key == event.key && (event.at < *end || inclusive && event.at == *end) =>
            {
                *end = event.at + gap;
                inside.push(event);
            }
            _ => windows.extend(open.replace(((event.key, event.at + gap, event.at), vec![event]))),
        }
    }
    windows.extend(open);
    windows
}

/// What is computed over the elements of a window.
pub(super) fn folded(fold: Fold, inside: &[Event], (_, end, start): Window) -> u64 {
    match fold {
        Fold::Process => digest(inside.iter().map(|event| event.id), start, end),
        Fold::Count => inside.len() as u64,
        Fold::Aggregate => inside.iter().fold(1, |sum, event| event.id.wrapping_mul(3).wrapping_add(sum)),
        Fold::Reduce => inside.iter().fold(0, |sum, event| event.id.wrapping_add(sum)),
    }
}

/// Ids in any order, and the bounds of their window.
pub(super) fn digest(ids: impl Iterator<Item = u64>, start: i64, end: i64) -> u64 {
    let mut ids: Vec<_> = ids.collect();
    ids.sort_unstable();
    mix(ids.into_iter().chain([start as u64, end as u64]))
}

fn per_record(events: &[Event], running: Running) -> Vec<Event> {
    let mut keys: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    let mut out = Vec::new();
    for event in events {
        let before = keys.entry(event.key).or_default();
        let id = match running {
            Running::Reduce => Some(before.iter().fold(event.id, |sum, other| sum.wrapping_add(other.id))),
            Running::Aggregate => {
                let sum = before.iter().fold(event.id, |sum, other| sum.wrapping_add(other.id));
                Some(mix([sum, before.len() as u64 + 1]))
            }
            Running::MapWithState => Some(event.id.wrapping_sub(before.last().map_or(0, |last| last.id))),
            Running::TopN(n) => newly_ranked(before, event, n),
            Running::Dedupe(horizon, ids) => {
                let repeats =
                    |other: &&Event| other.id % ids == event.id % ids && other.at.abs_diff(event.at) < horizon as u64;
                if before.iter().any(|other| repeats(&other)) {
                    continue; // only what was let through counts
                }
                Some(event.id)
            }
            Running::EveryRecords(n) => {
                before.push(event.clone());
                if before.len() as u64 == n {
                    let inside = std::mem::take(before);
                    out.extend(of_records(&inside));
                }
                continue;
            }
        };
        before.push(event.clone());
        out.extend(id.map(|id| Event { id, ..event.clone() }));
    }
    if matches!(running, Running::EveryRecords(_)) {
        // At the end of input what is open is closed.
        out.extend(keys.into_values().filter_map(|rest| of_records(&rest)));
    }
    out
}

fn of_records(inside: &[Event]) -> Option<Event> {
    let newest = inside.iter().max_by_key(|event| event.at)?;
    Some(Event { key: newest.key, at: newest.at, id: inside.iter().fold(0, |sum, event| event.id.wrapping_add(sum)) })
}

fn newly_ranked(before: &[Event], event: &Event, n: usize) -> Option<u64> {
    let ranking = |events: &[Event]| {
        let mut ids: Vec<_> = events.iter().map(|event| event.id).collect();
        ids.sort_by(|a, b| b.cmp(a));
        ids.truncate(n);
        ids
    };
    let now = ranking(&[before, std::slice::from_ref(event)].concat());
    (now != ranking(before)).then(|| mix(now))
}

fn joined(left: &[Event], right: &[Event], join: &Join) -> Vec<Event> {
    match join {
        Join::Inner(lower, upper) => left.iter().flat_map(|l| pairs(l, right, *lower, *upper)).collect(),
        Join::Left(lower, upper) => left.iter().flat_map(|l| pairs_or_alone(l, right, *lower, *upper)).collect(),
        Join::AsOf(tolerance) => left.iter().map(|l| as_of(l, right, *tolerance)).collect(),
        Join::Window(kind) => window_join(left, right, *kind),
        Join::Cogroup(kind) => cogroup(left, right, *kind),
        Join::Connect => left.iter().map(|l| counted(l, right.iter().filter(|r| r.key == l.key))).collect(),
        Join::Broadcast => left.iter().map(|l| counted(l, right.iter())).collect(),
        Join::Union => [left, right].concat(),
    }
}

fn pairs(l: &Event, right: &[Event], lower: i64, upper: i64) -> Vec<Event> {
    let belongs = |r: &&Event| r.key == l.key && (l.at + lower..=l.at + upper).contains(&r.at);
    right.iter().filter(belongs).map(|r| Event { at: l.at.max(r.at), ..pair(l, r) }).collect()
}

fn pairs_or_alone(l: &Event, right: &[Event], lower: i64, upper: i64) -> Vec<Event> {
    let pairs = pairs(l, right, lower, upper);
    if pairs.is_empty() { vec![Event { at: l.at.max(l.at + upper), ..unpaired(l) }] } else { pairs }
}

/// What a join makes of two; the time is for who joins to say.
pub(super) fn pair(l: &Event, r: &Event) -> Event {
    Event { id: mix([l.id, r.id]), ..l.clone() }
}

/// What a join makes of a left one without a right one.
pub(super) fn unpaired(l: &Event) -> Event {
    Event { id: mix([l.id, 0, 0]), ..l.clone() }
}

fn as_of(l: &Event, right: &[Event], tolerance: Option<i64>) -> Event {
    let known = right.iter().filter(|r| r.key == l.key && r.at <= l.at).max_by_key(|r| r.at);
    let known = known.filter(|r| tolerance.is_none_or(|tolerance| l.at <= r.at + tolerance));
    known.map_or_else(|| unpaired(l), |r| pair(l, r))
}

/// The windows of both sides: sessions merge over both.
fn both(left: &[Event], right: &[Event], kind: Kind) -> Vec<(Window, Vec<Event>, Vec<Event>)> {
    // Sides are told apart by a mark that no id has.
    let marked = |event: &Event| Event { id: mix([event.id, 1]), ..event.clone() };
    let all: Vec<_> = left.iter().map(marked).chain(right.iter().cloned()).collect();
    let split = |(window, inside): (Window, Vec<Event>)| {
        let of = |side: &[Event], mark: &dyn Fn(&Event) -> Event| -> Vec<Event> {
            side.iter().filter(|event| inside.contains(&mark(event))).cloned().collect()
        };
        let sides = (of(left, &marked), of(right, &Event::clone));
        (window, sides.0, sides.1)
    };
    windows(&all, kind).into_iter().map(split).collect()
}

fn window_join(left: &[Event], right: &[Event], kind: Kind) -> Vec<Event> {
    let windows = both(left, right, kind).into_iter();
    let pairs = |(window, ls, rs): (Window, Vec<Event>, Vec<Event>)| {
        let pairs = ls.iter().flat_map(|l| rs.iter().map(|r| pair(l, r).id));
        pairs.map(|id| of_window(window, id)).collect::<Vec<_>>()
    };
    windows.flat_map(pairs).collect()
}

fn cogroup(left: &[Event], right: &[Event], kind: Kind) -> Vec<Event> {
    let windows = both(left, right, kind).into_iter();
    windows.map(|(window, ls, rs)| of_window(window, cogrouped(&ls, &rs, window.2, window.1))).collect()
}

/// What a cogroup makes of both sides of a window.
pub(super) fn cogrouped(left: &[Event], right: &[Event], start: i64, end: i64) -> u64 {
    let side = |events: &[Event]| digest(events.iter().map(|event| event.id), start, end);
    mix([side(left), side(right)])
}

/// A left one and how many right ones there were by its time.
fn counted<'a>(l: &Event, right: impl Iterator<Item = &'a Event>) -> Event {
    with_count(l, right.filter(|r| r.at <= l.at).count() as u64)
}

/// What the process functions over two inputs make of an event.
pub(super) fn with_count(l: &Event, count: u64) -> Event {
    Event { id: mix([l.id, count]), ..l.clone() }
}
