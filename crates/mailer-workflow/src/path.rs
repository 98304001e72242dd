//! Paths to fields, taken apart once, when a workflow is loaded.

use crate::value::{Hint, Text, Value};
use std::cmp::Ordering;
use std::fmt;

/// A path such as `customer.id` or `items.0.price`. A dot in a name is written `\.`.
///
/// ```
/// use mailer_workflow::{Path, Value};
/// let path: Path = "customer.id".parse()?;
/// let record = Value::from_json(br#"{"customer": {"id": "a"}}"#)?;
/// assert_eq!(path.get(&record), Some(&Value::from("a")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Segment>);

/// One name of a path, and where it was found last.
#[derive(Clone, Debug)]
struct Segment {
    name: Text,
    hint: Hint,
}

impl Path {
    /// A path, or what is wrong and what to do about it.
    pub(crate) fn parse(text: &str) -> Result<Path, (String, String)> {
        let mut segments = vec![String::new()];
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match (c, segments.last_mut()) {
                ('\\', Some(segment)) => segment.extend(chars.next()),
                ('.', _) => segments.push(String::new()),
                (c, Some(segment)) => segment.push(c),
                (_, None) => {}
            }
        }
        if segments.iter().any(String::is_empty) {
            let help = "write names with single dots between them: customer.id".to_owned();
            return Err((format!("`{text}` has an empty name in it"), help));
        }
        if text.starts_with('$') || text.contains(['[', ']']) {
            let plain = text.trim_start_matches('$').trim_start_matches('.').replace('[', ".").replace(']', "");
            return Err((format!("`{text}` is no path to a field"), format!("write {plain}")));
        }
        if text.contains(char::is_whitespace) {
            let help = "name one field here; a computation needs `expr`".to_owned();
            return Err((format!("`{text}` is no path to a field: it has a space in it"), help));
        }
        Ok(Path::of_names(segments.iter().map(String::as_str)))
    }

    pub(crate) fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Path {
        Path(names.into_iter().map(|name| Segment { name: name.into(), hint: Hint::default() }).collect())
    }

    /// Its names, from the outermost in.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Text> {
        self.0.iter().map(|segment| &segment.name)
    }

    /// What is there, where anything is.
    #[inline]
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, segment| value.field_near(&segment.name, &segment.hint))
    }

    /// Puts `new` there. Objects on the way are made; what is no object on the way is replaced by one.
    pub fn set(&self, value: &mut Value, new: Value) {
        let Some((last, before)) = self.0.split_last() else { return };
        let mut place = value;
        for segment in before {
            place = place.field_mut_or_insert(&segment.name, &segment.hint);
        }
        place.set_field(&last.name, &last.hint, new);
    }

    /// Takes it out, where it is.
    pub fn remove(&self, value: &mut Value) -> Option<Value> {
        let (last, before) = self.0.split_last()?;
        let mut place = value;
        for segment in before {
            place = place.field_mut(&segment.name, &segment.hint)?;
        }
        place.take_field(&last.name, &last.hint)
    }
}

/// A segment is its name.
impl PartialEq for Segment {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Segment {}

impl PartialOrd for Segment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Segment {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl std::str::FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Path::parse(text).map_err(|(message, help)| format!("{message}: {help}"))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped: Vec<_> = self.names().map(|name| name.as_str().replace('.', "\\.")).collect();
        f.write_str(&escaped.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JsonDecoder;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn path(text: &str) -> Path {
        text.parse().unwrap()
    }

    #[test]
    fn paths_find_set_and_remove() {
        let mut value = Value::from_json(br#"{"a": {"b": 1, "x.y": 2}, "l": [{"c": 3}]}"#).unwrap();
        assert_eq!(path("a.b").get(&value), Some(&Value::Integer(1)));
        assert_eq!(path(r"a.x\.y").get(&value), Some(&Value::Integer(2)));
        assert_eq!(path("l.0.c").get(&value), Some(&Value::Integer(3)));
        assert_eq!(path("a.b.c").get(&value), None);
        path("n.m").set(&mut value, Value::Bool(true));
        path("a.b").set(&mut value, Value::Null);
        path("l.0.c").set(&mut value, Value::from("new"));
        assert_eq!(path(r"a.x\.y").remove(&mut value), Some(Value::Integer(2)));
        assert_eq!(path("a.none.b").remove(&mut value), None);
        assert_eq!(value.to_string(), r#"{"a":{"b":null},"l":[{"c":"new"}],"n":{"m":true}}"#);
    }

    /// Names and numbers as JSON, in this order, a name more than once where it is.
    fn json(fields: &[(char, i64)]) -> String {
        let fields: Vec<_> = fields.iter().map(|(name, n)| format!("\"{name}\":{n}")).collect();
        format!("{{{}}}", fields.join(","))
    }

    #[derive(Clone, Debug)]
    enum Act {
        Get,
        Set(i64),
        Remove,
    }

    fn acts() -> impl Strategy<Value = Vec<(char, Act)>> {
        let act = prop_oneof![Just(Act::Get), any::<i64>().prop_map(Act::Set), Just(Act::Remove)];
        prop::collection::vec((prop::char::range('a', 'f'), act), 0..12)
    }

    proptest! {
        /// One path for a name serves records of every layout, and does what a search from the end does; what shares the
        /// record, or its names, sees nothing of it.
        #[test]
        fn guesses_are_never_wrong(
            records in prop::collection::vec(prop::collection::vec((prop::char::range('a', 'e'), any::<i64>()), 0..6), 1..6),
            acts in acts(),
            decoded in any::<bool>(),
        ) {
            let paths: HashMap<char, Path> = ('a'..='f').map(|name| (name, path(&name.to_string()))).collect();
            let mut decoder = JsonDecoder::default();
            // Twice: the second time everything is known.
            for fields in records.iter().chain(&records) {
                let mut record = if decoded {
                    decoder.decode(json(fields).as_bytes()).unwrap()
                } else {
                    Value::object(fields.iter().map(|(name, n)| (name.to_string(), *n)))
                };
                let (mut naive, before) = (fields.clone(), record.clone());
                for (name, act) in &acts {
                    let (path, place) = (&paths[name], naive.iter().rposition(|(known, _)| known == name));
                    match act {
                        Act::Get => {
                            let value = place.map(|place| Value::Integer(naive[place].1));
                            prop_assert_eq!(path.get(&record), value.as_ref());
                        }
                        Act::Set(n) => {
                            path.set(&mut record, Value::Integer(*n));
                            match place {
                                Some(place) => naive[place].1 = *n,
                                None => naive.push((*name, *n)),
                            }
                        }
                        Act::Remove => {
                            let value = place.map(|place| Value::Integer(naive.remove(place).1));
                            prop_assert_eq!(path.remove(&mut record), value);
                        }
                    }
                    prop_assert_eq!(record.to_string(), json(&naive));
                }
                prop_assert_eq!(before.to_string(), json(fields));
            }
        }
    }

    #[test]
    fn what_is_no_path_is_said_with_a_way_out() {
        let help = |text| Path::parse(text).unwrap_err().1;
        assert_eq!(help("$.items[0].price"), "write items.0.price");
        assert!(help("a..b").contains("customer.id"));
        assert!(help("a + b").contains("`expr`"));
        assert_eq!(path(r"a\.b.c").to_string(), r"a\.b.c");
    }
}
