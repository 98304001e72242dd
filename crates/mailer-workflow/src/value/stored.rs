//! Values in state: a tag and the content, in the compact encoding. Checkpoints depend on the order of the tags.

use super::{Object, Text, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize)]
enum Written<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(&'a Text),
    List(&'a [Value]),
    Object(#[serde(serialize_with = "fields")] &'a Object),
}

#[derive(Deserialize)]
enum Read {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Text),
    List(Vec<Value>),
    Object(Vec<(Text, Value)>),
}

/// Name and value by turns.
fn fields<S: Serializer>(object: &&Object, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(object.fields())
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = match self.seen() {
            Value::Null | Value::Raw(_) => Written::Null,
            Value::Bool(b) => Written::Bool(*b),
            Value::Integer(n) => Written::Integer(*n),
            Value::Float(n) => Written::Float(*n),
            Value::Text(text) => Written::Text(text),
            Value::List(list) => Written::List(list),
            Value::Object(object) => Written::Object(object),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Read::deserialize(deserializer)? {
            Read::Null => Value::Null,
            Read::Bool(b) => Value::Bool(b),
            Read::Integer(n) => Value::Integer(n),
            Read::Float(n) => Value::Float(n),
            Read::Text(text) => Value::Text(text),
            Read::List(list) => list.into(),
            Read::Object(fields) => Value::object(fields),
        })
    }
}
