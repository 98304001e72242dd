//! Texts with fields of a record in them: `http://localhost/users/{customer.id}`.

use crate::{Code, Path, Value};

/// A text with `{fields}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Path),
}

impl Template {
    /// A template, or what is wrong with it and what to do about it.
    pub(crate) fn parse(text: &str) -> Result<Template, (Code, String, String)> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((field, behind)) = behind.split_once('}') else {
                let help = "close it: {customer.id}; a brace itself is written %7B".to_owned();
                return Err((Code::BadValue, format!("`{text}` has a `{{` that is not closed"), help));
            };
            let field = Path::parse(field).map_err(|(message, help)| (Code::BadPath, message, help))?;
            parts.extend([Part::Text(before.to_owned()), Part::Field(field)]);
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Template(parts))
    }

    /// The fields in it.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter_map(|part| if let Part::Field(field) = part { Some(field) } else { None })
    }

    /// The text for a record. Fields are written as in the path of a URL: letters, digits and `-_.~` stay, other bytes
    /// become `%XX`.
    pub(crate) fn fill(&self, record: &Value) -> Result<String, String> {
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Field(field) => {
                    let value = field.get(record).filter(|value| !value.is_null());
                    let value =
                        value.ok_or_else(|| format!("the record has no field `{field}`, which the URL names"))?;
                    match value.as_str() {
                        Some(text) => escape(text, &mut filled),
                        None => escape(&value.to_string(), &mut filled),
                    }
                }
            }
        }
        Ok(filled)
    }
}

fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
            byte if byte.is_ascii_alphanumeric() => out.push(byte as char),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_put_in_as_a_url_needs_them() {
        let template = Template::parse("http://h/users/{customer.id}?n={n}").unwrap();
        let record = Value::from_json(r#"{"customer": {"id": "a b/ü"}, "n": 7}"#.as_bytes()).unwrap();
        assert_eq!(template.fill(&record).unwrap(), "http://h/users/a%20b%2F%C3%BC?n=7");
        assert!(template.fill(&Value::Null).unwrap_err().contains("customer.id"));
        assert_eq!(template.fields().count(), 2);
    }

    #[test]
    fn what_is_not_closed_or_names_nothing_is_refused() {
        assert_eq!(Template::parse("http://h/{id").unwrap_err().0, Code::BadValue);
        assert_eq!(Template::parse("http://h/{}").unwrap_err().0, Code::BadPath);
    }
}
