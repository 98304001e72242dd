//! A source that reads files line by line.

use crate::decode::{DecodeLine, trimmed};
use mailer_core::{
    Batch, Error, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SourceFactory, SplitId,
    SplitState, StartAt, Timestamp, WorkerContext,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

/// How much is read from a file at once.
const BUFFER: usize = 256 << 10;

/// Reads files to their end, each a split of its own. Empty lines are left out; a last line needs no line end.
///
/// The position is the number of bytes before the next line. A file that has become shorter than that, or is gone, is
/// refused: it is not the file that was read. The timestamp of a record is the place of its line in bytes, until the
/// stream is told another.
#[derive(Clone, Debug)]
pub struct Lines<D> {
    paths: Vec<PathBuf>,
    decode: D,
}

impl<D: DecodeLine> Lines<D> {
    /// Reads `paths`, and makes a record of every line with `decode`.
    pub fn new<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, decode: D) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), decode }
    }
}

impl<D: DecodeLine> SourceFactory for Lines<D> {
    type Source = LinesReader<D>;

    fn build(&self, _context: &WorkerContext) -> Result<LinesReader<D>> {
        let (paths, decode) = (self.paths.clone(), self.decode.clone());
        Ok(LinesReader { paths, decode, open: BTreeMap::new(), paused: BTreeSet::new(), turn: 0, line: Vec::new() })
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.paths.iter().map(|path| path.display().to_string()).collect();
        format!("lines of {}", names.join(", "))
    }
}

/// The source behind [`Lines`].
#[derive(Debug)]
pub struct LinesReader<D> {
    paths: Vec<PathBuf>,
    decode: D,
    open: BTreeMap<SplitId, OpenFile>,
    paused: BTreeSet<SplitId>,
    turn: usize,
    line: Vec<u8>,
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    reader: BufReader<File>,
    /// Bytes before the next line.
    position: u64,
    ended: bool,
}

impl OpenFile {
    fn open(path: PathBuf, position: u64) -> Result<Self> {
        let failed = |e: std::io::Error| {
            Error::invalid_plan(format!("the file {} cannot be read: check its name and its rights", path.display()))
                .caused_by(e)
        };
        let mut file = File::open(&path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(Error::invalid_plan(format!("{} is a folder: name the files in it", path.display())));
        }
        if metadata.len() < position {
            return Err(Error::refused(format!(
                "{} has {} bytes, and {position} of it were read before: it is another file now. Put the old one back, or \
                 start the job without its checkpoint",
                path.display(),
                metadata.len()
            )));
        }
        file.seek(SeekFrom::Start(position)).map_err(failed)?;
        Ok(Self { reader: BufReader::with_capacity(BUFFER, file), path, position, ended: false })
    }

    /// Reads one line into `line`; `false` at the end.
    fn read(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let read = self.reader.read_until(b'\n', line);
        let read =
            read.map_err(|e| Error::unavailable(format!("{} cannot be read", self.path.display())).caused_by(e))?;
        self.position += read as u64;
        self.ended = read == 0;
        Ok(read > 0)
    }
}

impl<D: DecodeLine> LinesReader<D> {
    /// The next lines of one file; how many bytes they had.
    fn fill(&mut self, split: &SplitId, out: &mut Batch<D::Item>) -> Result<usize> {
        let Some(file) = self.open.get_mut(split) else { return Ok(0) };
        let mut bytes = 0;
        while out.len() < MAX_BATCH_RECORDS && bytes < MAX_BATCH_BYTES {
            let place = file.position;
            if !file.read(&mut self.line)? {
                break;
            }
            let line = trimmed(&self.line);
            bytes += line.len();
            if line.is_empty() {
                continue;
            }
            let decoded = self.decode.decode(line);
            let item = decoded.map_err(|e| e.context(format_args!("{} at byte {place}", file.path.display())))?;
            out.extend(item.map(|item| Record::new(Timestamp(place as i64), item)));
        }
        Ok(bytes)
    }
}

impl<D: DecodeLine> Source for LinesReader<D> {
    type Item = D::Item;
    type Position = u64;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        let names = self.paths.iter().zip(0..).map(|(path, index)| SplitId::new(path.display().to_string(), index));
        Ok(names.collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<u64>) -> Result<u64> {
        let position = match start {
            StartAt::Configured | StartAt::Discovered => 0,
            StartAt::Position(position) => position,
        };
        let path = self.paths.get(split.index as usize).cloned();
        let path = path.ok_or_else(|| Error::internal(format!("there is no file number {}", split.index)))?;
        self.open.insert(split.clone(), OpenFile::open(path, position)?);
        Ok(position)
    }

    fn poll(&mut self, out: &mut Batch<D::Item>) -> Result<Polled> {
        for _ in 0..self.open.len() {
            let Some(split) = self.open.keys().nth(self.turn % self.open.len()).cloned() else { break };
            self.turn += 1;
            // Lines that are left out make no batch: on with those behind them.
            while !self.paused.contains(&split) && self.open.get(&split).is_some_and(|file| !file.ended) {
                let bytes = self.fill(&split, out)?;
                if !out.is_empty() {
                    return Ok(Polled::Records { split, bytes });
                }
            }
        }
        let waits = self.open.iter().any(|(split, file)| self.paused.contains(split) && !file.ended);
        Ok(if waits { Polled::Nothing { caught_up: false } } else { Polled::Ended })
    }

    fn position(&self, split: &SplitId) -> u64 {
        self.open.get(split).map_or(0, |file| file.position)
    }

    fn split_state(&self, split: &SplitId) -> Option<SplitState> {
        let ended = self.open.get(split).is_none_or(|file| file.ended);
        Some(if ended { SplitState::Ended } else { SplitState::Reading })
    }

    fn pause(&mut self, split: &SplitId, paused: bool) -> bool {
        if paused {
            self.paused.insert(split.clone())
        } else {
            self.paused.remove(split)
        };
        true
    }
}
