//! Standard input as a source.

use crate::decode::{DecodeLine, Place, trimmed};
use mailer_core::{
    Batch, Error, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SourceFactory, SplitId, StartAt,
    Timestamp, WorkerContext,
};
use std::io::{BufRead, stdin};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

/// Chunks of lines that wait for the worker: a slow pipeline makes the writer of the pipe wait.
const AHEAD: usize = 4;

/// Reads standard input line by line, on worker 0. It cannot be read again: there is no exactly once with it, and a
/// restarted job goes on with what is still in the pipe.
///
/// The timestamp of a record is the number of its line, from 0, until the stream is told another.
#[derive(Clone, Debug)]
pub struct Stdin<D> {
    decode: D,
}

impl<D: DecodeLine> Stdin<D> {
    /// Makes a record of every line with `decode`.
    pub fn new(decode: D) -> Self {
        Self { decode }
    }
}

impl<D: DecodeLine> SourceFactory for Stdin<D> {
    type Source = StdinReader<D>;

    fn build(&self, context: &WorkerContext) -> Result<StdinReader<D>> {
        let (context, decode) = (context.clone(), self.decode.clone());
        Ok(StdinReader { context, decode, chunks: None, chunk: Vec::new(), place: 0, lines: 0 })
    }

    fn is_replayable(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        "standard input".into()
    }
}

/// The source behind [`Stdin`].
#[derive(Debug)]
pub struct StdinReader<D> {
    context: WorkerContext,
    decode: D,
    chunks: Option<Receiver<std::io::Result<Vec<u8>>>>,
    /// Whole lines, and how much of them was handed out.
    chunk: Vec<u8>,
    place: usize,
    lines: u64,
}

impl<D: DecodeLine> StdinReader<D> {
    fn split() -> SplitId {
        SplitId::new("stdin", 0)
    }

    /// Starts the thread that waits for input: nothing else may.
    #[expect(clippy::disallowed_methods, reason = "reading a pipe waits, and the worker must not")]
    fn read_ahead(&mut self) -> Result<()> {
        let (sender, receiver) = sync_channel(AHEAD);
        let waker = self.context.waker.clone();
        let read = move || loop {
            let chunk = read_chunk();
            let last = !matches!(&chunk, Ok(chunk) if !chunk.is_empty());
            if sender.send(chunk).is_err() {
                return;
            }
            waker.wake_by_ref();
            if last {
                return;
            }
        };
        let spawned = thread::Builder::new().name("mailer-stdin".into()).spawn(read);
        spawned.map_err(|e| Error::unavailable("no thread could be started to read standard input").caused_by(e))?;
        self.chunks = Some(receiver);
        Ok(())
    }
}

/// What is there, up to a whole line; empty at the end.
fn read_chunk() -> std::io::Result<Vec<u8>> {
    let mut input = stdin().lock();
    let mut chunk = Vec::new();
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(chunk);
        }
        let whole = buffer.iter().rposition(|byte| *byte == b'\n').map(|place| place + 1);
        let taken = whole.unwrap_or(buffer.len());
        chunk.extend_from_slice(&buffer[..taken]);
        input.consume(taken);
        if whole.is_some() {
            return Ok(chunk);
        }
    }
}

impl<D: DecodeLine> Source for StdinReader<D> {
    type Item = D::Item;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        Ok(vec![Self::split()])
    }

    fn assign(&mut self, _split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        if let StartAt::Position(lines) = start {
            self.lines = lines;
        }
        self.read_ahead()?;
        Ok(self.lines)
    }

    fn poll(&mut self, out: &mut Batch<D::Item>) -> Result<Polled> {
        let Some(chunks) = &self.chunks else { return Ok(Polled::Ended) };
        let mut bytes = 0;
        while out.len() < MAX_BATCH_RECORDS && bytes < MAX_BATCH_BYTES {
            if self.place == self.chunk.len() {
                if !out.is_empty() {
                    break;
                }
                match chunks.try_recv() {
                    Ok(Ok(chunk)) if chunk.is_empty() => {
                        self.chunks = None;
                        return Ok(Polled::Ended);
                    }
                    Ok(Ok(chunk)) => (self.chunk, self.place) = (chunk, 0),
                    Ok(Err(e)) => return Err(Error::unavailable("standard input cannot be read").caused_by(e)),
                    Err(TryRecvError::Empty) => return Ok(Polled::Nothing { caught_up: true }),
                    Err(TryRecvError::Disconnected) => return Ok(Polled::Ended),
                }
                continue;
            }
            let rest = &self.chunk[self.place..];
            let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |place| place + 1);
            let line = trimmed(&rest[..length]);
            self.place += length;
            bytes += length;
            let number = self.lines;
            self.lines += 1;
            if line.is_empty() {
                continue;
            }
            let place = Place::Stdin { line: number + 1 };
            let item = self.decode.decode_at(line, place).map_err(|e| e.context(place))?;
            out.extend(item.map(|item| Record::new(Timestamp(number as i64), item)));
        }
        // A poll that found only lines that are left out says so by an empty batch: there may be more.
        if out.is_empty() {
            self.context.waker.wake_by_ref();
            return Ok(Polled::Nothing { caught_up: false });
        }
        Ok(Polled::Records { split: Self::split(), bytes })
    }

    fn position(&self, _split: &SplitId) -> u64 {
        self.lines
    }

    fn offset(&self, _split: &SplitId) -> Option<u64> {
        Some(self.lines)
    }
}
