//! Values in state: a tag and the content, in the compact encoding. Checkpoints depend on the order of the tags, and on that
//! of the fields of a note: what is new gets a tag of its own, behind the others.

use super::{Object, Text, Value};
use crate::dead_letter::{Note, Provenance};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

#[derive(Serialize)]
enum Written<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(&'a Text),
    List(&'a [Value]),
    Object(#[serde(serialize_with = "fields")] &'a Object),
    /// An object, and where it came from: a step behind may have to say so after a restart.
    Noted(#[serde(serialize_with = "fields")] &'a Object, WrittenNote<'a>),
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
    Noted(Vec<(Text, Value)>, ReadNote),
}

#[derive(Serialize)]
struct WrittenNote<'a> {
    origin: Option<&'a str>,
    topic: Option<&'a str>,
    partition: Option<i32>,
    offset: Option<i64>,
    line: Option<u64>,
    timestamp: Option<i64>,
    key: Option<&'a [u8]>,
    headers: &'a [(String, Option<Vec<u8>>)],
}

#[derive(Deserialize)]
struct ReadNote {
    origin: Option<String>,
    topic: Option<String>,
    partition: Option<i32>,
    offset: Option<i64>,
    line: Option<u64>,
    timestamp: Option<i64>,
    key: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl<'a> From<&'a Provenance> for WrittenNote<'a> {
    fn from(from: &'a Provenance) -> Self {
        let Provenance { origin, topic, partition, offset, line, timestamp, key, headers } = from;
        Self {
            origin: origin.as_deref(),
            topic: topic.as_deref(),
            partition: *partition,
            offset: *offset,
            line: *line,
            timestamp: *timestamp,
            key: key.as_deref(),
            headers,
        }
    }
}

impl From<ReadNote> for Provenance {
    fn from(note: ReadNote) -> Self {
        let ReadNote { origin, topic, partition, offset, line, timestamp, key, headers } = note;
        let (origin, topic) = (origin.map(Arc::from), topic.map(Arc::from));
        Self { origin, topic, partition, offset, line, timestamp, key, headers }
    }
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
            Value::Object(object) => match object.note().and_then(|note| note.provenance()) {
                Some(from) => Written::Noted(object, from.into()),
                None => Written::Object(object),
            },
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
            Read::Noted(fields, note) => {
                let mut value = Value::object(fields);
                value.take_note(Arc::new(Note::From(note.into())));
                value
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::codec::{decode, encode};

    fn bytes(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(value, &mut bytes).unwrap();
        bytes
    }

    fn place() -> Provenance {
        Provenance {
            origin: Some("o".into()),
            topic: Some("t".into()),
            partition: Some(1),
            offset: Some(2),
            line: Some(3),
            timestamp: Some(4),
            key: Some(vec![0xff]),
            headers: vec![("h".into(), Some(vec![7])), ("n".into(), None)],
        }
    }

    /// What is in checkpoints that were written before: these bytes never change.
    #[test]
    fn the_stored_form_is_frozen() {
        let frozen: [(&str, &[u8]); 7] = [
            ("null", &[0]),
            ("true", &[1, 1]),
            ("-1", &[2, 1]),
            ("0.5", &[3, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f]),
            ("\"a\"", &[4, 1, b'a']),
            ("[1]", &[5, 1, 2, 2]),
            ("{\"a\":null}", &[6, 1, 1, b'a', 0]),
        ];
        for (json, stored) in frozen {
            assert_eq!(bytes(&Value::from_json(json.as_bytes()).unwrap()), stored, "{json}");
            assert_eq!(decode::<Value>(stored).unwrap().to_string(), json);
        }
        let mut noted = Value::from_json(b"{\"a\":null}").unwrap();
        noted.take_note(Arc::new(Note::From(place())));
        let stored = [
            &[7, 1, 1, b'a', 0][..],
            &[1, 1, b'o', 1, 1, b't', 1, 2, 1, 4, 1, 3, 1, 8, 1, 1, 0xff],
            &[2, 1, b'h', 1, 1, 7, 1, b'n', 0],
        ];
        assert_eq!(bytes(&noted), stored.concat());
    }

    #[test]
    fn a_record_knows_where_it_came_from_after_it_was_stored() {
        for from in [place(), Provenance::default()] {
            let mut record = Value::from_json(b"{\"a\": [1, {\"b\": 2}]}").unwrap();
            record.take_note(Arc::new(Note::From(from.clone())));
            let read: Value = decode(&bytes(&record)).unwrap();
            assert_eq!(read.to_string(), "{\"a\":[1,{\"b\":2}]}");
            assert_eq!(read.note().and_then(|note| note.provenance()), Some(&from));
        }
    }
}
