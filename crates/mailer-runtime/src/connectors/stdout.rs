//! A sink that prints.

use mailer_core::{Batch, Error, Flush, Result, Sink, SinkFactory, WorkerContext};
use std::fmt::Display;
use std::io::{Write, stdout};

/// Prints every value on a line of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stdout;

impl<T: Display + Send + 'static> SinkFactory<T> for Stdout {
    type Sink = Stdout;

    fn build(&self, _context: &WorkerContext) -> Result<Stdout> {
        Ok(Stdout)
    }

    fn describe(&self) -> String {
        "standard output".into()
    }
}

impl<T: Display + Send + 'static> Sink<T> for Stdout {
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let mut out = stdout().lock();
        batch.drain(..).try_for_each(|record| writeln!(out, "{}", record.value)).map_err(failed)
    }

    fn flush(&mut self) -> Result<Flush> {
        stdout().lock().flush().map_err(failed)?;
        Ok(Flush::Done)
    }
}

fn failed(cause: std::io::Error) -> Error {
    Error::unavailable("standard output cannot be written").caused_by(cause)
}
