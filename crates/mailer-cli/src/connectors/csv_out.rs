//! Records become rows of comma separated values (RFC 4180).

use super::{check_columns, columns, csv, text};
use mailer_core::Result;
use mailer_workflow::{Fields, Findings, Key, Path, Section, Shape, Value};

pub(super) const SECTION: Section = Section {
    name: "csv",
    summary: "What stands in the rows of a CSV file, below a row with the names of the columns. A field that is missing is \
              empty; a list or an object is written as JSON.",
    keys: &[
        Key::required("columns", Shape::Map(&Shape::Path), "The columns in their order, each with its field."),
        Key::optional("delimiter", Shape::Text, "The character between two fields, or `tab`.").or("a comma"),
    ],
    rules: &[],
    example: "columns: {customer: key, total: sum}
delimiter: \";\"
",
};

/// What the schema cannot say.
pub(super) fn check(settings: Fields<'_>, findings: &mut Findings) {
    csv::check_delimiter(settings, findings);
    check_columns(settings, findings);
}

/// Writes rows.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    columns: Vec<(String, Path)>,
    delimiter: u8,
}

impl Rows {
    pub(super) fn new(settings: Fields<'_>) -> Self {
        let delimiter = csv::delimiter(&text(settings, "delimiter")).unwrap_or(b',');
        Self { columns: columns(settings), delimiter }
    }

    /// The row of names.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut line = Vec::new();
        for (place, (name, _)) in self.columns.iter().enumerate() {
            self.separate(place, &mut line);
            self.field(name, &mut line);
        }
        line
    }

    /// The row of a record.
    pub(super) fn row(&self, record: &Value, out: &mut Vec<u8>) -> Result<()> {
        let begin = out.len();
        for (place, (_, path)) in self.columns.iter().enumerate() {
            self.separate(place, out);
            let Some(value) = path.get(record) else { continue };
            match (value.as_str(), value) {
                (Some(text), _) => self.field(text, out),
                (None, Value::Null) => {}
                // As it came, digit by digit. Quotes of JSON are doubled, so this is text first.
                (None, Value::Raw(raw)) => self.field(raw.as_json(), out),
                (None, other) => self.field(&other.to_string(), out),
            }
        }
        if out.len() == begin {
            out.extend_from_slice(b"\"\""); // an empty line would be no row
        }
        Ok(())
    }

    fn separate(&self, place: usize, out: &mut Vec<u8>) {
        if place > 0 {
            out.push(self.delimiter);
        }
    }

    /// Quoted where a reader would take it apart otherwise.
    fn field(&self, text: &str, out: &mut Vec<u8>) {
        let needs = |byte: u8| matches!(byte, b'"' | b'\n' | b'\r') || byte == self.delimiter;
        if !text.bytes().any(needs) {
            return out.extend_from_slice(text.as_bytes());
        }
        out.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                out.push(b'"');
            }
            out.push(byte);
        }
        out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let path = |text: &str| text.parse::<Path>().unwrap();
        let columns = vec![("a;b".to_owned(), path("a")), ("n".into(), path("n")), ("o".into(), path("o"))];
        let rows = Rows { columns, delimiter: b';' };
        let line = |record: &Value| {
            let mut out = Vec::new();
            rows.row(record, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(rows.head(), b"\"a;b\";n;o");
        let record = |a: &str, n| Value::object([("a", Value::from(a)), ("n", n)].map(|(name, value)| (name, value)));
        assert_eq!(line(&record("say \"x\"\nor, y", Value::Integer(-3))), "\"say \"\"x\"\"\nor, y\";-3;");
        assert_eq!(line(&record("plain", Value::Null)), "plain;;");
        let raw = Value::from_json(br#"{"a":"\u0041","n":18446744073709551615,"o":{"p":1.10}}"#).unwrap();
        assert_eq!(line(&raw), "A;18446744073709551615;\"{\"\"p\"\":1.10}\"");
        let one = Rows { columns: vec![("n".into(), path("n"))], delimiter: b',' };
        let mut out = Vec::new();
        one.row(&record("a", Value::Null), &mut out).unwrap();
        assert_eq!(out, b"\"\"");
    }
}
