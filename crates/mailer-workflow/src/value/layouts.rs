//! The layouts of JSON objects that a decoder has seen.
//!
//! Records of one kind name their fields in one order. So the names seen so far form a tree in which a decoder goes from
//! name to name: what usually follows is compared first, and at the end of the object stand the [`Names`] that all such
//! objects share. Nothing is looked up, or made, but where a record differs from the one before.

use super::names::{Kept, LONG_NAME, Names};
use super::{Projection, Text};
use std::cell::RefCell;
use std::collections::HashMap;

/// Names that are remembered, over all layouts. Objects with names that nobody can foresee must not fill the memory.
const REMEMBERED: usize = 4_096;

/// What becomes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// It is looked at, and what is in it is read by this plan.
    By(usize),
    /// It is kept as it came.
    AsItCame,
    /// It is left out.
    Not,
}

/// What is read of the objects at one place of a record, and their layouts.
#[derive(Clone, Debug)]
struct Plan {
    rest: bool,
    named: Vec<(Text, usize)>,
    /// How many fields the last such object had.
    fields: usize,
    /// The node before every name.
    root: usize,
}

/// A name behind all names before it.
#[derive(Clone, Debug)]
struct Node {
    name: Text,
    before: Option<usize>,
    read: Read,
    /// What followed last.
    usual: Option<usize>,
    /// The names up to here that are kept, once an object has ended here.
    names: Option<&'static Kept>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Layouts {
    plans: Vec<Plan>,
    nodes: Vec<Node>,
    known: HashMap<(usize, Text), usize>,
}

/// An object that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    plan: usize,
    at: Place,
}

#[derive(Debug)]
enum Place {
    Node(usize),
    /// Too many names are known already: this object has its own.
    Beyond(Vec<Text>),
}

impl Layouts {
    pub(super) fn new(projection: &Projection) -> Self {
        let mut layouts = Self { plans: Vec::new(), nodes: Vec::new(), known: HashMap::new() };
        layouts.plan(projection);
        layouts
    }

    /// The plan of whole records.
    pub(super) const RECORD: usize = 0;

    fn plan(&mut self, projection: &Projection) -> usize {
        let place = self.plans.len();
        let root = self.nodes.len();
        self.nodes.push(Node::new("".into(), None, Read::Not));
        self.plans.push(Plan { rest: projection.rest, named: Vec::new(), fields: 0, root });
        for (name, inner) in &projection.named {
            let inner = self.plan(inner);
            self.plans[place].named.push((name.clone(), inner));
        }
        place
    }

    /// An object begins.
    pub(super) fn begin(&self, plan: usize) -> Reading {
        Reading { plan, at: Place::Node(self.plans[plan].root) }
    }

    /// How many fields it will have, most likely.
    pub(super) fn expected(&self, reading: &Reading) -> usize {
        self.plans[reading.plan].fields
    }

    /// The next name of an object.
    #[inline]
    pub(super) fn next(&mut self, reading: &mut Reading, name: &str) -> Read {
        if let Place::Node(node) = reading.at {
            let usual = self.nodes[node].usual;
            if let Some(usual) = usual.filter(|usual| self.nodes[*usual].name.as_bytes() == name.as_bytes()) {
                reading.at = Place::Node(usual);
                return self.nodes[usual].read;
            }
        }
        self.differs(reading, name)
    }

    /// The next name, where it is not the usual one.
    fn differs(&mut self, reading: &mut Reading, name: &str) -> Read {
        if let Place::Node(node) = reading.at {
            match self.follow(reading.plan, node, name) {
                Some(next) => {
                    self.nodes[node].usual = Some(next);
                    reading.at = Place::Node(next);
                    return self.nodes[next].read;
                }
                None => reading.at = Place::Beyond(self.names_up_to(node)),
            }
        }
        let read = self.plans[reading.plan].read(name);
        if let Place::Beyond(names) = &mut reading.at {
            names.extend((read != Read::Not).then(|| name.into()));
        }
        read
    }

    /// The node of `name` behind another node, unless there are too many already, or it is too long to be kept.
    fn follow(&mut self, plan: usize, before: usize, name: &str) -> Option<usize> {
        if name.len() > LONG_NAME {
            return None;
        }
        let key = (before, Text::from(name));
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let next = self.nodes.len();
        if next >= REMEMBERED {
            return None;
        }
        self.nodes.push(Node::new(key.1.clone(), Some(before), self.plans[plan].read(name)));
        self.known.insert(key, next);
        Some(next)
    }

    /// An object is over: its names.
    pub(super) fn end(&mut self, reading: Reading, fields: usize) -> Names {
        self.plans[reading.plan].fields = fields;
        let node = match reading.at {
            Place::Node(node) => node,
            Place::Beyond(names) => return Names::own(names),
        };
        if let Some(known) = &self.nodes[node].names {
            return Names::Kept(known);
        }
        let names = Names::keep(self.names_up_to(node));
        if let Names::Kept(kept) = names {
            self.nodes[node].names = Some(kept);
        }
        names
    }

    fn names_up_to(&self, node: usize) -> Vec<Text> {
        let mut names = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at.map(|at| &self.nodes[at]) {
            names.extend((node.read != Read::Not).then(|| node.name.clone()));
            at = node.before;
        }
        names.reverse();
        names
    }
}

thread_local! {
    /// For objects that are made of names and values one by one: they are of few kinds, too.
    static MADE: RefCell<Layouts> = RefCell::new(Layouts::new(&Projection::everything()));
}

/// The names of an object that is made here: shared with those made before.
pub(super) fn names_of<'a>(names: impl ExactSizeIterator<Item = &'a Text>) -> Names {
    MADE.with_borrow_mut(|layouts| {
        let (mut reading, fields) = (layouts.begin(Layouts::RECORD), names.len());
        for name in names {
            layouts.next(&mut reading, name);
        }
        layouts.end(reading, fields)
    })
}

impl Plan {
    fn read(&self, name: &str) -> Read {
        match self.named.iter().find(|(known, _)| known.as_str() == name) {
            Some((_, inner)) => Read::By(*inner),
            None if self.rest => Read::AsItCame,
            None => Read::Not,
        }
    }
}

impl Node {
    fn new(name: Text, before: Option<usize>, read: Read) -> Self {
        Self { name, before, read, usual: None, names: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(layouts: &mut Layouts, names: &[&str]) -> Names {
        let mut reading = layouts.begin(Layouts::RECORD);
        let kept = names.iter().filter(|name| layouts.next(&mut reading, name) != Read::Not).count();
        layouts.end(reading, kept)
    }

    fn is_shared(a: &Names, b: &Names) -> bool {
        matches!((a, b), (Names::Kept(a), Names::Kept(b)) if std::ptr::eq(*a, *b))
    }

    fn names(of: &Names) -> Vec<&str> {
        of.list().iter().map(Text::as_str).collect()
    }

    #[test]
    fn objects_with_the_same_names_share_them_also_when_layouts_alternate() {
        let mut layouts = Layouts::new(&Projection::everything());
        let kinds: [&[&str]; 5] = [&["a", "b"], &["a", "c", "b"], &["a"], &[], &["a", "b", "a"]];
        let first = kinds.map(|kind| read(&mut layouts, kind));
        for _ in 0..2 {
            for (kind, first) in kinds.iter().zip(&first) {
                let again = read(&mut layouts, kind);
                assert!(is_shared(first, &again), "{kind:?}");
                assert_eq!(names(&again), *kind);
            }
        }
    }

    #[test]
    fn what_is_left_out_has_no_name() {
        let mut projection = Projection::nothing();
        projection.add(&"b.c".parse().unwrap());
        let mut layouts = Layouts::new(&projection);
        for _ in 0..2 {
            let mut reading = layouts.begin(Layouts::RECORD);
            assert_eq!(layouts.next(&mut reading, "a"), Read::Not);
            let Read::By(inner) = layouts.next(&mut reading, "b") else { panic!("b is read") };
            assert_eq!(names(&layouts.end(reading, 1)), ["b"]);
            let mut reading = layouts.begin(inner);
            assert_eq!(layouts.next(&mut reading, "c"), Read::By(inner + 1));
            assert_eq!(layouts.next(&mut reading, "b"), Read::Not);
        }
    }

    #[test]
    fn names_that_never_come_again_do_not_fill_the_memory() {
        let mut layouts = Layouts::new(&Projection::everything());
        let known = read(&mut layouts, &["id", "known"]);
        for n in 0..2 * REMEMBERED {
            let unforeseen = format!("n{n}");
            let kind = ["id", unforeseen.as_str(), "behind"];
            assert_eq!(names(&read(&mut layouts, &kind)), kind);
        }
        assert_eq!(layouts.nodes.len(), REMEMBERED);
        assert!(is_shared(&known, &read(&mut layouts, &["id", "known"])));
    }
}
