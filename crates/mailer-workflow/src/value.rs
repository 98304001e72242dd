//! Values whose type nobody knew when the program was compiled: what flows through a workflow.
//!
//! A value is three words. Long strings, lists and objects are shared, so that a copy costs a counter; names of fields are
//! shared between records, all those of a record at once. Parts of a JSON record that no step reads stay text ([`Value::Raw`]) and are written out as they came.

mod json;
mod key;
mod layouts;
mod names;
mod object;
mod order;
mod projection;
mod raw;
mod stored;
mod text;

pub use json::{JsonDecoder, write_json};
pub use key::ValueKey;
pub(crate) use names::Hint;
pub use object::{FieldNames, Object};
pub use projection::Projection;
pub use raw::Raw;
pub use text::Text;

use crate::dead_letter::Note;
use std::fmt;
use std::sync::Arc;

/// A value as JSON knows it.
///
/// Whole numbers from -2⁶³ to 2⁶³-1 are exact; others are floating point. `1` and `1.0` are equal, `1` and `"1"` are not.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(Text),
    /// Values in order.
    List(Arc<Vec<Value>>),
    /// Named values, in the order in which they were written.
    Object(Arc<Object>),
    /// JSON that nobody has looked at yet.
    Raw(Arc<Raw>),
}

impl Value {
    /// An object of fields in order.
    pub fn object<N: Into<Text>, V: Into<Value>>(fields: impl IntoIterator<Item = (N, V)>) -> Value {
        Value::Object(Arc::new(fields.into_iter().collect()))
    }

    /// What it is behind [`Value::Raw`]: looked at now, if it was not before.
    #[inline]
    pub fn seen(&self) -> &Value {
        match self {
            Value::Raw(raw) => raw.value(),
            seen => seen,
        }
    }

    /// The field called `name` of an object; the element of that number of a list.
    pub fn field(&self, name: &Text) -> Option<&Value> {
        self.field_near(name, &Hint::default())
    }

    /// The same, looked for first where `hint` says.
    #[inline]
    pub(crate) fn field_near(&self, name: &Text, hint: &Hint) -> Option<&Value> {
        match self.seen() {
            Value::Object(object) => object.get_near(name, hint),
            Value::List(list) => list.get(name.as_str().parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The fields of an object; none of anything else.
    pub fn fields(&self) -> impl Iterator<Item = (&Text, &Value)> {
        let object = if let Value::Object(object) = self.seen() { Some(object) } else { None };
        object.into_iter().flat_map(|object| object.fields())
    }

    /// The text of a text.
    pub fn as_str(&self) -> Option<&str> {
        match self.seen() {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The same, where its bytes are enough.
    #[inline]
    pub(crate) fn as_text(&self) -> Option<&Text> {
        if let Value::Text(text) = self.seen() { Some(text) } else { None }
    }

    /// The elements of a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self.seen() {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// A number, exact or not.
    pub fn as_f64(&self) -> Option<f64> {
        match self.seen() {
            Value::Integer(n) => Some(*n as f64),
            Value::Float(n) => Some(*n),
            _ => None,
        }
    }

    /// A number that is whole.
    pub fn as_i64(&self) -> Option<i64> {
        match self.seen() {
            Value::Integer(n) => Some(*n),
            Value::Float(n) => whole(*n),
            _ => None,
        }
    }

    /// Whether it is nothing.
    pub fn is_null(&self) -> bool {
        matches!(self.seen(), Value::Null)
    }

    /// What it is, for a sentence: `text`.
    pub fn kind(&self) -> &'static str {
        match self.seen() {
            Value::Null | Value::Raw(_) => "null",
            Value::Bool(_) => "a truth value",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// What is known of an object besides its fields.
    pub(crate) fn note(&self) -> Option<&Arc<Note>> {
        match self {
            Value::Object(object) => object.note(),
            _ => None,
        }
    }

    /// Notes something beside an object. Anything else has no room for it.
    pub(crate) fn take_note(&mut self, note: Arc<Note>) {
        if let Value::Object(object) = self {
            Arc::make_mut(object).take_note(note);
        }
    }

    /// Takes over what is known of the record that this one was made of.
    pub(crate) fn take_note_of(&mut self, record: &Value) {
        if let Some(note) = record.note() {
            self.take_note(note.clone());
        }
    }

    /// Looks at it for good, so that it can be changed.
    #[inline]
    fn own(&mut self) -> &mut Value {
        if let Value::Raw(raw) = self {
            *self = raw.value().clone();
        }
        self
    }

    pub(crate) fn field_mut(&mut self, name: &Text, hint: &Hint) -> Option<&mut Value> {
        match self.own() {
            Value::Object(object) => {
                let place = object.place_near(name, hint)?;
                Arc::make_mut(object).at_mut(place)
            }
            Value::List(list) => {
                let place = name.as_str().parse::<usize>().ok()?;
                Arc::make_mut(list).get_mut(place)
            }
            _ => None,
        }
    }

    pub(crate) fn field_mut_or_insert(&mut self, name: &Text, hint: &Hint) -> &mut Value {
        let place_in = |list: &Vec<Value>| name.as_str().parse().ok().filter(|place: &usize| *place < list.len());
        match self.own() {
            Value::Object(_) => {}
            Value::List(list) if place_in(list).is_some() => {}
            other => *other = Value::Object(Arc::default()),
        }
        match self {
            Value::List(list) => {
                let place = place_in(list).unwrap_or_default();
                &mut Arc::make_mut(list)[place]
            }
            Value::Object(object) => Arc::make_mut(object).get_or_add(name, hint),
            other => other,
        }
    }

    pub(crate) fn set_field(&mut self, name: &Text, hint: &Hint, new: Value) {
        match self.own() {
            Value::Object(object) => Arc::make_mut(object).set(name, hint, new),
            other => *other.field_mut_or_insert(name, hint) = new,
        }
    }

    pub(crate) fn take_field(&mut self, name: &Text, hint: &Hint) -> Option<Value> {
        let Value::Object(object) = self.own() else { return None };
        let place = object.place_near(name, hint)?;
        Some(Arc::make_mut(object).take_at(place))
    }
}

/// The whole number that `n` is, if it is one.
pub(crate) fn whole(n: f64) -> Option<i64> {
    // 2⁶³ itself is no i64.
    (n.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n)).then_some(n as i64)
}

/// As JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        write_json(self, &mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.into())
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Value::Integer(n)
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Self {
        Value::Float(n)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}

impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Self {
        Value::List(Arc::new(values))
    }
}
