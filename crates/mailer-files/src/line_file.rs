//! A sink that appends lines to a file.

use mailer_core::{Batch, Error, Flush, Result, Sink, SinkFactory, WorkerContext};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lines that are kept before they are written, in bytes.
const BUFFER: usize = 64 << 10;

/// Appends lines to a file, at least once: after a crash the lines since the last checkpoint come again. What a checkpoint
/// covers is on the disk.
///
/// `encode` appends one line to its buffer, without a line end. A line is written in one piece, also where several
/// workers write one file.
#[derive(Clone, Debug)]
pub struct LineFile<E> {
    path: PathBuf,
    first_line: Vec<u8>,
    encode: E,
}

impl<E> LineFile<E> {
    /// Appends to `path`; the file is made if it is not there, its folder is not.
    pub fn new(path: impl Into<PathBuf>, encode: E) -> Self {
        Self { path: path.into(), first_line: Vec::new(), encode }
    }

    /// A line that stands at the beginning of the file: the names of columns. It is written when the file is made, or is empty
    /// when the job starts. Default: none.
    #[must_use]
    pub fn first_line(mut self, line: impl Into<Vec<u8>>) -> Self {
        self.first_line = line.into();
        self
    }

    /// Opens the file; nobody writes to it before all workers have done so. The first one sees to the first line.
    fn open(&self, worker: u16) -> std::io::Result<File> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        if worker == 0 && !self.first_line.is_empty() && file.metadata()?.len() == 0 {
            file.write_all(&[&self.first_line[..], b"\n"].concat())?;
        }
        Ok(file)
    }
}

impl<T, E> SinkFactory<T> for LineFile<E>
where
    T: Send + 'static,
    E: FnMut(&T, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    type Sink = LineFileWriter<E>;

    fn build(&self, context: &WorkerContext) -> Result<LineFileWriter<E>> {
        let file = self.open(context.worker).map_err(|e| {
            let message =
                format!("the file {} cannot be written: check its folder and its rights", self.path.display());
            Error::invalid_plan(message).caused_by(e)
        })?;
        let (path, encode) = (self.path.clone(), self.encode.clone());
        Ok(LineFileWriter { file: Arc::new(file), path, encode, buffer: Vec::new() })
    }

    fn describe(&self) -> String {
        format!("lines to {}", self.path.display())
    }
}

/// The sink behind [`LineFile`].
#[derive(Debug)]
pub struct LineFileWriter<E> {
    file: Arc<File>,
    path: PathBuf,
    encode: E,
    buffer: Vec<u8>,
}

impl<E> LineFileWriter<E> {
    fn write_out(&mut self) -> Result<()> {
        self.file.as_ref().write_all(&self.buffer).map_err(|e| failed(&self.path, e))?;
        self.buffer.clear();
        Ok(())
    }
}

impl<T, E> Sink<T> for LineFileWriter<E>
where
    T: Send + 'static,
    E: FnMut(&T, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    fn write(&mut self, batch: &mut Batch<T>) -> Result<()> {
        for record in batch.drain(..) {
            (self.encode)(&record.value, &mut self.buffer)?;
            self.buffer.push(b'\n');
            if self.buffer.len() >= BUFFER {
                self.write_out()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<Flush> {
        self.write_out()?;
        let (file, path) = (self.file.clone(), self.path.clone());
        Ok(Flush::Pending(Box::new(move || file.sync_data().map_err(|e| failed(&path, e)))))
    }
}

fn failed(path: &Path, cause: std::io::Error) -> Error {
    Error::unavailable(format!("{} cannot be written", path.display())).caused_by(cause)
}
