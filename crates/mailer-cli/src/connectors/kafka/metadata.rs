//! What Kafka knows of a record besides its value, as a field of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mailer_kafka::{KafkaRecord, RecordRef};
use mailer_workflow::{FieldNames, Object, Path, Value};
use std::sync::{Arc, LazyLock};

/// What every record has; the records share the names.
static NAMES: LazyLock<FieldNames> =
    LazyLock::new(|| ["topic", "partition", "offset", "timestamp", "key", "headers"].into_iter().collect());

/// Puts what is known of a record into its field `field`: `topic`, `partition`, `offset`, `timestamp`, `key`, `headers`.
pub(super) fn put(field: &Path, record: &mut Value, metadata: Value) -> Result<(), String> {
    match record.kind() {
        "an object" => {
            field.set(record, metadata);
            Ok(())
        }
        kind => Err(format!("a record is {kind}, not an object: there is no room for `{field}`")),
    }
}

pub(super) fn of_record(record: &KafkaRecord) -> Value {
    let place = (record.partition, record.offset, record.timestamp);
    let headers = record.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
    object(&record.topic, place, record.key.as_deref(), headers)
}

pub(super) fn of_ref(record: &RecordRef<'_>) -> Value {
    let place = (record.partition(), record.offset(), record.timestamp());
    let headers = record.headers().map_while(Result::ok);
    // A name that is no UTF-8 cannot be asked for.
    let headers = headers.filter_map(|(name, value)| Some((std::str::from_utf8(name).ok()?, value)));
    object(record.topic(), place, record.key(), headers)
}

fn object<'a>(
    topic: &str,
    (partition, offset, timestamp): (i32, i64, i64),
    key: Option<&[u8]>,
    headers: impl Iterator<Item = (&'a str, Option<&'a [u8]>)>,
) -> Value {
    let headers: Object = last_of_each(headers.map(|(name, value)| named(name, value))).into_iter().collect();
    let text = key.and_then(|key| std::str::from_utf8(key).ok());
    let mut known = NAMES.object(vec![
        topic.into(),
        Value::Integer(partition.into()),
        Value::Integer(offset),
        Value::Integer(timestamp),
        text.map_or(Value::Null, Value::from),
        Value::Object(Arc::new(headers)),
    ]);
    if let (None, Some(key), Value::Object(known)) = (text, key, &mut known) {
        Arc::make_mut(known).push("keyBase64".into(), STANDARD.encode(key).as_str().into());
    }
    known
}

/// Text as it is; other bytes in base64, under the name with `Base64` behind it.
fn named(name: &str, bytes: Option<&[u8]>) -> (String, Value) {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => (name.into(), Value::Null),
        Some((_, Ok(text))) => (name.into(), text.into()),
        Some((bytes, Err(_))) => (format!("{name}Base64"), STANDARD.encode(bytes).as_str().into()),
    }
}

/// Kafka allows a name twice, an object does not.
fn last_of_each(named: impl Iterator<Item = (String, Value)>) -> Vec<(String, Value)> {
    let mut kept: Vec<(String, Value)> = Vec::new();
    for (name, value) in named {
        kept.retain(|(known, _)| *known != name);
        kept.push((name, value));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gets_what_is_known_of_it() {
        let headers: [(&str, Option<&[u8]>); 4] =
            [("trace", Some(b"1")), ("trace", Some(b"7f")), ("bits", Some(&[0xff])), ("none", None)];
        let known = object("orders", (3, 42, 1_000), Some(b"k"), headers.into_iter());
        let mut record = Value::from_json(br#"{"a": 1}"#).unwrap_or_default();
        put(&"kafka".parse().unwrap_or_else(|e| panic!("{e}")), &mut record, known).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            record.to_string(),
            r#"{"a":1,"kafka":{"topic":"orders","partition":3,"offset":42,"timestamp":1000,"key":"k","headers":{"trace":"7f","bitsBase64":"/w==","none":null}}}"#
        );
    }

    #[test]
    fn a_key_that_is_no_text_is_in_base64() {
        let known = object("t", (0, 0, 0), Some(&[0xff]), std::iter::empty());
        assert!(known.to_string().ends_with(r#""key":null,"headers":{},"keyBase64":"/w=="}"#), "{known}");
    }

    #[test]
    fn what_is_no_object_has_no_room() {
        let field = "kafka".parse().unwrap_or_else(|e| panic!("{e}"));
        let error = put(&field, &mut Value::Integer(1), Value::Null).unwrap_err();
        assert_eq!(error, "a record is a number, not an object: there is no room for `kafka`");
    }
}
