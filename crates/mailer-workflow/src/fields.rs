//! Typed reading of a section that was checked. What is missing or wrong is `None`: the check has said so already.
//!
//! Only keys that the schema describes can be read; another one is a bug of whoever reads it and is kept in
//! [`Undescribed`], which a test and every load look at.

use crate::path::Path;
use crate::schema::{self, Section};
use crate::yaml::{Key, Node, Plain, Yaml};
use crate::{Span, Spanned, Value};
use std::cell::RefCell;
use std::time::Duration;

/// Keys that somebody read although the schema does not describe them.
#[derive(Debug, Default)]
pub(crate) struct Undescribed(RefCell<Vec<String>>);

impl Undescribed {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.borrow_mut())
    }
}

/// A section of the file, to be read key by key.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    section: &'static Section,
    /// `None` when the file leaves the section out: then every key is absent.
    node: Option<&'a Node>,
    /// Where the section begins.
    span: Span,
    undescribed: &'a Undescribed,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        section: &'static Section,
        node: Option<&'a Node>,
        span: Span,
        undescribed: &'a Undescribed,
    ) -> Self {
        Self { section, node, span, undescribed }
    }

    /// Where the section stands: for findings about all of it.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Where `key` stands in the file, else where the section does.
    pub fn key_span(&self, key: &str) -> Span {
        self.node.and_then(|node| node.entry(key)).map_or(self.span, |(key, _)| key.span)
    }

    pub(crate) fn node(&self, key: &str) -> Option<&'a Node> {
        if self.section.key(key).is_none() {
            self.undescribed.0.borrow_mut().push(format!("{}.{key}", self.section.name));
            return None;
        }
        self.node?.get(key)
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    fn read<T>(&self, key: &str, read: impl FnOnce(&'a Node) -> Option<T>) -> Option<Spanned<T>> {
        let node = self.node(key)?;
        Some(Spanned::new(read(node)?, node.span))
    }

    /// A text, a word, a pattern or an expression.
    pub fn text(&self, key: &str) -> Option<Spanned<String>> {
        self.read(key, text)
    }

    /// One text or several.
    pub fn texts(&self, key: &str) -> Vec<Spanned<String>> {
        let spanned = |node: &Node| Some(Spanned::new(text(node)?, node.span));
        self.node(key).map(|node| several(node).filter_map(spanned).collect()).unwrap_or_default()
    }

    /// A truth value.
    pub fn bool(&self, key: &str) -> Option<Spanned<bool>> {
        self.read(key, |node| match node.scalar()?.plain() {
            Plain::Bool(b) => Some(b),
            _ => None,
        })
    }

    /// A whole number.
    pub fn integer(&self, key: &str) -> Option<Spanned<i64>> {
        self.read(key, |node| match node.scalar()?.plain() {
            Plain::Integer(n) => Some(n),
            _ => None,
        })
    }

    /// A number.
    pub fn number(&self, key: &str) -> Option<Spanned<f64>> {
        self.read(key, |node| match node.scalar()?.plain() {
            Plain::Integer(n) => Some(n as f64),
            Plain::Float(n) => Some(n),
            _ => None,
        })
    }

    /// A duration.
    pub fn duration(&self, key: &str) -> Option<Spanned<Duration>> {
        self.read(key, |node| schema::duration(&node.scalar()?.text).ok())
    }

    /// A number of bytes.
    pub fn size(&self, key: &str) -> Option<Spanned<u64>> {
        self.read(key, |node| schema::size(&node.scalar()?.text).ok())
    }

    /// A path to a field.
    pub fn path(&self, key: &str) -> Option<Spanned<Path>> {
        self.read(key, path)
    }

    /// One path or several.
    pub fn paths(&self, key: &str) -> Vec<Spanned<Path>> {
        let spanned = |node: &Node| Some(Spanned::new(path(node)?, node.span));
        self.node(key).map(|node| several(node).filter_map(spanned).collect()).unwrap_or_default()
    }

    /// Any YAML as a value.
    pub fn value(&self, key: &str) -> Option<Spanned<Value>> {
        self.read(key, |node| Some(value(node)))
    }

    /// An expression, which remembers where in the file it stands.
    pub(crate) fn expression(&self, key: &str) -> Option<&'a Node> {
        self.node(key).filter(|node| node.scalar().is_some_and(|scalar| !scalar.text.is_empty()))
    }

    /// A section in this one. Absent, it reads as one without keys.
    pub fn section(&self, key: &str) -> Fields<'a> {
        let node = self.node(key).filter(|node| node.entries().is_some());
        let section = self.section.sections().find(|(_, known)| known.name == key);
        let section = section.map_or(self.section, |(section, _)| section);
        Fields { section, node, span: self.key_span(key), undescribed: self.undescribed }
    }

    /// Sections under names of the author's.
    pub(crate) fn map(&self, key: &str) -> Vec<(Spanned<String>, Fields<'a>)> {
        let Some((section, _)) = self.section.sections().find(|(_, known)| known.name == key) else {
            return Vec::new();
        };
        let entries = self.node(key).and_then(Node::entries).unwrap_or_default();
        let fields = |node: &'a Node, span| Fields { section, node: Some(node), span, undescribed: self.undescribed };
        entries.iter().map(|(key, node)| (Spanned::new(key.name.clone(), key.span), fields(node, key.span))).collect()
    }

    /// Texts under names of the author's.
    pub fn map_of_texts(&self, key: &str) -> Vec<(Spanned<String>, String)> {
        let entries = self.node(key).and_then(Node::entries).unwrap_or_default();
        let named = |key: &Key, node| Some((Spanned::new(key.name.clone(), key.span), text(node)?));
        entries.iter().filter_map(|(key, node)| named(key, node)).collect()
    }

    /// A list of sections.
    pub(crate) fn sections(&self, key: &str) -> Vec<Fields<'a>> {
        let Some((section, _)) = self.section.sections().find(|(_, known)| known.name == key) else {
            return Vec::new();
        };
        let fields =
            |node: &'a Node| Fields { section, node: Some(node), span: node.span, undescribed: self.undescribed };
        self.node(key).map(|node| several(node).map(fields).collect()).unwrap_or_default()
    }

    /// The items of a list, or the only one.
    pub(crate) fn items(&self, key: &str) -> Vec<&'a Node> {
        self.node(key).map(|node| several(node).collect()).unwrap_or_default()
    }
}

fn several(node: &Node) -> impl Iterator<Item = &Node> {
    match &node.value {
        Yaml::Sequence(items) => items.as_slice().iter(),
        _ => std::slice::from_ref(node).iter(),
    }
}

fn text(node: &Node) -> Option<String> {
    node.scalar().map(|scalar| scalar.text.clone()).filter(|text| !text.is_empty())
}

fn path(node: &Node) -> Option<Path> {
    Path::parse(&node.scalar()?.text).ok()
}

/// YAML as a value: the words and numbers of YAML 1.2 are what they are, quoted text is text.
pub(crate) fn value(node: &Node) -> Value {
    match &node.value {
        Yaml::Sequence(items) => items.iter().map(value).collect::<Vec<_>>().into(),
        Yaml::Mapping(entries) => Value::object(entries.iter().map(|(key, node)| (key.name.as_str(), value(node)))),
        Yaml::Scalar(scalar) => match scalar.plain() {
            Plain::Null => Value::Null,
            Plain::Bool(b) => Value::Bool(b),
            Plain::Integer(n) => Value::Integer(n),
            Plain::Float(n) => Value::Float(n),
            Plain::Text(text) => Value::from(text),
        },
    }
}
