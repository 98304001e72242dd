//! JSON in and out.

use super::layouts::{Layouts, Read, Reading};
use super::object::SPARE;
use super::{Object, Projection, Raw, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Reads JSON records, and remembers the names of fields between them. One for each worker.
#[derive(Clone, Debug)]
pub struct JsonDecoder {
    layouts: Layouts,
}

impl Default for JsonDecoder {
    fn default() -> Self {
        Self::new(Projection::everything())
    }
}

impl JsonDecoder {
    /// Reads what `projection` names.
    pub fn new(projection: Projection) -> Self {
        Self { layouts: Layouts::new(&projection) }
    }

    /// One JSON value, with nothing behind it. The error says where the JSON is wrong.
    pub fn decode(&mut self, json: &[u8]) -> Result<Value, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let seed = Seed { plan: Layouts::RECORD, layouts: &mut self.layouts };
        let value = seed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

thread_local! {
    /// For JSON that is read whole, here and there: so that such values share their names, too.
    static EVERYTHING: RefCell<JsonDecoder> = RefCell::default();
}

impl Value {
    /// Reads JSON; parts stay text until somebody looks at them.
    pub fn from_json(json: &[u8]) -> Result<Value, serde_json::Error> {
        EVERYTHING.with_borrow_mut(|decoder| decoder.decode(json))
    }
}

/// Reads one value by a plan.
struct Seed<'a> {
    plan: usize,
    layouts: &'a mut Layouts,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Integer(n))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Value, E> {
        Ok(i64::try_from(n).map_or(Value::Float(n as f64), Value::Integer))
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Value, E> {
        Ok(Value::Float(n))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        // Places in a list have no names, so a path through one reads it whole.
        while let Some(raw) = items.next_element::<&RawValue>()? {
            list.push(lazy(raw)?);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let Seed { plan, layouts } = self;
        let mut reading = layouts.begin(plan);
        let mut values = Vec::with_capacity(layouts.expected(&reading) + SPARE);
        while let Some(read) = fields.next_key_seed(Name { reading: &mut reading, layouts })? {
            match read {
                Read::By(plan) => values.push(fields.next_value_seed(Seed { plan, layouts })?),
                Read::AsItCame => values.push(lazy(fields.next_value()?)?),
                Read::Not => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        let names = layouts.end(reading, values.len());
        Ok(Value::Object(Arc::new(Object::of(names, values))))
    }
}

/// The name of a field.
struct Name<'a> {
    reading: &'a mut Reading,
    layouts: &'a mut Layouts,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Read;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Read, E> {
        Ok(self.layouts.next(self.reading, name))
    }
}

/// What costs nothing to look at is looked at; the rest stays text.
fn lazy<E: Error>(raw: &RawValue) -> Result<Value, E> {
    let json = raw.get();
    Ok(match json.as_bytes() {
        b"null" => Value::Null,
        b"true" => Value::Bool(true),
        b"false" => Value::Bool(false),
        [b'"', inside @ .., b'"'] if !inside.contains(&b'\\') => Value::from(&json[1..json.len() - 1]),
        [b'-' | b'0'..=b'9', ..] if json != "-0" => match json.parse() {
            Ok(integer) => Value::Integer(integer),
            Err(_) => Value::Raw(Arc::new(Raw::new(json))),
        },
        _ => Value::Raw(Arc::new(Raw::new(json))),
    })
}

/// Appends `value` as JSON, without spaces. What nobody has looked at is written as it came; numbers that JSON cannot
/// write are null.
pub fn write_json(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Integer(n) => scalar(n, out),
        Value::Float(n) => scalar(n, out),
        Value::Text(text) => scalar(text.as_str(), out),
        Value::Raw(raw) => out.extend_from_slice(raw.as_json().as_bytes()),
        Value::List(list) => {
            out.push(b'[');
            for (place, value) in list.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_json(value, out);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            for (place, (name, value)) in object.fields().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                scalar(name.as_str(), out);
                out.push(b':');
                write_json(value, out);
            }
            out.push(b'}');
        }
    }
}

fn scalar<T: serde::Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    // Writing a number or a text into memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rewritten(json: &str) -> String {
        Value::from_json(json.as_bytes()).unwrap().to_string()
    }

    #[test]
    fn what_is_not_read_is_written_as_it_came() {
        let json =
            r#"{"price":10.10,"big":123456789012345678901234567890,"in":{"b": [1, 2.50]},"e":"\u00e4","n":null}"#;
        assert_eq!(rewritten(json), json);
    }

    #[test]
    fn what_is_read_is_looked_at_and_what_is_not_named_is_left_out() {
        let mut read = Projection::nothing();
        read.add(&"a.b".parse().unwrap());
        read.add(&"c".parse().unwrap());
        let mut decoder = JsonDecoder::new(read);
        let value = decoder.decode(br#"{"x": 1, "a": {"b": 2.5, "y": 3}, "c": {"d": [1]}}"#).unwrap();
        assert_eq!(value.to_string(), r#"{"a":{"b":2.5},"c":{"d":[1]}}"#);
        assert_eq!(decoder.decode(b"7").unwrap(), Value::Integer(7));
    }

    #[test]
    fn names_are_shared_between_records_also_when_layouts_alternate() {
        let mut decoder = JsonDecoder::default();
        let address = |value: &Value| value.fields().next().unwrap().0.as_bytes().as_ptr();
        let mut decoded = |json: &str| address(&decoder.decode(json.as_bytes()).unwrap());
        let (first, other) = (decoded(r#"{"a": 1, "b": 2}"#), decoded(r#"{"a": 1, "c": 2}"#));
        assert_eq!((decoded(r#"{"a": 3, "b": 4}"#), decoded(r#"{"a": 3, "c": 4}"#)), (first, other));
    }

    #[test]
    fn errors_say_where() {
        let error = Value::from_json(b"{\"a\": tru}").unwrap_err().to_string();
        assert!(error.contains("line 1 column"), "{error}");
        assert!(Value::from_json(b"{} x").is_err());
        assert!(Value::from_json(b"{\"a\": [1,}").is_err());
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            (-1e9..1e9f64).prop_map(Into::into),
            ".*".prop_map(Into::into),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The same, looked at to the bottom.
    fn seen(value: &Value) -> Value {
        match value.seen() {
            Value::List(list) => list.iter().map(seen).collect::<Vec<_>>().into(),
            Value::Object(object) => Value::object(object.fields().map(|(name, value)| (name.clone(), seen(value)))),
            other => other.clone(),
        }
    }

    proptest! {
        /// Read and written, looked at or not, JSON stays the same value.
        #[test]
        fn json_survives(json in any_json()) {
            let value = Value::from_json(json.to_string().as_bytes()).unwrap();
            let back = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
            prop_assert_eq!(&back(value.to_string()), &json);
            prop_assert_eq!(&back(seen(&value).to_string()), &json);
        }
    }
}
