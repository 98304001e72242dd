//! A source and a sink of one's own: the lines of a file, and a file that lines are appended to.
//!
//! A connector knows `mailer-core` and nothing else of Mailer. This one reads the file given as its first argument and
//! appends to the one given as its second; with checkpoints beside the output, a second run goes on behind the first.

use mailer_core::{
    Batch, Error, Flush, MAX_BATCH_BYTES, Polled, Record, Result, Sink, SinkFactory, Source, SourceFactory, SplitId,
    StartAt, Timestamp, WorkerContext,
};
use mailer_runtime::{Env, FileStorage};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

// ANCHOR: source
/// The lines of a file. One file is one split, so one worker reads it.
struct Lines(PathBuf);

struct LineReader {
    path: PathBuf,
    /// The open file and the offset behind the last line handed out; `None` on workers that have no split.
    file: Option<(BufReader<File>, u64)>,
}

impl SourceFactory for Lines {
    type Source = LineReader;

    fn build(&self, _context: &WorkerContext) -> Result<LineReader> {
        Ok(LineReader { path: self.0.clone(), file: None })
    }

    fn describe(&self) -> String {
        format!("lines of {}", self.0.display())
    }
}

impl Source for LineReader {
    type Item = String;
    /// A byte offset. Whatever resumes exactly, and is small, will do.
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok(vec![SplitId::new("file", 0)])
    }

    fn assign(&mut self, _split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        let offset = if let StartAt::Position(offset) = start { offset } else { 0 };
        let unusable = |e| Error::invalid_plan(format!("{} cannot be read", self.path.display())).caused_by(e);
        let mut file = BufReader::new(File::open(&self.path).map_err(unusable)?);
        file.seek(SeekFrom::Start(offset)).map_err(unusable)?;
        self.file = Some((file, offset));
        Ok(offset)
    }

    fn poll(&mut self, out: &mut Batch<String>) -> Result<Polled> {
        let Some((file, offset)) = &mut self.file else { return Ok(Polled::Ended) };
        let mut bytes = 0;
        while bytes < MAX_BATCH_BYTES && out.len() < mailer_core::MAX_BATCH_RECORDS {
            let mut line = String::new();
            let length = file.read_line(&mut line).map_err(|e| Error::unavailable("reading a line").caused_by(e))?;
            if length == 0 {
                break;
            }
            out.push(Record::new(Timestamp(*offset as i64), line.trim_end().to_owned()));
            *offset += length as u64;
            bytes += length;
        }
        if out.is_empty() { Ok(Polled::Ended) } else { Ok(Polled::Records { split: SplitId::new("file", 0), bytes }) }
    }

    fn position(&self, _split: &SplitId) -> u64 {
        self.file.as_ref().map_or(0, |(_, offset)| *offset)
    }
}
// ANCHOR_END: source

// ANCHOR: sink
/// Appends lines to a file.
struct Append(PathBuf);

struct Appender(BufWriter<File>);

impl SinkFactory<String> for Append {
    type Sink = Appender;

    fn build(&self, _context: &WorkerContext) -> Result<Appender> {
        let file = File::options().create(true).append(true).open(&self.0);
        let unusable = |e| Error::invalid_plan(format!("{} cannot be written", self.0.display())).caused_by(e);
        Ok(Appender(BufWriter::new(file.map_err(unusable)?)))
    }

    fn describe(&self) -> String {
        format!("appends to {}", self.0.display())
    }
}

impl Sink<String> for Appender {
    fn write(&mut self, batch: &mut Batch<String>) -> Result<()> {
        batch.drain(..).try_for_each(|record| writeln!(self.0, "{}", record.value)).map_err(failed)
    }

    /// At a barrier: the lines leave the process here; the disk is waited for beside the worker.
    fn flush(&mut self) -> Result<Flush> {
        self.0.flush().map_err(failed)?;
        let file = self.0.get_ref().try_clone().map_err(failed)?;
        Ok(Flush::Pending(Box::new(move || file.sync_data().map_err(failed))))
    }
}

fn failed(cause: std::io::Error) -> Error {
    Error::unavailable("the output file cannot be written").caused_by(cause)
}
// ANCHOR_END: sink

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err(Error::invalid_plan("name an input file and an output file"));
    };
    let checkpoints = output.with_extension("checkpoints");

    let env = Env::new("shout").workers(1).checkpointing(Duration::from_secs(1), FileStorage::new(checkpoints));
    env.source("lines", Lines(input)).map(|line| line.to_uppercase()).sink("out", Append(output));
    env.execute()
}
