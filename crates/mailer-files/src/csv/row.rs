//! What makes records of rows.

use super::parser::Fields;
use mailer_core::{Error, Result};

/// The names of the columns of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(Vec<String>);

impl Columns {
    /// Names in the order of the file. A name may stand there once.
    pub fn new(names: Vec<String>) -> Result<Self> {
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name) {
                let message = format!("two columns are called {name:?}: give each a name of its own");
                return Err(Error::invalid_plan(message));
            }
        }
        Ok(Self(names))
    }

    pub(super) fn of_row(row: Fields<'_>) -> Result<Self> {
        Self::new((0..row.count()).filter_map(|place| row.get(place)).map(str::to_owned).collect())
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.0
    }
}

/// A row of a CSV file: as many fields as there are columns, all of them text.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    columns: &'a Columns,
    fields: Fields<'a>,
}

impl<'a> Row<'a> {
    pub(super) fn new(columns: &'a Columns, fields: Fields<'a>) -> Result<Self> {
        let (expected, found) = (columns.names().len(), fields.count());
        if found != expected {
            let message = format!("a row has {found} fields, and there are {expected} columns");
            return Err(Error::user_function(message));
        }
        Ok(Self { columns, fields })
    }

    /// The field in the column called `column`.
    pub fn get(&self, column: &str) -> Option<&'a str> {
        self.columns.names().iter().position(|name| name == column).and_then(|place| self.fields.get(place))
    }

    /// Names and fields, in the order of the file.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let fields = self.fields;
        let names = self.columns.names().iter().enumerate();
        names.filter_map(move |(place, name)| Some((name.as_str(), fields.get(place)?)))
    }
}

/// Makes an item of a row. `None` leaves the row out. Implemented for functions.
pub trait DecodeRow: Clone + Send + Sync + 'static {
    /// What it makes.
    type Item: Send + 'static;

    /// Decodes one row. Errors need not say where: the source adds file and place.
    fn decode(&mut self, row: &Row<'_>) -> Result<Option<Self::Item>>;

    /// What becomes of a row that has too many or too few fields, or is not UTF-8. It fails the job, unless this says otherwise.
    fn bad_row(&mut self, why: Error) -> Result<Option<Self::Item>> {
        Err(why)
    }
}

impl<T, F> DecodeRow for F
where
    T: Send + 'static,
    F: FnMut(&Row<'_>) -> Result<Option<T>> + Clone + Send + Sync + 'static,
{
    type Item = T;

    fn decode(&mut self, row: &Row<'_>) -> Result<Option<T>> {
        self(row)
    }
}
