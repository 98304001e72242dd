//! The schema as data: one description, from which the check, its help, the JSON Schema and the reference pages follow.
//!
//! A [`Section`] is a mapping with known [`Key`]s, a [`Shape`] what a key takes. A connector describes its section the same
//! way ([`crate::Connector`]). [`Schema`] is all of it together.

mod check;
mod habits;
mod json;
mod nearest;
mod page;
mod units;

pub use page::Page;

pub(crate) use check::{Checker, meant, sentence_list, there_are};
pub(crate) use nearest::nearest;
pub(crate) use units::{duration, size};

use std::fmt;

/// A mapping with known keys.
#[derive(Debug)]
pub struct Section {
    /// What it is called where it is used: `filter`, `kafka`, `checkpoint`.
    pub name: &'static str,
    /// What it is for, in a sentence or two of Markdown.
    pub summary: &'static str,
    /// Its keys, the most important first.
    pub keys: &'static [Key],
    /// What has to be true of several keys together.
    pub rules: &'static [Rule],
    /// The content of the section as somebody would write it, in YAML. It is checked by a test.
    pub example: &'static str,
}

/// One key of a [`Section`].
#[derive(Debug)]
pub struct Key {
    /// Its name, in camelCase.
    pub name: &'static str,
    /// What it takes.
    pub shape: Shape,
    /// Whether it has to be there.
    pub required: bool,
    /// What counts when it is not there, as text for people. Empty where nothing does.
    pub default: &'static str,
    /// What it means, in a sentence of Markdown.
    pub doc: &'static str,
}

impl Key {
    /// A key that may be left out.
    pub const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { name, shape, required: false, default: "", doc }
    }

    /// A key that has to be there.
    pub const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self { name, shape, required: true, default: "", doc }
    }

    /// A key that counts as `default` when it is left out.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }
}

/// What has to be true of several keys of a section.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Exactly one of them is there.
    OneOf(&'static [&'static str]),
    /// At most one of them is there.
    AtMostOne(&'static [&'static str]),
    /// The first is there only together with the second.
    Needs(&'static str, &'static str),
}

/// A word that a key takes.
#[derive(Debug)]
pub struct Word {
    /// The word.
    pub text: &'static str,
    /// What it means.
    pub doc: &'static str,
}

impl Word {
    /// `text`, which means `doc`.
    pub const fn new(text: &'static str, doc: &'static str) -> Self {
        Self { text, doc }
    }
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Text that is not empty.
    Text,
    /// `true` or `false`.
    Bool,
    /// A whole number between two bounds, both included.
    Integer(i64, i64),
    /// A number above zero.
    Positive,
    /// A time with its unit: `500ms`, `5s`, `1m30s`, `2h`, `1d`.
    Duration,
    /// A number of bytes with its unit: `64KiB`, `10MB`.
    Size,
    /// A path to a field: `customer.id`.
    Path,
    /// A regular expression.
    Pattern,
    /// An expression (CEL).
    Expression,
    /// Any YAML.
    Any,
    /// One of some words.
    Word(&'static [Word]),
    /// A list.
    List(&'static Shape),
    /// One, or a list of them.
    OneOrMore(&'static Shape),
    /// A mapping from names of the author's to something.
    Map(&'static Shape),
    /// A section.
    Section(&'static Section),
    /// A word, or a section with more to say.
    WordOr(&'static [Word], &'static Section),
    /// Something with a `type`, and a section of that name.
    Typed(Family),
}

/// The three kinds of things that have a `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// What is read.
    Source,
    /// What is done.
    Step,
    /// What is written.
    Sink,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Source => "source",
            Family::Step => "step",
            Family::Sink => "sink",
        })
    }
}

/// Everything that may stand in a workflow: what this crate knows, and what connectors add.
#[derive(Debug)]
pub struct Schema {
    root: &'static Section,
    families: [Typed; 3],
}

/// A family: the keys that all its members have, and a section for each type.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) family: Family,
    pub(crate) common: &'static Section,
    pub(crate) types: Vec<&'static Section>,
}

impl Schema {
    pub(crate) fn new(
        root: &'static Section,
        (source, sources): (&'static Section, Vec<&'static Section>),
        (step, steps): (&'static Section, Vec<&'static Section>),
        (sink, sinks): (&'static Section, Vec<&'static Section>),
    ) -> Self {
        let families = [
            Typed { family: Family::Source, common: source, types: sources },
            Typed { family: Family::Step, common: step, types: steps },
            Typed { family: Family::Sink, common: sink, types: sinks },
        ];
        Self { root, families }
    }

    pub(crate) fn root(&self) -> &'static Section {
        self.root
    }

    pub(crate) fn typed(&self, family: Family) -> &Typed {
        match family {
            Family::Source => &self.families[0],
            Family::Step => &self.families[1],
            Family::Sink => &self.families[2],
        }
    }

    /// The sections of every type of a family: `kafka`, `stdin`, … for sources.
    pub fn types(&self, family: Family) -> &[&'static Section] {
        &self.typed(family).types
    }

    /// Where a key is at home, as a phrase: `at the top level`, ``under `checkpoint` ``.
    pub(crate) fn homes(&self, key: &str) -> Vec<String> {
        let mut homes = Vec::new();
        collect_homes(self.root, "at the top level".into(), key, &mut homes);
        for typed in &self.families {
            let family = typed.family;
            collect_homes(typed.common, format!("in a {family}, beside its `type`"), key, &mut homes);
            for section in &typed.types {
                collect_homes(section, format!("under `{}` of a {family}", section.name), key, &mut homes);
            }
        }
        homes
    }
}

fn collect_homes(section: &'static Section, home: String, key: &str, homes: &mut Vec<String>) {
    if section.key(key).is_some() && !homes.contains(&home) {
        homes.push(home);
    }
    for (inner, _) in section.sections() {
        collect_homes(inner, format!("under `{}`", inner.name), key, homes);
    }
}

impl Section {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The sections among its keys, each with the key.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (&'static Section, &'static Key)> {
        self.keys.iter().filter_map(|key| inner(&key.shape).map(|section| (section, key)))
    }

    /// Whether these are the keys that all of a family have.
    pub(crate) fn is_common(&self) -> bool {
        [Family::Source, Family::Step, Family::Sink].iter().any(|family| family.to_string() == self.name)
    }

    /// Whether it can be left out altogether.
    pub(crate) fn may_be_absent(&self) -> bool {
        let one_of = |rule: &Rule| matches!(rule, Rule::OneOf(_));
        !self.keys.iter().any(|key| key.required) && !self.rules.iter().any(one_of)
    }
}

fn inner(shape: &Shape) -> Option<&'static Section> {
    match shape {
        Shape::Section(section) | Shape::WordOr(_, section) => Some(section),
        Shape::List(shape) | Shape::OneOrMore(shape) | Shape::Map(shape) => inner(shape),
        _ => None,
    }
}

impl Shape {
    /// What it takes, as a phrase: `a duration like 5s`.
    pub(crate) fn phrase(&self) -> String {
        match self {
            Shape::Text => "text".into(),
            Shape::Bool => "true or false".into(),
            Shape::Integer(..) => "a whole number".into(),
            Shape::Positive => "a number above 0".into(),
            Shape::Duration => "a duration such as 5s".into(),
            Shape::Size => "a size such as 10MiB".into(),
            Shape::Path => "a field such as customer.id".into(),
            Shape::Pattern => "a regular expression".into(),
            Shape::Expression => "an expression".into(),
            Shape::Any => "anything".into(),
            Shape::Word(words) => check::either(words),
            Shape::List(item) => format!("a list of {}", item.plural()),
            Shape::OneOrMore(item) => format!("{}, or a list of them", item.phrase()),
            Shape::Map(item) => format!("a mapping to {}", item.plural()),
            Shape::Section(_) => "a mapping".into(),
            Shape::WordOr(words, _) => format!("{}, or a mapping", check::either(words)),
            Shape::Typed(family) => format!("a {family}"),
        }
    }

    fn plural(&self) -> String {
        match self {
            Shape::Text => "texts".into(),
            Shape::Path => "fields".into(),
            Shape::Expression => "expressions".into(),
            Shape::Section(_) => "mappings".into(),
            Shape::Typed(family) => format!("{family}s"),
            Shape::Any => "values".into(),
            other => other.phrase(),
        }
    }
}
