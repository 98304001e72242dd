//! Values as keys.

use super::{Text, Value, whole};
use serde::{Deserialize, Serialize};

/// A value under which records are grouped. Its type belongs to it: `1` and `"1"` are two keys, `1` and `1.0` are one.
///
/// Checkpoints depend on the order of the variants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ValueKey {
    /// A text.
    Text(Text),
    /// A whole number.
    Integer(i64),
    /// A truth value.
    Bool(bool),
    /// A number that is not whole, by its bits.
    Float(u64),
    /// Several values together.
    Several(Vec<ValueKey>),
}

impl ValueKey {
    /// The key that `value` is, or why it cannot be one.
    pub fn of(value: &Value) -> Result<ValueKey, String> {
        match value.seen() {
            Value::Text(text) => Ok(ValueKey::Text(text.clone())),
            Value::Integer(n) => Ok(ValueKey::Integer(*n)),
            Value::Bool(b) => Ok(ValueKey::Bool(*b)),
            Value::Float(n) => match whole(*n) {
                Some(n) => Ok(ValueKey::Integer(n)),
                None if n.is_nan() => Err("NaN cannot be a key".into()),
                None => Ok(ValueKey::Float(n.to_bits())),
            },
            Value::List(list) => list.iter().map(ValueKey::of).collect::<Result<_, _>>().map(ValueKey::Several),
            other => Err(format!("{} cannot be a key", other.kind())),
        }
    }

    /// The key as a value again.
    pub fn to_value(&self) -> Value {
        match self {
            ValueKey::Text(text) => Value::Text(text.clone()),
            ValueKey::Integer(n) => Value::Integer(*n),
            ValueKey::Bool(b) => Value::Bool(*b),
            ValueKey::Float(bits) => Value::Float(f64::from_bits(*bits)),
            ValueKey::Several(keys) => keys.iter().map(ValueKey::to_value).collect::<Vec<_>>().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_types() {
        let key = |json: &str| ValueKey::of(&Value::from_json(json.as_bytes()).unwrap());
        assert_eq!(key("1"), key("1.0"));
        assert_eq!(key("-0.0"), key("0"));
        assert_ne!(key("1"), key("\"1\""));
        for json in ["\"a\"", "7", "true", "2.5", "[\"a\",1]"] {
            assert_eq!(key(json).unwrap().to_value().to_string(), json);
        }
        assert_eq!(key("null").unwrap_err(), "null cannot be a key");
        assert_eq!(key("{}").unwrap_err(), "an object cannot be a key");
    }
}
