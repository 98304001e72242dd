//! Records that could not be handled, on their way to a sink where somebody looks at them.

use crate::Value;
use crate::value::{Object, Text, write_json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

/// Where a record came from, as far as its source knows.
///
/// ```
/// use mailer_workflow::Provenance;
/// let place = Provenance { topic: Some("orders".into()), partition: Some(3), offset: Some(42), ..Default::default() };
/// assert_eq!(place.key, None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// What was read, where that is no topic: the path of a file, `stdin`, the address of a caller.
    pub origin: Option<Arc<str>>,
    /// The topic.
    pub topic: Option<Arc<str>>,
    /// The partition.
    pub partition: Option<i32>,
    /// The offset in it; of a file, how many bytes stand before the record.
    pub offset: Option<i64>,
    /// The number of its line, from 1: of standard input, or of what a caller has sent.
    pub line: Option<u64>,
    /// Milliseconds since 1970, as the source gives it.
    pub timestamp: Option<i64>,
    /// The key, where it is kept apart from the value.
    pub key: Option<Vec<u8>>,
    /// Headers in order; a value may be null.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

/// What a dead letter was before it died.
#[derive(Clone, Debug, PartialEq)]
pub enum Remains {
    /// Bytes that could not be read; `None` where there were none (a tombstone).
    Raw(Option<Vec<u8>>),
    /// A record that a step could not handle, as it came to that step.
    Record(Value),
}

/// A record that could not be handled, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// The source or step that could not handle it.
    pub step: Text,
    /// What was wrong.
    pub error: String,
    /// Where it came from. Objects remember that on their way; of a list, text or a number that a step refused, nothing is
    /// known.
    pub from: Provenance,
    /// What it was.
    pub remains: Remains,
}

impl DeadLetter {
    /// A record that a step could not handle.
    pub(crate) fn of_record(step: &Text, error: String, record: Value) -> Self {
        let from = record.note().and_then(|note| note.provenance()).cloned().unwrap_or_default();
        Self { step: step.clone(), error, from, remains: Remains::Record(record) }
    }

    /// The bytes: as they came, or the record as JSON.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match &self.remains {
            Remains::Raw(bytes) => bytes.clone(),
            Remains::Record(record) => {
                let mut json = Vec::new();
                write_json(record, &mut json);
                Some(json)
            }
        }
    }

    /// As a record, for sinks that write records: `step`, `error`, what is known of `origin`, `topic`, `partition`, `offset`,
    /// `line`, `timestamp` and `key`, and `record`, or `raw` text (`rawBase64` where it is none).
    pub fn to_value(&self) -> Value {
        let mut letter = Object::with_capacity(8);
        let Provenance { origin, topic, partition, offset, line, timestamp, key, headers: _ } = &self.from;
        letter.push("step".into(), self.step.clone().into());
        letter.push("error".into(), self.error.as_str().into());
        let known = [
            ("origin", origin.as_deref().map(Value::from)),
            ("topic", topic.as_deref().map(Value::from)),
            ("partition", partition.map(|n| Value::Integer(n.into()))),
            ("offset", offset.map(Value::Integer)),
            ("line", line.map(|n| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX)))),
            ("timestamp", timestamp.map(Value::Integer)),
        ];
        known.into_iter().for_each(|(name, value)| push(&mut letter, name, value));
        push_bytes(&mut letter, ("key", "keyBase64"), key.as_deref());
        match &self.remains {
            Remains::Raw(bytes) => push_bytes(&mut letter, ("raw", "rawBase64"), bytes.as_deref()),
            Remains::Record(record) => letter.push("record".into(), record.clone()),
        }
        Value::Object(Arc::new(letter))
    }
}

fn push(letter: &mut Object, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        letter.push(name.into(), value);
    }
}

fn push_bytes(letter: &mut Object, (text, base64): (&str, &str), bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return };
    match std::str::from_utf8(bytes) {
        Ok(plain) => letter.push(text.into(), plain.into()),
        Err(_) => letter.push(base64.into(), STANDARD.encode(bytes).as_str().into()),
    }
}

/// What is known of a record besides its fields. No step sees it.
#[derive(Debug)]
pub(crate) enum Note {
    /// Where it came from.
    From(Provenance),
    /// It is no record, but stands for one that could not be read, on the short way from its source to the operator that
    /// takes it out.
    Letter(DeadLetter),
}

impl Note {
    pub(crate) fn provenance(&self) -> Option<&Provenance> {
        if let Note::From(from) = self { Some(from) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(raw: &[u8]) -> DeadLetter {
        let from = Provenance {
            topic: Some("orders".into()),
            partition: Some(3),
            offset: Some(42),
            timestamp: Some(1_000),
            key: Some(b"k".to_vec()),
            ..Provenance::default()
        };
        DeadLetter { step: "in".into(), error: "no".into(), from, remains: Remains::Raw(Some(raw.to_vec())) }
    }

    #[test]
    fn a_letter_says_where_it_came_from_and_what_it_was() {
        assert_eq!(
            letter(b"{").to_value().to_string(),
            r#"{"step":"in","error":"no","topic":"orders","partition":3,"offset":42,"timestamp":1000,"key":"k","raw":"{"}"#
        );
        let from = Provenance { origin: Some("a.csv".into()), offset: Some(7), line: Some(2), ..Provenance::default() };
        let of_file = DeadLetter { from, ..letter(b"{") };
        assert_eq!(
            of_file.to_value().to_string(),
            r#"{"step":"in","error":"no","origin":"a.csv","offset":7,"line":2,"raw":"{"}"#
        );
        assert!(letter(&[0xff]).to_value().to_string().ends_with(r#""rawBase64":"/w=="}"#));
    }

    #[test]
    fn a_record_takes_its_provenance_along_through_changes() {
        let mut record = Value::from_json(br#"{"a": 1}"#).unwrap();
        record.take_note(Arc::new(Note::From(letter(b"").from)));
        "b".parse::<crate::Path>().unwrap().set(&mut record, Value::Integer(2));
        let letter = DeadLetter::of_record(&"step".into(), "no".into(), record);
        assert_eq!((letter.from.offset, letter.bytes().unwrap()), (Some(42), br#"{"a":1,"b":2}"#.to_vec()));
    }
}
