//! Conditions of filters.

use crate::Value;
use crate::model::{Comparison, Condition};

impl Condition {
    /// Whether it holds for a record; an error is one of the record.
    pub(crate) fn holds(&self, record: &Value, timestamp: i64) -> Result<bool, String> {
        match self {
            Condition::Field { field, comparison } => Ok(comparison.holds(field.get(record))),
            Condition::Expression(expression) => expression.holds(record, timestamp),
        }
    }
}

impl Comparison {
    /// Whether it holds for a field. Values of types that do not compare fulfil nothing.
    fn holds(&self, field: Option<&Value>) -> bool {
        let Some(value) = field else {
            return matches!(self, Comparison::NotEquals(_) | Comparison::NotIn(_) | Comparison::NotExists);
        };
        match self {
            Comparison::Equals(other) => value == other,
            Comparison::NotEquals(other) => value != other,
            Comparison::In(list) => list.contains(value),
            Comparison::NotIn(list) => !list.contains(value),
            Comparison::Exists => true,
            Comparison::NotExists => false,
            Comparison::Greater(other) => value > other,
            Comparison::GreaterOrEqual(other) => value >= other,
            Comparison::Less(other) => value < other,
            Comparison::LessOrEqual(other) => value <= other,
            Comparison::Contains(other) => match (value.as_str(), other.as_str(), value.as_list()) {
                (Some(text), Some(part), _) => text.contains(part),
                (_, _, Some(list)) => list.contains(other),
                _ => false,
            },
            // By bytes: where whole characters are looked for, these are the same places.
            Comparison::StartsWith(part) => value.as_text().is_some_and(|t| t.as_bytes().starts_with(part.as_bytes())),
            Comparison::EndsWith(part) => value.as_text().is_some_and(|t| t.as_bytes().ends_with(part.as_bytes())),
            Comparison::Matches(regex) => value.as_str().is_some_and(|text| regex.is_match(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn comparisons_go_by_type_and_amount() {
        use Comparison as C;
        let holds = |comparison: C, json: &str| comparison.holds(Some(&value(json)));
        assert!(holds(C::Equals(value("1")), "1.0") && !holds(C::Equals(value("1")), "\"1\""));
        assert!(holds(C::Greater(value("2")), "2.5") && !holds(C::Greater(value("2")), "\"3\""));
        assert!(holds(C::LessOrEqual(value("\"b\"")), "\"b\"") && !holds(C::Less(value("\"b\"")), "\"b\""));
        assert!(holds(C::In(vec![value("1"), value("\"a\"")]), "\"a\""));
        assert!(holds(C::Contains(value("\"b\"")), "\"abc\"") && holds(C::Contains(value("2")), "[1, 2]"));
        assert!(!holds(C::Contains(value("2")), "\"12\""));
        for text in ["\"äb\"", "\"a long text that is kept elsewhere: äb\""] {
            assert!(holds(C::EndsWith("äb".into()), text) && !holds(C::EndsWith("a".into()), text));
            assert!(holds(C::StartsWith(value(text).as_str().unwrap()[..2].into()), text));
            assert!(!holds(C::StartsWith("b".into()), text));
        }
        assert!(!holds(C::StartsWith("1".into()), "1"));
        assert!(holds(C::Matches(regex::Regex::new("^a.$").unwrap()), "\"ab\""));
        assert!(holds(C::Exists, "null"));
    }

    #[test]
    fn a_field_that_is_not_there_fulfils_only_what_denies() {
        use Comparison as C;
        for (comparison, holds) in [
            (C::Equals(Value::Null), false),
            (C::NotEquals(value("1")), true),
            (C::NotIn(vec![]), true),
            (C::NotExists, true),
            (C::Exists, false),
            (C::Less(value("1")), false),
        ] {
            assert_eq!(comparison.holds(None), holds, "{comparison:?}");
        }
    }
}
