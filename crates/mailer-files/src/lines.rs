//! Files of lines.

use crate::decode::{DecodeLine, Place, trimmed};
use crate::files::{Files, FilesReader, Format, Next, unreadable};
use mailer_core::Result;
use std::io::BufRead;
use std::path::PathBuf;

/// Reads files line by line. Empty lines are left out; a last line needs no line end. See [`Files`] for what is kept in
/// checkpoints.
pub type Lines<D> = Files<LineFormat<D>>;

/// The source behind [`Lines`].
pub type LinesReader<D> = FilesReader<LineFormat<D>>;

impl<D: DecodeLine> Files<LineFormat<D>> {
    /// Reads `paths`, and makes a record of every line with `decode`.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, decode: D) -> Self {
        Self::in_format(paths, LineFormat { decode, line: Vec::new() })
    }
}

/// One record a line. See [`Lines`].
#[derive(Clone, Debug)]
pub struct LineFormat<D> {
    decode: D,
    line: Vec<u8>,
}

impl<D: DecodeLine> Format for LineFormat<D> {
    type Item = D::Item;
    type Open = ();

    fn plural(&self) -> &'static str {
        "lines"
    }

    fn open(&self, _input: &mut impl BufRead) -> Result<((), u64)> {
        Ok(((), 0))
    }

    fn next(&mut self, (): &mut (), input: &mut impl BufRead, place: Place<'_>) -> Result<Next<D::Item>> {
        self.line.clear();
        let bytes = input.read_until(b'\n', &mut self.line).map_err(unreadable)?;
        let line = trimmed(&self.line);
        let item = if line.is_empty() { None } else { self.decode.decode_at(line, place)? };
        Ok(Next { bytes, item })
    }
}
