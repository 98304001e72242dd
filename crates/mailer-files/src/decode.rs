//! What makes records of lines, and lines of records.

use mailer_core::Result;
use std::fmt;
use std::sync::Arc;

/// Where a record stands. `Display` is for errors: `orders.csv at byte 42`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// In a file, behind so many bytes.
    File {
        /// The path, as the source was given it.
        path: &'a Arc<str>,
        /// Bytes before the record.
        offset: u64,
    },
    /// In standard input.
    Stdin {
        /// The number of its line, from 1, over all starts of the job that share checkpoints.
        line: u64,
    },
}

impl Place<'_> {
    /// So many bytes behind it. Lines have no bytes between them.
    pub(crate) fn behind(self, bytes: usize) -> Self {
        match self {
            Place::File { path, offset } => Place::File { path, offset: offset + bytes as u64 },
            stdin @ Place::Stdin { .. } => stdin,
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, offset } => write!(f, "{path} at byte {offset}"),
            Place::Stdin { line } => write!(f, "line {line} of standard input"),
        }
    }
}

/// Makes an item of a line, without its line end. `None` leaves the line out. Implemented for functions.
pub trait DecodeLine: Clone + Send + Sync + 'static {
    /// What it makes.
    type Item: Send + 'static;

    /// Decodes one line. Errors need not say where: the source adds file and place.
    fn decode(&mut self, line: &[u8]) -> Result<Option<Self::Item>>;

    /// The same, for decoders that remember where a record came from.
    fn decode_at(&mut self, line: &[u8], _place: Place<'_>) -> Result<Option<Self::Item>> {
        self.decode(line)
    }
}

impl<T, F> DecodeLine for F
where
    T: Send + 'static,
    F: FnMut(&[u8]) -> Result<Option<T>> + Clone + Send + Sync + 'static,
{
    type Item = T;

    fn decode(&mut self, line: &[u8]) -> Result<Option<T>> {
        self(line)
    }
}

/// The line without `\n` or `\r\n`.
pub(crate) fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
