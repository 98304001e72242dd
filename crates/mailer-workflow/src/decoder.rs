//! From bytes to records, as the workflow needs them.

use crate::dead_letter::{DeadLetter, Note, Provenance, Remains};
use crate::model::{OnError, TimeField, TimeFormat};
use crate::value::{JsonDecoder, Projection, Text};
use crate::{Value, times};
use mailer_runtime::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Makes records of bytes or of values: only what the steps read is looked at, and the event time is checked. Clone it for
/// every worker; clones count what they skip together.
///
/// What becomes of a record that cannot be read, the workflow says (`onError`): an error, nothing (`Ok(None)`), or a record
/// that stands for a dead letter and has to be handed on like any other.
#[derive(Clone, Debug)]
pub struct Decoder {
    json: JsonDecoder,
    time: Option<TimeField>,
    source: Text,
    on_error: OnError,
    /// Whether steps behind the source have dead letters, and so must know where their records came from.
    notes: bool,
    skipped: Arc<AtomicU64>,
}

impl Decoder {
    pub(crate) fn new(
        source: &str,
        projection: Projection,
        time: Option<TimeField>,
        on_error: OnError,
        notes: bool,
    ) -> Self {
        let (json, skipped) = (JsonDecoder::new(projection), Arc::default());
        Self { json, time, source: source.into(), on_error, notes, skipped }
    }

    /// A record out of JSON, of which nothing is known but its bytes.
    pub fn json(&mut self, json: &[u8]) -> Result<Option<Value>> {
        self.json_from(json, Provenance::default)
    }

    /// A record out of JSON. `from` is asked where it came from when somebody wants to know.
    pub fn json_from(&mut self, json: &[u8], from: impl FnOnce() -> Provenance) -> Result<Option<Value>> {
        self.json_with(json, from, |_| Ok(()))
    }

    /// The same; the source adds to the record what it knows besides, before anything is asked of it.
    pub fn json_with(
        &mut self,
        json: &[u8],
        from: impl FnOnce() -> Provenance,
        add: impl FnOnce(&mut Value) -> Result<(), String>,
    ) -> Result<Option<Value>> {
        let decoded = self.json.decode(json).map_err(|error| format!("a record is not JSON: {error}"));
        let decoded = decoded.and_then(|mut value| add(&mut value).map(|()| value));
        self.finish(decoded, from, || Remains::Raw(Some(json.to_vec())))
    }

    /// A record that is a value already; `bytes` are what it was made of, if there were any.
    pub fn value_from(
        &mut self,
        value: Value,
        bytes: Option<&[u8]>,
        from: impl FnOnce() -> Provenance,
    ) -> Result<Option<Value>> {
        let was = (bytes.is_none() && self.has_dead_letters()).then(|| value.clone());
        self.finish(Ok(value), from, || match was {
            Some(value) => Remains::Record(value),
            None => Remains::Raw(bytes.map(<[u8]>::to_vec)),
        })
    }

    /// Whether a record has its event time where the workflow says, or why not.
    pub fn check(&self, record: &Value) -> Result<(), String> {
        self.time.as_ref().map_or(Ok(()), |time| time.of(record).map(drop))
    }

    /// The record, which cannot be bad, with a note of where it came from when somebody wants to know.
    pub fn noted(&self, mut record: Value, from: impl FnOnce() -> Provenance) -> Value {
        if self.notes {
            record.take_note(Arc::new(Note::From(from())));
        }
        record
    }

    /// What becomes of bytes that the source itself cannot make a record of; `None` where there are none.
    pub fn refuse(&mut self, error: String, from: Provenance, bytes: Option<&[u8]>) -> Result<Option<Value>> {
        self.finish(Err(error), || from, || Remains::Raw(bytes.map(<[u8]>::to_vec)))
    }

    /// Whether records that cannot be read are skipped: for connectors that do that themselves, with
    /// [`Decoder::failing`].
    pub fn skips(&self) -> bool {
        self.on_error == OnError::Skip
    }

    /// Whether records that cannot be read become dead letters: then the decoder has to see all of them.
    pub fn has_dead_letters(&self) -> bool {
        self.on_error.sink().is_some()
    }

    /// The same decoder, with an error for every record that cannot be read.
    #[must_use]
    pub fn failing(self) -> Self {
        Self { on_error: OnError::Fail, ..self }
    }

    /// Records that were skipped so far.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Relaxed)
    }

    fn finish(
        &mut self,
        decoded: Result<Value, String>,
        from: impl FnOnce() -> Provenance,
        remains: impl FnOnce() -> Remains,
    ) -> Result<Option<Value>> {
        let checked = decoded.and_then(|value| self.check(&value).map(|()| value));
        match (checked, &self.on_error) {
            (Ok(value), _) => Ok(Some(self.noted(value, from))),
            (Err(error), OnError::Fail) => {
                Err(Error::user_function(format!("{error}; `onError: skip` at the source would drop such records")))
            }
            (Err(_), OnError::Skip) => {
                self.skipped.fetch_add(1, Relaxed);
                Ok(None)
            }
            (Err(error), OnError::DeadLetter(_)) => {
                let letter = DeadLetter { step: self.source.clone(), error, from: from(), remains: remains() };
                let mut stand_in = Value::Object(Arc::default());
                stand_in.take_note(Arc::new(Note::Letter(letter)));
                Ok(Some(stand_in))
            }
        }
    }
}

impl TimeField {
    /// The event time of a record, in milliseconds since 1970, or why there is none.
    pub(crate) fn of(&self, record: &Value) -> Result<i64, String> {
        let Some(value) = self.field.get(record) else {
            return Err(format!("a record has no field `{}` for its time", self.field));
        };
        let wrong = |what: &str| format!("the time in field `{}` of a record is {value}, not {what}", self.field);
        let number = |unit: i64| value.as_i64().and_then(|n| n.checked_mul(unit));
        match (self.format, value.seen()) {
            (None | Some(TimeFormat::Rfc3339), Value::Text(text)) => {
                times::parse(text).ok_or_else(|| wrong("like 2026-01-01T12:00:00Z"))
            }
            (Some(TimeFormat::Rfc3339), _) => Err(wrong("text like 2026-01-01T12:00:00Z")),
            (None | Some(TimeFormat::Millis), _) => number(1).ok_or_else(|| wrong("a whole number of milliseconds")),
            (Some(TimeFormat::Seconds), Value::Float(seconds)) if seconds.is_finite() => Ok((seconds * 1_000.0) as i64),
            (Some(TimeFormat::Seconds), _) => number(1_000).ok_or_else(|| wrong("a number of seconds")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(format: Option<TimeFormat>, json: &str) -> Result<i64, String> {
        let field = TimeField { field: "at".parse().unwrap(), format };
        field.of(&Value::from_json(json.as_bytes()).unwrap())
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        assert_eq!(time(None, r#"{"at": "1970-01-01T00:00:01Z"}"#), Ok(1_000));
        assert_eq!(time(None, r#"{"at": 7}"#), Ok(7));
        assert_eq!(time(Some(TimeFormat::Seconds), r#"{"at": 1.5}"#), Ok(1_500));
        assert_eq!(time(Some(TimeFormat::Seconds), r#"{"at": 2}"#), Ok(2_000));
        assert!(time(Some(TimeFormat::Rfc3339), r#"{"at": 7}"#).is_err());
        assert!(time(Some(TimeFormat::Seconds), r#"{"at": 9223372036854775807}"#).is_err());
        let error = time(None, r#"{"at": "soon"}"#).unwrap_err();
        assert_eq!(error, "the time in field `at` of a record is \"soon\", not like 2026-01-01T12:00:00Z");
    }

    #[test]
    fn bad_records_fail_or_are_skipped_and_counted() {
        let mut decoder = Decoder::new("in", Projection::everything(), None, OnError::Fail, false);
        let error = decoder.json(b"{").unwrap_err().to_string();
        assert!(error.contains("not JSON") && error.contains("onError: skip"), "{error}");
        let mut decoder = Decoder::new("in", Projection::everything(), None, OnError::Skip, false);
        assert_eq!((decoder.json(b"{").unwrap(), decoder.clone().skipped()), (None, 1));
    }
}
