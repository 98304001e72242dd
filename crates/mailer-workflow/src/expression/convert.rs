//! Between the values of records and the values of expressions.

use crate::Value;
use crate::value::{Projection, Text};
use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::Val;
use cel::objects::Key;
use cel::{ExecutionError, Value as Cel};
use std::collections::HashMap;

/// What `reads` names of `value`. Texts are borrowed.
pub(super) fn to_cel<'v>(value: &'v Value, reads: &Projection) -> Box<dyn Val + 'v> {
    match value.seen() {
        Value::Object(object) => {
            let fields = object.fields().filter_map(|(name, value)| {
                let value = match reads.of(name) {
                    Some(inner) => to_cel(value, inner),
                    None if reads.is_everything() => to_cel(value, reads),
                    None => return None,
                };
                Some((CelMapKey::from(name.as_str()), value))
            });
            Box::new(CelMap::from(fields.collect::<HashMap<_, _>>()))
        }
        Value::List(list) => {
            let everything = Projection::everything();
            Box::new(CelList::from(list.iter().map(|value| to_cel(value, &everything)).collect::<Vec<_>>()))
        }
        other => single(other).unwrap_or_else(|| Box::new(CelNull)),
    }
}

/// A value that holds no others.
pub(super) fn single<'v>(value: &'v Value) -> Option<Box<dyn Val + 'v>> {
    Some(match value.seen() {
        Value::Text(text) => Box::new(CelString::from(text.as_str())),
        Value::Integer(n) => Box::new(CelInt::from(*n)),
        Value::Float(n) => Box::new(CelDouble::from(*n)),
        Value::Bool(b) => Box::new(CelBool::from(*b)),
        Value::Null | Value::Raw(_) => Box::new(CelNull),
        Value::List(_) | Value::Object(_) => return None,
    })
}

/// A result as a value, or what it is instead. The fields of an object come in the order of their names.
pub(super) fn from_cel(value: &Cel) -> Result<Value, String> {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(b) => Value::Bool(*b),
        Cel::Int(n) => Value::Integer(*n),
        Cel::UInt(n) => i64::try_from(*n).map_or(Value::Float(*n as f64), Value::Integer),
        Cel::Float(n) => Value::Float(*n),
        Cel::String(text) => Value::from(text.as_str()),
        Cel::List(list) => list.iter().map(from_cel).collect::<Result<Vec<_>, _>>()?.into(),
        Cel::Map(map) => {
            let mut fields: Vec<_> = map.map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields.into_iter().map(|(name, value)| Ok((name_of(name), from_cel(value)?)));
            Value::object(fields.collect::<Result<Vec<_>, String>>()?)
        }
        other => return Err(other.type_of().to_string()),
    })
}

fn name_of(key: &Key) -> Text {
    match key {
        Key::String(name) => name.as_str().into(),
        Key::Int(n) => n.to_string().into(),
        Key::Uint(n) => n.to_string().into(),
        Key::Bool(b) => b.to_string().into(),
    }
}

/// The error with what to do about it.
pub(super) fn explain(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) => {
            format!("there is no field \"{name}\" in the record; `has(record.{name})` asks whether there is")
        }
        ExecutionError::NoSuchOverload(overload) => {
            let function = overload.function().trim_matches('_');
            refused(function, overload.argument_types().iter().map(String::as_str))
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            let types = [left.type_of().to_string(), right.type_of().to_string()];
            refused(operator, types.iter().map(String::as_str))
        }
        other => other.to_string(),
    }
}

/// Two numbers of different types are the usual case, and have a way out.
fn refused<'a>(function: &str, types: impl Iterator<Item = &'a str> + Clone) -> String {
    let numbers = types.clone().all(|name| ["int", "float", "double"].contains(&name));
    let help = if numbers { "; write double(…) around the whole number" } else { "" };
    format!("`{function}` does not take {}{help}", types.collect::<Vec<_>>().join(" and "))
}
