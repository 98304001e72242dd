//! YAML with places: what stands in the file and where, and nothing about what it means.

mod environment;
mod parse;
mod scalar;

pub(crate) use parse::{in_quotes, parse, print};
pub(crate) use scalar::Plain;

use crate::Span;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Yaml,
}

/// The three things YAML is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Yaml {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    Mapping(Vec<(Key, Node)>),
}

/// A text, with environment variables put in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Written without quotes, so that it may be a number, a truth value or nothing.
    pub(crate) plain: bool,
    /// How many characters stand before the first one of the text: 1 for a quote. `None` when places inside the text
    /// cannot be told: it has several lines, escapes or variables.
    pub(crate) inside: Option<usize>,
    /// Something is wrong with it, and was said: what it takes the place of is not judged.
    pub(crate) broken: bool,
}

/// A key of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Span,
}

impl Node {
    /// What it is, for a sentence: `a list`.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Yaml::Sequence(_) => "a list",
            Yaml::Mapping(_) => "a mapping",
            Yaml::Scalar(scalar) => scalar.plain().kind(),
        }
    }

    pub(crate) fn scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Yaml::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub(crate) fn entries(&self) -> Option<&[(Key, Node)]> {
        match &self.value {
            Yaml::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value under `key`, and the key's own place.
    pub(crate) fn entry(&self, key: &str) -> Option<&(Key, Node)> {
        self.entries()?.iter().find(|(known, _)| known.name == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, node)| node)
    }
}
