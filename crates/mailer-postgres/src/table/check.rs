//! What a column takes: every value is checked here, before it is decided, and written as text.

use super::{numeric, times};
use crate::cell::Cell;

/// What can be checked, for people.
pub(super) const TYPES: &str = "boolean, integers, real, double precision, numeric, text, varchar, char, json, jsonb, \
                                timestamptz, timestamp, date, uuid or an enum";

/// The longest value: PostgreSQL keeps no row of a gigabyte.
const LONGEST: usize = 100 << 20;

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    /// Of so many bits.
    Integer(u32),
    Real,
    Double,
    /// Digits in all, and behind the point.
    Numeric(Option<(usize, usize)>),
    /// At most so many letters.
    Text(Option<usize>),
    Json,
    Timestamp {
        with_zone: bool,
    },
    Date,
    Uuid,
    Enum(Vec<String>),
}

impl Kind {
    /// `None` for what cannot be checked.
    pub(super) fn of(name: &str, kind: &str, modifier: i32, labels: Option<Vec<String>>) -> Option<Self> {
        if let Some(labels) = labels {
            return Some(Kind::Enum(labels));
        }
        if kind != "b" {
            return None;
        }
        let length = usize::try_from(modifier - 4).ok();
        Some(match name {
            "bool" => Kind::Bool,
            "int2" => Kind::Integer(16),
            "int4" => Kind::Integer(32),
            "int8" => Kind::Integer(64),
            "float4" => Kind::Real,
            "float8" => Kind::Double,
            "numeric" => Kind::Numeric(numeric::digits(modifier)?),
            "text" => Kind::Text(None),
            "varchar" | "bpchar" => Kind::Text(length),
            "json" | "jsonb" => Kind::Json,
            "timestamptz" => Kind::Timestamp { with_zone: true },
            "timestamp" => Kind::Timestamp { with_zone: false },
            "date" => Kind::Date,
            "uuid" => Kind::Uuid,
            _ => return None,
        })
    }

    /// The value as PostgreSQL reads it; `None` is null. The error says what the column takes, as the end of a sentence that
    /// begins with the column.
    pub(super) fn text(&self, cell: &Cell) -> Result<Option<String>, String> {
        if *cell == Cell::Null {
            return Ok(None);
        }
        let text = match self {
            Kind::Bool => boolean(cell),
            Kind::Integer(bits) => integer(cell, *bits),
            Kind::Real => float(cell).and_then(real),
            Kind::Double => float(cell).map(spelled),
            Kind::Numeric(digits) => numeric::text(cell, *digits),
            Kind::Text(length) => return plain(cell, *length).map(Some),
            Kind::Json => return json(cell).map(Some),
            Kind::Timestamp { with_zone } => times::timestamp(cell, *with_zone),
            Kind::Date => times::date(cell),
            Kind::Uuid => uuid(cell),
            Kind::Enum(labels) => label(cell, labels),
        };
        text.map(Some).ok_or_else(|| format!("takes {}, and the value is {}", self.takes(), shown(cell)))
    }

    fn takes(&self) -> String {
        match self {
            Kind::Bool => "a truth value".into(),
            Kind::Integer(bits) => format!("a whole number of {bits} bits"),
            Kind::Real => "a number with about 6 digits, up to 3.4e38".into(),
            Kind::Double => "a number".into(),
            Kind::Numeric(None) => "a decimal number".into(),
            Kind::Numeric(Some((all, behind))) => {
                format!("a decimal number with {} digits before the point", all - behind)
            }
            Kind::Text(_) => "text".into(),
            Kind::Json => "JSON".into(),
            Kind::Timestamp { .. } => "a time like 2026-01-01T12:00:00Z, or milliseconds since 1970".into(),
            Kind::Date => "a date like 2026-01-01".into(),
            Kind::Uuid => "a UUID".into(),
            Kind::Enum(labels) => format!("one of {}", labels.join(", ")),
        }
    }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => format!("the text {:?}", shortened(text)),
        Cell::Integer(n) => n.to_string(),
        Cell::Float(n) => n.to_string(),
        other => other.kind().to_owned(),
    }
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

fn boolean(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Bool(value) => Some(value.to_string()),
        Cell::Text(text) if text == "true" || text == "false" => Some(text.clone()),
        _ => None,
    }
}

fn integer(cell: &Cell, bits: u32) -> Option<String> {
    let number = match cell {
        Cell::Integer(n) => *n,
        Cell::Float(n) if n.fract() == 0.0 && n.abs() < 9e15 => *n as i64,
        Cell::Text(text) => text.parse().ok()?,
        _ => return None,
    };
    let half = 1_i128 << (bits - 1);
    (-half..half).contains(&i128::from(number)).then(|| number.to_string())
}

fn float(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Integer(n) => Some(*n as f64),
        Cell::Float(n) => Some(*n),
        Cell::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// PostgreSQL refuses what becomes infinite or nothing in 32 bits.
fn real(number: f64) -> Option<String> {
    let short = number as f32;
    let lost = (short.is_infinite() && !number.is_infinite()) || (short == 0.0 && number != 0.0);
    (!lost).then(|| if short.is_finite() { short.to_string() } else { spelled(number) })
}

fn spelled(number: f64) -> String {
    match number {
        n if n.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        n => n.to_string(),
    }
}

fn plain(cell: &Cell, length: Option<usize>) -> Result<String, String> {
    let text = match cell {
        Cell::Text(text) | Cell::Json(text) => text.clone(),
        Cell::Bool(value) => value.to_string(),
        Cell::Integer(n) => n.to_string(),
        Cell::Float(n) => spelled(*n),
        Cell::Null => String::new(),
    };
    if text.contains('\0') {
        return Err(format!("takes no text with a zero byte, and the value is {:?}", shortened(&text)));
    }
    if text.len() > LONGEST {
        return Err(format!("takes at most {} MiB, and the value has {} bytes", LONGEST >> 20, text.len()));
    }
    // Spaces at the end do not count.
    let letters = text.trim_end_matches(' ').chars().count();
    match length {
        Some(length) if letters > length => {
            Err(format!("takes at most {length} letters, and {:?} has {letters}", shortened(&text)))
        }
        _ => Ok(text),
    }
}

/// Read and written again: what PostgreSQL would not take is found, such as half of a surrogate pair.
fn json(cell: &Cell) -> Result<String, String> {
    let value = match cell {
        Cell::Json(text) => serde_json::from_str(text)
            .map_err(|e| format!("takes JSON, and the value is {:?}: {e}", shortened(text)))?,
        Cell::Text(text) => serde_json::Value::String(text.clone()),
        Cell::Bool(value) => serde_json::Value::Bool(*value),
        Cell::Integer(n) => (*n).into(),
        Cell::Float(n) => (*n).into(),
        Cell::Null => serde_json::Value::Null,
    };
    if holds_zero(&value) {
        return Err("takes no JSON with \\u0000 in it".into());
    }
    let text = value.to_string();
    match text.len() > LONGEST {
        true => Err(format!("takes at most {} MiB, and the value has {} bytes", LONGEST >> 20, text.len())),
        false => Ok(text),
    }
}

fn holds_zero(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => text.contains('\0'),
        serde_json::Value::Array(items) => items.iter().any(holds_zero),
        serde_json::Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || holds_zero(value))
        }
        _ => false,
    }
}

fn uuid(cell: &Cell) -> Option<String> {
    let Cell::Text(text) = cell else { return None };
    uuid::Uuid::parse_str(text).ok().map(|uuid| uuid.hyphenated().to_string())
}

fn label(cell: &Cell, labels: &[String]) -> Option<String> {
    let Cell::Text(text) = cell else { return None };
    labels.contains(text).then(|| text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Kind {
        Kind::of(name, "b", -1, None).unwrap()
    }

    fn taken(name: &str, cell: impl Into<Cell>) -> Option<String> {
        kind(name).text(&cell.into()).ok().flatten()
    }

    #[test]
    fn numbers_are_within_what_a_column_holds() {
        assert_eq!(taken("int2", 32_767).as_deref(), Some("32767"));
        assert_eq!(taken("int2", -32_768).as_deref(), Some("-32768"));
        assert_eq!((taken("int2", 32_768), taken("int4", 1_i64 << 31), taken("int4", 1.5)), (None, None, None));
        assert_eq!(taken("int8", i64::MIN).as_deref(), Some("-9223372036854775808"));
        assert_eq!((taken("int4", "17").as_deref(), taken("int4", 3.0).as_deref()), (Some("17"), Some("3")));
        assert_eq!(taken("int4", "17 apples"), None);
        assert_eq!((taken("float4", 1e39), taken("float4", 1e-60)), (None, None));
        assert_eq!(
            (taken("float8", 1e300).map(|text| text.len()), taken("float4", 0.5).as_deref()),
            (Some(301), Some("0.5"))
        );
        assert_eq!(taken("float8", f64::NAN).as_deref(), Some("NaN"));
        assert_eq!((taken("bool", true).as_deref(), taken("bool", 1)), (Some("true"), None));
    }

    #[test]
    fn text_is_as_long_as_the_column_says_and_has_no_zero_byte() {
        let five = Kind::of("varchar", "b", 9, None).unwrap();
        assert_eq!(five.text(&"äöüß!".into()), Ok(Some("äöüß!".into())));
        assert_eq!(five.text(&"12345  ".into()), Ok(Some("12345  ".into())), "spaces at the end do not count");
        assert!(five.text(&"123456".into()).unwrap_err().contains("at most 5 letters, and \"123456\" has 6"));
        assert!(kind("text").text(&"a\0".into()).is_err());
        assert_eq!(taken("text", 7).as_deref(), Some("7"));
    }

    #[test]
    fn json_uuids_and_enums_are_what_they_should_be() {
        let json = |text: &str| kind("jsonb").text(&Cell::Json(text.into()));
        assert_eq!(json("{\"a\": [1, 2]}"), Ok(Some("{\"a\":[1,2]}".into())));
        for bad in ["{", "\"\\ud800\"", "\"\\u0000\"", "{\"\\u0000\": 1}", "1e999"] {
            assert!(json(bad).is_err(), "{bad}");
        }
        assert_eq!(taken("jsonb", "text").as_deref(), Some("\"text\""));
        let uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        assert_eq!((taken("uuid", uuid).as_deref(), taken("uuid", "67e5")), (Some(uuid), None));
        let mood = Kind::of("mood", "e", -1, Some(vec!["sad".into(), "ok".into()])).unwrap();
        assert_eq!(mood.text(&"ok".into()), Ok(Some("ok".into())));
        assert_eq!(mood.text(&"fine".into()), Err("takes one of sad, ok, and the value is the text \"fine\"".into()));
        assert_eq!(Kind::of("my_domain", "d", -1, None), None);
    }
}
