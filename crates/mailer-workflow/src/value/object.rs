//! Objects: values under names.

use super::layouts::names_of;
use super::names::{Hint, Names};
use super::{Text, Value};
use crate::dead_letter::Note;
use std::sync::Arc;

/// Room for fields that steps add: one or two are usual, and moving all values for them is not.
pub(super) const SPARE: usize = 2;

/// Fields in the order in which they were written. Of two with one name the last counts.
///
/// Objects with the same names share them: a copy copies the values alone.
#[derive(Debug)]
pub struct Object {
    names: Names,
    /// As many as there are names.
    values: Vec<Value>,
    /// Where it came from, when somebody wants to know. Stored with it, and not part of its value.
    note: Option<Arc<Note>>,
}

impl Object {
    /// An empty object with room for `fields` fields.
    pub fn with_capacity(fields: usize) -> Self {
        Self { names: Names::none(), values: Vec::with_capacity(fields), note: None }
    }

    /// Values under names: as many as there are names.
    pub(super) fn of(names: Names, values: Vec<Value>) -> Self {
        debug_assert_eq!(names.list().len(), values.len());
        Self { names, values, note: None }
    }

    /// The fields, in order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&Text, &Value)> {
        self.names.list().iter().zip(&self.values)
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds a field behind the others, without looking for another of that name.
    pub fn push(&mut self, name: Text, value: Value) {
        self.names.push(name);
        self.values.push(value);
    }

    /// The field called `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(self.names.place(name)?)
    }

    /// The same, looked for first where `hint` says.
    #[inline]
    pub(super) fn get_near(&self, name: &Text, hint: &Hint) -> Option<&Value> {
        self.values.get(self.names.place_near(name, hint)?)
    }

    /// Where the field called `name` is, looked for first where `hint` says.
    #[inline]
    pub(super) fn place_near(&self, name: &Text, hint: &Hint) -> Option<usize> {
        self.names.place_near(name, hint)
    }

    /// The value at a place.
    pub(super) fn at_mut(&mut self, place: usize) -> Option<&mut Value> {
        self.values.get_mut(place)
    }

    /// The field called `name`, made if it is not there.
    pub(super) fn get_or_add(&mut self, name: &Text, hint: &Hint) -> &mut Value {
        let place = self.names.place_or_add(name, hint).unwrap_or_else(|| {
            self.values.push(Value::Null);
            self.values.len() - 1
        });
        &mut self.values[place]
    }

    /// The field called `name` is `new` now, made if it is not there.
    pub(super) fn set(&mut self, name: &Text, hint: &Hint, new: Value) {
        match self.names.place_or_add(name, hint) {
            Some(place) => self.values[place] = new,
            None => self.values.push(new),
        }
    }

    /// Takes the field at `place` out.
    pub(super) fn take_at(&mut self, place: usize) -> Value {
        self.names.remove(place);
        self.values.remove(place)
    }

    pub(super) fn note(&self) -> Option<&Arc<Note>> {
        self.note.as_ref()
    }

    pub(super) fn take_note(&mut self, note: Arc<Note>) {
        self.note = Some(note);
    }
}

/// The names of fields, for many objects that all have them: they share the names.
///
/// ```
/// use mailer_workflow::{FieldNames, Value};
/// let names: FieldNames = ["a", "b"].into_iter().collect();
/// let record = names.object(vec![Value::Integer(1), Value::from("x")]);
/// assert_eq!(record.to_string(), r#"{"a":1,"b":"x"}"#);
/// ```
#[derive(Clone, Debug)]
pub struct FieldNames(Names);

impl FieldNames {
    /// An object with these values, in the order of the names. Where there are too few, the others are null; what is too
    /// much is left out.
    pub fn object(&self, mut values: Vec<Value>) -> Value {
        values.resize(self.0.list().len(), Value::Null);
        Value::Object(Arc::new(Object::of(self.0.clone(), values)))
    }
}

/// No names.
impl Default for FieldNames {
    fn default() -> Self {
        Self(Names::none())
    }
}

impl<N: Into<Text>> FromIterator<N> for FieldNames {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        Self(Names::keep(names.into_iter().map(Into::into).collect()))
    }
}

/// Who copies an object is about to change it.
impl Clone for Object {
    fn clone(&self) -> Self {
        let mut values = Vec::with_capacity(self.values.len() + SPARE);
        values.extend_from_slice(&self.values);
        Self { names: self.names.clone(), values, note: self.note.clone() }
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<N: Into<Text>, V: Into<Value>> FromIterator<(N, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        let (names, values): (Vec<Text>, _) =
            fields.into_iter().map(|(name, value)| (name.into(), value.into())).unzip();
        Self::of(names_of(names.iter()), values)
    }
}
