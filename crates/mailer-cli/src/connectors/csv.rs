//! Files of comma separated values: rows become records. How records become rows is in `csv_out`.

use super::files::provenance;
use super::text;
use mailer_core::Result;
use mailer_files::{BadRow, Csv, DecodeRow, Row};
use mailer_workflow::{Code, Decoder, FieldNames, Fields, Findings, Key, Section, Shape, Text, Value, Word};
use std::collections::HashMap;
use std::sync::Arc;

const TYPES: &[Word] = &[
    Word::new("text", "as it stands there"),
    Word::new("number", "a number; an empty field is null"),
    Word::new("bool", "`true` or `false`; an empty field is null"),
];

pub(super) const SECTION: Section = Section {
    name: "csv",
    summary: "How values are written in a CSV file. Fields may be quoted (RFC 4180). A row with too many or too few fields, or \
              with a value that is not of its type, is an error of the source (`onError`).",
    keys: &[
        Key::optional("delimiter", Shape::Text, "The character between two fields, or `tab`.").or("a comma"),
        Key::optional(
            "columns",
            Shape::OneOrMore(&Shape::Text),
            "The names of the columns, where the files have no row of names.",
        )
        .or("the first row of each file"),
        Key::optional("types", Shape::Map(&Shape::Word(TYPES)), "What is in a column that is not text."),
    ],
    rules: &[],
    example: "delimiter: \";\"
types: {amount: number}
",
};

/// What stands between fields; `None` for what cannot.
pub(super) fn delimiter(text: &str) -> Option<u8> {
    match (text, text.as_bytes()) {
        ("tab" | "\t", _) => Some(b'\t'),
        (_, [byte]) if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\n' | b'\r') => {
            Some(*byte)
        }
        _ => None,
    }
}

pub(super) fn check_delimiter(settings: Fields<'_>, findings: &mut Findings) {
    if let Some(said) = settings.text("delimiter").filter(|said| delimiter(&said.value).is_none()) {
        let message = format!("{:?} cannot stand between the fields of a CSV file", said.value);
        findings.add(Code::BadValue, said.span, message, "write one character, such as \",\" or \";\", or `tab`");
    }
}

/// What the schema cannot say.
pub(super) fn check(settings: Fields<'_>, findings: &mut Findings) {
    check_delimiter(settings, findings);
    let columns = settings.texts("columns");
    for (place, column) in columns.iter().enumerate() {
        if columns[..place].iter().any(|other| other.value == column.value) {
            let message = format!("two columns are called `{}`", column.value);
            findings.add(Code::BadValue, column.span, message, "give each a name of its own");
        }
    }
    for (column, _) in types(settings) {
        if !columns.is_empty() && !columns.iter().any(|known| known.value == column) {
            let message = format!("`types` names the column `{column}`, and `columns` does not");
            findings.add(
                Code::BadValue,
                settings.key_span("types"),
                message,
                "name it in `columns`, or remove it here",
            );
        }
    }
}

fn types(settings: Fields<'_>) -> HashMap<String, Type> {
    let Some(types) = settings.value("types") else { return HashMap::new() };
    let known = |value: &Value| match value.as_str() {
        Some("number") => Type::Number,
        Some("bool") => Type::Bool,
        _ => Type::Text,
    };
    types.value.fields().map(|(column, value)| (column.as_str().to_owned(), known(value))).collect()
}

/// The files, read as the settings say.
pub(super) fn source(paths: Vec<String>, settings: Fields<'_>, decoder: Decoder) -> Csv<Rows> {
    let rows = Rows { decoder, types: Arc::new(types(settings)), columns: Vec::new(), names: FieldNames::default() };
    let mut source = Csv::new(paths, rows);
    if let Some(delimiter) = delimiter(&text(settings, "delimiter")) {
        source = source.delimiter(delimiter);
    }
    let columns = settings.texts("columns");
    if columns.is_empty() { source } else { source.columns(columns.into_iter().map(|column| column.value)) }
}

/// For fields that steps add, so that they need not move the others.
const ROOM: usize = 2;

/// What is in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Type {
    #[default]
    Text,
    Number,
    Bool,
}

impl Type {
    fn value(self, field: &str) -> Option<Value> {
        match self {
            Type::Text => Some(Value::from(field)),
            Type::Number | Type::Bool if field.is_empty() => Some(Value::Null),
            Type::Bool => field.parse().ok().map(Value::Bool),
            Type::Number => {
                let whole = field.parse().map(Value::Integer);
                whole.ok().or_else(|| field.parse().ok().filter(|n: &f64| n.is_finite()).map(Value::Float))
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Type::Text => "text",
            Type::Number => "a number",
            Type::Bool => "true or false",
        }
    }
}

/// Makes records of rows.
#[derive(Clone)]
pub(super) struct Rows {
    decoder: Decoder,
    types: Arc<HashMap<String, Type>>,
    /// Names and types of the columns of the file that was read last: records share them.
    columns: Vec<(Text, Type)>,
    names: FieldNames,
}

impl Rows {
    fn name_columns(&mut self, row: &Row<'_>) {
        let known = |name: &str| (Text::from(name), self.types.get(name).copied().unwrap_or_default());
        let is_known = |(place, (name, _)): (usize, (&str, &str))| {
            self.columns.get(place).is_some_and(|(known, _)| known.as_str() == name)
        };
        if row.fields().count() != self.columns.len() || !row.fields().enumerate().all(is_known) {
            self.columns = row.fields().map(|(name, _)| known(name)).collect();
            self.names = self.columns.iter().map(|(name, _)| name.clone()).collect();
        }
    }

    /// The record, or what is wrong with the row.
    fn record(&mut self, row: &Row<'_>) -> Result<Value, String> {
        self.name_columns(row);
        let mut values = Vec::with_capacity(self.columns.len() + ROOM);
        for ((name, kind), (_, field)) in self.columns.iter().zip(row.fields()) {
            let wrong = || format!("column `{name}` of a row is {field:?}, not {}", kind.name());
            values.push(kind.value(field).ok_or_else(wrong)?);
        }
        Ok(self.names.object(values))
    }
}

impl DecodeRow for Rows {
    type Item = Value;

    fn decode(&mut self, row: &Row<'_>) -> Result<Option<Value>> {
        match self.record(row) {
            Ok(record) => self.decoder.value_from(record, Some(row.bytes()), || provenance(row.place())),
            Err(why) => self.decoder.refuse(why, provenance(row.place()), Some(row.bytes())),
        }
    }

    fn bad_row(&mut self, row: BadRow<'_>) -> Result<Option<Value>> {
        self.decoder.refuse(row.why.to_string(), provenance(row.place), Some(row.bytes))
    }
}
