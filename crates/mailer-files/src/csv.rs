//! Files of comma separated values.

mod parser;
mod row;

pub use parser::OpenCsv;
pub use row::{BadRow, Columns, DecodeRow, Row};

use crate::decode::Place;
use crate::files::{Files, FilesReader, Format, Next};
use mailer_core::{Error, Result};
use parser::Parsed;
use row::Written;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads files of comma separated values (RFC 4180): fields may be quoted, quoted ones may hold delimiters, line ends and
/// doubled quotes. The first row names the columns, unless [`Csv::columns`] does. Empty lines are left out.
///
/// ```
/// use mailer_files::{Csv, Row};
/// let amounts = Csv::new(["orders.csv"], |row: &Row<'_>| {
///     let amount = row.get("amount").unwrap_or_default();
///     amount.parse::<f64>().map(Some).map_err(|e| mailer_core::Error::user_function("no amount").caused_by(e))
/// })
/// .delimiter(b';');
/// ```
///
/// The position in a checkpoint is the number of bytes before the next row, with the names of the columns where they stand in the
/// file: one that has others when the job goes on is refused. See [`Files`].
pub type Csv<D> = Files<CsvFormat<D>>;

/// The source behind [`Csv`].
pub type CsvReader<D> = FilesReader<CsvFormat<D>>;

impl<D: DecodeRow> Files<CsvFormat<D>> {
    /// Reads `paths`, and makes a record of every row with `decode`.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, decode: D) -> Self {
        Self::in_format(paths, CsvFormat { decode, delimiter: b',', columns: None })
    }

    /// What stands between two fields. Default: a comma.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.format.delimiter = delimiter;
        self
    }

    /// The files have no row of names: these are the columns.
    #[must_use]
    pub fn columns<C: Into<String>>(mut self, columns: impl IntoIterator<Item = C>) -> Self {
        self.format.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }
}

/// Comma separated values. See [`Csv`].
#[derive(Clone, Debug)]
pub struct CsvFormat<D> {
    decode: D,
    delimiter: u8,
    columns: Option<Vec<String>>,
}

impl<D: DecodeRow> Format for CsvFormat<D> {
    type Item = D::Item;
    type Open = OpenCsv;

    fn plural(&self) -> &'static str {
        "CSV rows"
    }

    fn open(&self, input: &mut impl BufRead) -> Result<(OpenCsv, u64)> {
        let mut open = OpenCsv::new(self.delimiter)?;
        let Some(columns) = &self.columns else {
            let Parsed::Row { bytes } = open.parser.read(input)? else {
                return Err(Error::invalid_plan(
                    "the file is empty: its first row should name the columns. Name them yourself if there is none",
                ));
            };
            open.columns = Arc::new(Columns::of_row(open.parser.fields()?)?);
            open.head = serde_json::to_string(open.columns.names())
                .map_err(|e| Error::internal("names of columns do not encode").caused_by(e))?;
            return Ok((open, bytes as u64));
        };
        open.columns = Arc::new(Columns::new(columns.clone())?);
        Ok((open, 0))
    }

    /// Names that the program gives are its own business.
    fn head(open: &OpenCsv) -> &str {
        &open.head
    }

    fn next(&mut self, open: &mut OpenCsv, input: &mut impl BufRead, place: Place<'_>) -> Result<Next<D::Item>> {
        let Parsed::Row { bytes } = open.parser.read(input)? else { return Ok(Next::END) };
        let (before, written) = open.parser.written();
        let written = Written { bytes: written, place: place.behind(before) };
        let row = open.parser.fields().and_then(|fields| Row::new(&open.columns, fields, written));
        let item = match row {
            Ok(row) => self.decode.decode(&row)?,
            Err(why) => self.decode.bad_row(BadRow::new(why, written))?,
        };
        Ok(Next { bytes, item })
    }
}
