//! Which values are equal, and which is less.

use super::{Object, Value};
use std::cmp::Ordering;

/// Numbers by their amount, whatever their type; objects whatever the order of their fields. Nothing equals NaN.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self.seen(), other.seen()) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Object(a), Value::Object(b)) => a == b,
            (a, b) => numbers(a, b) == Some(Ordering::Equal),
        }
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        let within = |a: &Object, b: &Object| a.fields().all(|(name, _)| a.get(name) == b.get(name));
        within(self, other) && within(other, self)
    }
}

/// Numbers with numbers, texts with texts, truth values with truth values. Other values have no order.
impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self.seen(), other.seen()) {
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Null, Value::Null) => Some(Ordering::Equal),
            (a, b) => numbers(a, b),
        }
    }
}

/// Exact, also where a whole number is too large for floating point.
fn numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Integer(a), Value::Float(b)) => mixed(*a, *b),
        (Value::Float(a), Value::Integer(b)) => mixed(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

fn mixed(integer: i64, float: f64) -> Option<Ordering> {
    // The cast saturates, which is what a comparison wants; only NaN has no place.
    let below = float.floor();
    let whole = integer.cmp(&(below as i64));
    if float.is_nan() {
        None
    } else if whole == Ordering::Equal && (float > below || below >= 9_223_372_036_854_775_808.0) {
        // There is something behind the point, or it is 2⁶³ itself, which the cast has made one less.
        Some(Ordering::Less)
    } else {
        Some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_amount() {
        let (one, float) = (Value::Integer(1), Value::Float);
        assert_eq!(one, float(1.0));
        assert!(one < float(1.5) && float(0.5) < one && one > float(-1.5));
        assert_ne!(Value::Integer(i64::MAX), float(i64::MAX as f64), "2⁶³-1 is not 2⁶³");
        assert!(Value::Integer(i64::MAX) < float(i64::MAX as f64));
        assert_eq!(Value::Integer(i64::MIN), float(i64::MIN as f64));
        assert!(float(f64::NAN) != float(f64::NAN) && one.partial_cmp(&float(f64::NAN)).is_none());
    }

    #[test]
    fn other_kinds_are_never_equal_and_objects_have_no_order_of_fields() {
        assert_ne!(Value::Integer(1), Value::from("1"));
        assert!(Value::from("a").partial_cmp(&Value::Integer(1)).is_none());
        let object = |json: &str| Value::from_json(json.as_bytes()).unwrap();
        assert_eq!(object(r#"{"a": 1, "b": [2]}"#), object(r#"{"b": [2.0], "a": 1}"#));
        assert_ne!(object(r#"{"a": 1}"#), object(r#"{"a": 1, "b": null}"#));
    }
}
