//! JSON in and out.

use super::{Object, Projection, Raw, Text, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Names of fields that are remembered, so that records share them.
const NAMES: usize = 4_096;

/// Reads JSON records, and remembers the names of fields between them. One for each worker.
#[derive(Clone, Debug)]
pub struct JsonDecoder {
    projection: Arc<Projection>,
    names: Names,
}

impl Default for JsonDecoder {
    fn default() -> Self {
        Self::new(Projection::everything())
    }
}

impl JsonDecoder {
    /// Reads what `projection` names.
    pub fn new(projection: Projection) -> Self {
        Self { projection: Arc::new(projection), names: Names::default() }
    }

    /// One JSON value, with nothing behind it. The error says where the JSON is wrong.
    pub fn decode(&mut self, json: &[u8]) -> Result<Value, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        self.names.next = 0;
        let seed = Seed { projection: &self.projection, names: &mut self.names };
        let value = seed.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

impl Value {
    /// Reads JSON; parts stay text until somebody looks at them.
    pub fn from_json(json: &[u8]) -> Result<Value, serde_json::Error> {
        JsonDecoder::default().decode(json)
    }
}

/// The names of fields seen so far. Records of one kind name their fields in one order, so the next name is guessed first.
#[derive(Clone, Debug, Default)]
struct Names {
    order: Vec<Text>,
    next: usize,
    known: HashMap<Text, usize>,
}

impl Names {
    fn of(&mut self, name: &str) -> Text {
        let guess = self.order.get(self.next).filter(|guess| guess.as_str() == name);
        if let Some(guess) = guess {
            self.next += 1;
            return guess.clone();
        }
        let text = Text::from(name);
        if let Some(place) = self.known.get(&text) {
            self.next = place + 1;
            return self.order[*place].clone();
        }
        if self.order.len() < NAMES {
            self.known.insert(text.clone(), self.order.len());
            self.order.push(text.clone());
            self.next = self.order.len();
        }
        text
    }
}

/// Reads one value, of which `projection` says what is looked at.
struct Seed<'a> {
    projection: &'a Projection,
    names: &'a mut Names,
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
        let Seed { projection, names } = self;
        let mut object = Object::default();
        while let Some(name) = fields.next_key_seed(Name(names))? {
            if let Some(inner) = projection.of(&name) {
                let value = fields.next_value_seed(Seed { projection: inner, names })?;
                object.push(name, value);
            } else if projection.rest {
                let raw: &RawValue = fields.next_value()?;
                object.push(name, lazy(raw)?);
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(Arc::new(object)))
    }
}

/// The name of a field.
struct Name<'a>(&'a mut Names);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Text;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Text, E> {
        Ok(self.0.of(name))
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
            for (place, (name, value)) in object.fields().iter().enumerate() {
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
    fn names_are_shared_between_records_whatever_their_order() {
        let mut decoder = JsonDecoder::default();
        let first = decoder.decode(br#"{"a": 1, "b": 2}"#).unwrap();
        let second = decoder.decode(br#"{"b": 1, "c": 2, "a": 3}"#).unwrap();
        let address = |value: &Value, place: usize| value.fields()[place].0.as_str().as_ptr();
        assert_eq!(address(&first, 0), address(&second, 2));
        assert_eq!(address(&first, 1), address(&second, 0));
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
            Value::Object(object) => {
                Value::object(object.fields().iter().map(|(name, value)| (name.clone(), seen(value))))
            }
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
