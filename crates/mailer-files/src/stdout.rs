//! Standard output as a sink.

use mailer_core::{Batch, Error, Flush, Result, Sink, SinkFactory, WorkerContext};
use std::io::{ErrorKind, Write, stdout};

/// Writes a line for every record to standard output, a batch at a time. At least once.
///
/// `encode` appends one line to its buffer, without a line end.
#[derive(Clone, Debug)]
pub struct StdoutLines<E> {
    encode: E,
}

impl<E> StdoutLines<E> {
    /// Makes lines with `encode`.
    pub fn new(encode: E) -> Self {
        Self { encode }
    }
}

impl<T, E> SinkFactory<T> for StdoutLines<E>
where
    T: Send + 'static,
    E: FnMut(&T, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    type Sink = StdoutWriter<E>;

    fn build(&self, _context: &WorkerContext) -> Result<StdoutWriter<E>> {
        Ok(StdoutWriter { encode: self.encode.clone(), buffer: Vec::new() })
    }

    fn describe(&self) -> String {
        "standard output".into()
    }
}

/// The sink behind [`StdoutLines`].
#[derive(Debug)]
pub struct StdoutWriter<E> {
    encode: E,
    buffer: Vec<u8>,
}

impl<T, E> Sink<T> for StdoutWriter<E>
where
    T: Send + 'static,
    E: FnMut(&T, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        self.buffer.clear();
        for record in batch.drain(..) {
            (self.encode)(&record.value, &mut self.buffer)?;
            self.buffer.push(b'\n');
        }
        let mut out = stdout().lock();
        out.write_all(&self.buffer).and_then(|()| out.flush()).map_err(failed)
    }

    fn flush(&mut self) -> Result<Flush> {
        Ok(Flush::Done)
    }
}

/// The cause of an error of [`StdoutLines`] when nobody reads standard output any more: `job | head -1`.
#[derive(Debug)]
pub struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads it any more")
    }
}

impl std::error::Error for ReaderGone {}

fn failed(cause: std::io::Error) -> Error {
    let error = Error::unavailable("standard output cannot be written");
    if cause.kind() == ErrorKind::BrokenPipe { error.caused_by(ReaderGone) } else { error.caused_by(cause) }
}
