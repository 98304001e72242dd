//! Rows out of bytes: what drives `csv-core`, which keeps no buffers of its own.

use super::row::Columns;
use crate::files::unreadable;
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use mailer_core::{Error, Result};
use std::fmt;
use std::io::BufRead;
use std::sync::Arc;

/// A longer row is a mistake: most likely a quote that nobody closed.
const LONGEST: usize = 16 << 20;

/// An open CSV file.
#[derive(Debug)]
pub struct OpenCsv {
    pub(super) parser: Parser,
    pub(super) columns: Arc<Columns>,
    /// The names as the file has them, as JSON; empty where it has none.
    pub(super) head: String,
}

impl OpenCsv {
    pub(super) fn new(delimiter: u8) -> Result<Self> {
        if matches!(delimiter, b'"' | b'\n' | b'\r') || !delimiter.is_ascii() {
            return Err(Error::invalid_plan(format!(
                "{:?} cannot stand between the fields of a CSV file: use a comma, a semicolon or a tab",
                char::from(delimiter)
            )));
        }
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        let (bytes, ends) = (vec![0; 1_024], vec![0; 32]);
        let parser = Parser { reader, bytes, ends, filled: 0, fields: 0, written: Vec::new() };
        Ok(Self { parser, columns: Arc::default(), head: String::new() })
    }
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// A row, out of so many bytes.
    Row { bytes: usize },
    /// There is none.
    End,
}

/// Reads rows, and keeps the newest one.
pub(super) struct Parser {
    reader: Reader,
    /// The fields of the row, one behind the other, without quotes.
    bytes: Vec<u8>,
    filled: usize,
    /// Where each ends.
    ends: Vec<usize>,
    fields: usize,
    /// The row as it stands in the file.
    written: Vec<u8>,
}

impl Parser {
    /// Reads the next row. It ends behind its last field, or behind its line end: both are where the next one may begin.
    pub(super) fn read(&mut self, input: &mut impl BufRead) -> Result<Parsed> {
        (self.filled, self.fields) = (0, 0);
        self.written.clear();
        loop {
            let available = input.fill_buf().map_err(unreadable)?;
            let (result, taken, written, ended) =
                self.reader.read_record(available, &mut self.bytes[self.filled..], &mut self.ends[self.fields..]);
            self.written.extend_from_slice(&available[..taken]);
            input.consume(taken);
            self.filled += written;
            self.fields += ended;
            match result {
                ReadRecordResult::Record => return Ok(Parsed::Row { bytes: self.written.len() }),
                ReadRecordResult::End => return Ok(Parsed::End),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => self.bytes.resize(self.bytes.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            }
            if self.written.len() > LONGEST {
                let message = format!("a row is longer than {} MiB: is a quote missing?", LONGEST >> 20);
                return Err(Error::user_function(message));
            }
        }
    }

    /// The row that was read last, as it stands there: without its line end, and without what is left of the lines before
    /// it, which is so many bytes.
    pub(super) fn written(&self) -> (usize, &[u8]) {
        let is_text = |byte: &u8| !matches!(byte, b'\r' | b'\n');
        let first = self.written.iter().position(is_text).unwrap_or(self.written.len());
        let end = self.written.iter().rposition(is_text).map_or(first, |last| last + 1);
        (first, &self.written[first..end])
    }

    /// The fields of the row that was read last.
    pub(super) fn fields(&self) -> Result<Fields<'_>> {
        let text = std::str::from_utf8(&self.bytes[..self.filled])
            .map_err(|e| Error::user_function("a row is not UTF-8: convert the file first").caused_by(e))?;
        Ok(Fields { text, ends: &self.ends[..self.fields] })
    }
}

impl fmt::Debug for Parser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parser(line {})", self.reader.line())
    }
}

/// The fields of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    text: &'a str,
    ends: &'a [usize],
}

impl<'a> Fields<'a> {
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, place: usize) -> Option<&'a str> {
        let start = if place == 0 { 0 } else { *self.ends.get(place - 1)? };
        self.text.get(start..*self.ends.get(place)?)
    }
}
