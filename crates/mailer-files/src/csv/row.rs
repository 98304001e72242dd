//! What makes records of rows.

use super::parser::Fields;
use crate::decode::Place;
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
    written: Written<'a>,
}

/// A row as it stands in its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) place: Place<'a>,
}

impl<'a> Row<'a> {
    pub(super) fn new(columns: &'a Columns, fields: Fields<'a>, written: Written<'a>) -> Result<Self> {
        let (expected, found) = (columns.names().len(), fields.count());
        if found != expected {
            let message = format!("a row has {found} fields, and there are {expected} columns");
            return Err(Error::user_function(message));
        }
        Ok(Self { columns, fields, written })
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

    /// The bytes of the row, without its line end.
    pub fn bytes(&self) -> &'a [u8] {
        self.written.bytes
    }

    /// Where the row begins.
    pub fn place(&self) -> Place<'a> {
        self.written.place
    }
}

/// A row that has too many or too few fields, or is not UTF-8.
#[derive(Debug)]
pub struct BadRow<'a> {
    /// What is wrong with it.
    pub why: Error,
    /// Its bytes, without its line end.
    pub bytes: &'a [u8],
    /// Where it begins.
    pub place: Place<'a>,
}

impl<'a> BadRow<'a> {
    pub(super) fn new(why: Error, Written { bytes, place }: Written<'a>) -> Self {
        Self { why, bytes, place }
    }
}

/// Makes an item of a row. `None` leaves the row out. Implemented for functions.
pub trait DecodeRow: Clone + Send + Sync + 'static {
    /// What it makes.
    type Item: Send + 'static;

    /// Decodes one row. Errors need not say where: the source adds file and place.
    fn decode(&mut self, row: &Row<'_>) -> Result<Option<Self::Item>>;

    /// What becomes of a row that is none. It fails the job, unless this says otherwise.
    fn bad_row(&mut self, row: BadRow<'_>) -> Result<Option<Self::Item>> {
        Err(row.why)
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
