//! The names of an object's fields, shared by all objects that have the same.
//!
//! Records of one kind have the same names in the same order. Their names are kept once for the whole process and never
//! given back, so that a record carries a plain reference beside its values: workers that count references to the same names
//! would wait for each other. How much is kept is bounded; objects beyond that have names of their own. What becomes of kept
//! names when a step adds or takes out a field is found once and then known.

use super::Text;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Names in all kept lists together: some megabytes at most.
const KEPT: usize = 65_536;
/// Names in one kept list: one strange record must not take the room of all others.
const LONGEST: usize = 1_024;
/// Bytes of a kept name: what is longer is data, and no name.
pub(super) const LONG_NAME: usize = 256;

/// Changes that are remembered of the same names. Those of steps are few; who changes values by names that nobody can foresee
/// must not have to look through all of them.
const CHANGES: usize = 64;

/// Names of fields, in order. Of two that are equal the last counts.
#[derive(Clone, Debug)]
pub(super) enum Names {
    Kept(&'static Kept),
    Own(Arc<Vec<Text>>),
}

/// Names that are kept for good.
#[derive(Debug)]
pub(super) struct Kept {
    list: Vec<Text>,
    /// Whether all are different. Otherwise a place cannot be guessed.
    unique: bool,
    /// What becomes of them: a list that only grows.
    changes: Next,
}

type Next = OnceLock<Box<Changed>>;

#[derive(Debug)]
struct Changed {
    change: Change,
    names: &'static Kept,
    next: Next,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// A name that was not there.
    Added(Text),
    Removed(usize),
}

/// All names that are kept.
#[derive(Debug, Default)]
struct Table {
    lists: HashMap<&'static [Text], &'static Kept>,
    names: usize,
}

/// What is known of one name, for whoever looks for it again and again. It makes nothing wrong, only faster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hint {
    /// Where it was found last: in the next record it is most likely there again.
    place: Place,
    /// The names of an object that has it alone.
    alone: OnceLock<Names>,
}

#[derive(Debug, Default)]
struct Place(AtomicUsize);

impl Names {
    /// Names of one object.
    pub(super) fn own(list: Vec<Text>) -> Self {
        Names::Own(Arc::new(list))
    }

    /// Names that many objects will have.
    pub(super) fn keep(list: Vec<Text>) -> Self {
        static TABLE: OnceLock<Mutex<Table>> = OnceLock::new();
        static FULL: AtomicBool = AtomicBool::new(false);
        if list.len() > LONGEST || FULL.load(Relaxed) || list.iter().any(|name| name.as_bytes().len() > LONG_NAME) {
            return Names::own(list);
        }
        // What a panic elsewhere left is whole: a list is in the table or it is not.
        let mut table = TABLE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let names = table.keep(list, KEPT);
        // While any list has room, none is turned away.
        FULL.store(table.names > KEPT - LONGEST, Relaxed);
        names
    }

    /// No names.
    pub(super) fn none() -> Self {
        static NONE: Kept = Kept { list: Vec::new(), unique: true, changes: OnceLock::new() };
        Names::Kept(&NONE)
    }

    #[inline]
    pub(super) fn list(&self) -> &[Text] {
        match self {
            Names::Kept(kept) => &kept.list,
            Names::Own(list) => list,
        }
    }

    /// The last place of a name.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.list().iter().rposition(|known| known.as_bytes() == name.as_bytes())
    }

    /// The same, looked for first where it was last time.
    #[inline]
    pub(super) fn place_near(&self, name: &Text, hint: &Hint) -> Option<usize> {
        self.guess(name, hint).or_else(|| self.search(name, hint))
    }

    #[inline]
    fn guess(&self, name: &Text, hint: &Hint) -> Option<usize> {
        let Names::Kept(kept) = self else { return None };
        let guess = hint.place.0.load(Relaxed);
        (kept.unique && kept.list.get(guess) == Some(name)).then_some(guess)
    }

    fn search(&self, name: &Text, hint: &Hint) -> Option<usize> {
        let place = self.list().iter().rposition(|known| known == name)?;
        hint.place.0.store(place, Relaxed);
        Some(place)
    }

    /// The place of a name; `None` when it was added behind the others.
    #[inline]
    pub(super) fn place_or_add(&mut self, name: &Text, hint: &Hint) -> Option<usize> {
        if let Some(place) = self.guess(name, hint) {
            return Some(place);
        }
        if self.list().is_empty() {
            *self = hint.alone.get_or_init(|| Names::keep(vec![name.clone()])).clone();
            return None;
        }
        // It was added to these names before: so it is not among them.
        if let Some(names) = self.known(|change| matches!(change, Change::Added(added) if added == name)) {
            *self = names;
            return None;
        }
        let place = self.search(name, hint);
        if place.is_none() {
            self.change(Change::Added(name.clone()));
        }
        place
    }

    /// Adds a name behind the others, without looking for it.
    pub(super) fn push(&mut self, name: Text) {
        if let Names::Kept(kept) = self {
            *self = Names::own(kept.list.clone());
        }
        if let Names::Own(list) = self {
            Arc::make_mut(list).push(name);
        }
    }

    /// Takes the name at `place` out.
    pub(super) fn remove(&mut self, place: usize) {
        match self.known(|change| *change == Change::Removed(place)) {
            Some(names) => *self = names,
            None => self.change(Change::Removed(place)),
        }
    }

    /// What becomes of them by a change that is known.
    #[inline]
    fn known(&self, is: impl Fn(&Change) -> bool) -> Option<Names> {
        let Names::Kept(kept) = self else { return None };
        let mut changes = std::iter::successors(kept.changes.get(), |changed| changed.next.get());
        changes.find(|changed| is(&changed.change)).map(|changed| Names::Kept(changed.names))
    }

    fn change(&mut self, change: Change) {
        match self {
            Names::Own(list) => change.make(Arc::make_mut(list)),
            Names::Kept(kept) => {
                let mut list = kept.list.clone();
                change.make(&mut list);
                let names = Names::keep(list);
                if let Names::Kept(changed) = names {
                    kept.remember(change, changed);
                }
                *self = names;
            }
        }
    }
}

impl Change {
    fn make(&self, list: &mut Vec<Text>) {
        match self {
            Change::Added(name) => list.push(name.clone()),
            Change::Removed(place) => drop(list.remove(*place)),
        }
    }
}

impl Kept {
    fn remember(&'static self, change: Change, names: &'static Kept) {
        let mut next = &self.changes;
        let mut changed = Some(Box::new(Changed { change, names, next: OnceLock::new() }));
        for _ in 0..CHANGES {
            next = &next.get_or_init(|| changed.take().unwrap_or_else(|| unreachable!("it is taken once"))).next;
            if changed.is_none() {
                return;
            }
        }
    }
}

impl Table {
    fn keep(&mut self, list: Vec<Text>, most: usize) -> Names {
        if let Some(kept) = self.lists.get(list.as_slice()) {
            return Names::Kept(kept);
        }
        // A list without names takes room, too.
        let names = self.names + list.len().max(1);
        if names > most {
            return Names::own(list);
        }
        let mut sorted: Vec<_> = list.iter().collect();
        sorted.sort_unstable();
        let unique = sorted.windows(2).all(|two| two[0] != two[1]);
        let kept: &'static Kept = Box::leak(Box::new(Kept { list, unique, changes: OnceLock::new() }));
        self.lists.insert(&kept.list, kept);
        self.names = names;
        Names::Kept(kept)
    }
}

impl Clone for Place {
    fn clone(&self) -> Self {
        Place(self.0.load(Relaxed).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<Text> {
        names.iter().map(|name| Text::from(*name)).collect()
    }

    fn kept(names: &[&str]) -> Names {
        let names = Names::keep(texts(names));
        assert!(matches!(names, Names::Kept(_)));
        names
    }

    fn is_same(a: &Names, b: &Names) -> bool {
        match (a, b) {
            (Names::Kept(a), Names::Kept(b)) => std::ptr::eq(*a, *b),
            (Names::Own(a), Names::Own(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    fn added(to: &Names, name: &str) -> Names {
        let mut names = to.clone();
        assert_eq!(names.place_or_add(&name.into(), &Hint::default()), None);
        names
    }

    fn removed(from: &Names, place: usize) -> Names {
        let mut names = from.clone();
        names.remove(place);
        names
    }

    #[test]
    fn names_are_kept_once_and_so_is_what_becomes_of_them() {
        let names = kept(&["once", "b"]);
        assert!(is_same(&names, &kept(&["once", "b"])));
        assert!(is_same(&added(&names, "c"), &kept(&["once", "b", "c"])));
        assert!(
            is_same(&added(&names, "c"), &added(&names, "c")) && !is_same(&added(&names, "c"), &added(&names, "d"))
        );
        assert!(is_same(&removed(&names, 0), &kept(&["b"])) && is_same(&removed(&names, 0), &removed(&names, 0)));
        assert!(is_same(&removed(&added(&names, "c"), 2), &names));
        assert!(is_same(&added(&Names::none(), "once"), &kept(&["once"])));
    }

    #[test]
    fn a_name_that_is_there_is_found_and_not_added_again() {
        let (names, hint) = (kept(&["there", "b"]), Hint::default());
        drop(added(&names, "c"));
        // What was pushed without a look is no proof that it was not there.
        let mut pushed = names.clone();
        pushed.push("b".into());
        for (mut names, place) in [(names.clone(), 1), (pushed, 2), (Names::own(texts(&["b", "a"])), 0)] {
            let before = names.clone();
            assert_eq!(names.place_or_add(&"b".into(), &hint), Some(place));
            assert!(is_same(&names, &before));
        }
    }

    #[test]
    fn a_wrong_guess_costs_time_only() {
        let (hint, name) = (Hint::default(), Text::from("x"));
        for (list, place) in [
            (&["a", "x"][..], Some(1)),
            (&["x", "a"], Some(0)),
            (&["a", "b"], None),
            (&["x", "a", "x"], Some(2)),
            (&["x"], Some(0)),
            (&[], None),
        ] {
            for names in [kept(list), Names::own(texts(list))] {
                assert_eq!(names.place_near(&name, &hint), place, "{list:?}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_belongs_to_its_object() {
        let mut table = Table::default();
        assert!(matches!(table.keep(texts(&["a", "b"]), 3), Names::Kept(_)));
        assert!(matches!(table.keep(texts(&["a", "c"]), 3), Names::Own(_)));
        assert!(matches!(table.keep(texts(&["a", "b"]), 3), Names::Kept(_)), "it is there already");
        assert!(matches!(table.keep(texts(&["c"]), 3), Names::Kept(_)));
        let long: Vec<_> = (0..=LONGEST).map(|n| Text::from(n.to_string())).collect();
        assert!(matches!(Names::keep(long), Names::Own(_)));
    }

    #[test]
    fn more_changes_than_are_remembered_are_still_right() {
        let names = kept(&["more"]);
        for n in (0..2 * CHANGES).chain(0..2 * CHANGES) {
            let name = n.to_string();
            assert_eq!(added(&names, &name).list(), texts(&["more", &name]));
        }
        let Names::Kept(kept) = names else { unreachable!("they are kept") };
        let changes = std::iter::successors(kept.changes.get(), |changed| changed.next.get());
        assert_eq!(changes.count(), CHANGES);
    }

    #[test]
    fn many_changes_of_the_same_names_are_remembered_by_several_workers_at_once() {
        let names = kept(&["many"]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..100 {
                        let name = n.to_string();
                        assert_eq!(added(&names, &name).list(), texts(&["many", &name]));
                    }
                });
            }
        });
    }
}
