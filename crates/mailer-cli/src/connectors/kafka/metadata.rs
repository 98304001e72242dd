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
    let mut all = Object::default();
    headers.for_each(|(name, value)| push_bytes(&mut all, name, value));
    let text = key.and_then(|key| std::str::from_utf8(key).ok());
    let mut known = NAMES.object(vec![
        topic.into(),
        Value::Integer(partition.into()),
        Value::Integer(offset),
        Value::Integer(timestamp),
        text.map_or(Value::Null, Value::from),
        Value::Object(Arc::new(all)),
    ]);
    if let (None, Some(key), Value::Object(known)) = (text, key, &mut known) {
        Arc::make_mut(known).push("keyBase64".into(), STANDARD.encode(key).as_str().into());
    }
    known
}

/// Text as it is; other bytes in base64, under the name with `Base64` behind it.
fn push_bytes(to: &mut Object, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(std::str::from_utf8) {
        None => to.push(name.into(), Value::Null),
        Some(Ok(text)) => to.push(name.into(), text.into()),
        Some(Err(_)) => {
            let text = STANDARD.encode(bytes.unwrap_or_default());
            to.push(format!("{name}Base64").as_str().into(), text.as_str().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gets_what_is_known_of_it() {
        let headers: [(&str, Option<&[u8]>); 3] = [("trace", Some(b"7f")), ("bits", Some(&[0xff])), ("none", None)];
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
