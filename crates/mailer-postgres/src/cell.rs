//! Values for columns.

/// The value of one column. The sink checks it against the column's type, and converts where nothing is lost: text that is a
/// number into a number, milliseconds since 1970 into a time, anything into text.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// SQL's null.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number; for a column with times, milliseconds since 1970.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Text: also for numbers, times (RFC 3339), dates and UUIDs.
    Text(String),
    /// JSON, as text.
    Json(String),
}

impl Cell {
    /// What it is, for a sentence.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Cell::Null => "null",
            Cell::Bool(_) => "a truth value",
            Cell::Integer(_) | Cell::Float(_) => "a number",
            Cell::Text(_) => "text",
            Cell::Json(_) => "JSON",
        }
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Cell::Bool(value)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Cell::Integer(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::Float(value)
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Cell::Text(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Cell::Text(value.to_owned())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}
