//! What makes records of lines, and lines of records.

use mailer_core::Result;

/// Makes an item of a line, without its line end. `None` leaves the line out. Implemented for functions.
pub trait DecodeLine: Clone + Send + Sync + 'static {
    /// What it makes.
    type Item: Send + 'static;

    /// Decodes one line. Errors need not say where: the source adds file and place.
    fn decode(&mut self, line: &[u8]) -> Result<Option<Self::Item>>;
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
