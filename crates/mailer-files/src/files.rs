//! A source that reads files to their end. What a record is, is up to a [`Format`].

use crate::decode::Place;
use mailer_core::{
    Batch, Error, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Polled, Record, Result, Source, SourceFactory, SplitId,
    SplitState, StartAt, Timestamp, WorkerContext,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

/// How much is read from a file at once.
const BUFFER: usize = 256 << 10;

/// How records lie in a file. [`crate::Lines`] and [`crate::Csv`] are two; another one needs two functions.
pub trait Format: Clone + Send + Sync + 'static {
    /// What it makes of a record.
    type Item: Send + 'static;
    /// What it keeps of an open file: names of columns, the state of a parser.
    type Open: Send + 'static;

    /// What the records are called: `lines`.
    fn plural(&self) -> &'static str;

    /// Reads what stands before the records, at the beginning of a file, and says how many bytes that is.
    fn open(&self, input: &mut impl BufRead) -> Result<(Self::Open, u64)>;

    /// What stands before the records, to be compared when a file is gone on with: names of columns. Empty where it does not
    /// matter. It is kept in checkpoints.
    fn head(_open: &Self::Open) -> &str {
        ""
    }

    /// Reads one record, which begins at `place`. Errors need not say where: the source adds it.
    fn next(&mut self, open: &mut Self::Open, input: &mut impl BufRead, place: Place<'_>) -> Result<Next<Self::Item>>;
}

/// What [`Format::next`] has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next<T> {
    /// Bytes that were read; none at the end of the file.
    pub bytes: usize,
    /// The record; `None` leaves it out.
    pub item: Option<T>,
}

impl<T> Next<T> {
    /// The file has no more.
    pub const END: Self = Self { bytes: 0, item: None };
}

/// Where in a file a source stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePosition {
    /// Bytes before the next record.
    pub bytes: u64,
    /// What stood before the records, see [`Format::head`].
    pub head: String,
}

/// What a [`Format`] says when its input cannot be read.
pub(crate) fn unreadable(cause: std::io::Error) -> Error {
    Error::unavailable("the file cannot be read").caused_by(cause)
}

/// Reads files to their end, each a split of its own. See [`crate::Lines`] and [`crate::Csv`].
///
/// The position is the number of bytes before the next record. A file that has become shorter than that, is gone, or has other
/// names of columns than before, is refused: it is not the file that was read. The timestamp of a record is its place in bytes, until the stream is told
/// another.
#[derive(Clone, Debug)]
pub struct Files<F> {
    paths: Vec<PathBuf>,
    pub(crate) format: F,
}

impl<F: Format> Files<F> {
    /// Reads `paths`, whose records are in `format`.
    pub fn in_format<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>, format: F) -> Self {
        Self { paths: paths.into_iter().map(Into::into).collect(), format }
    }
}

impl<F: Format> SourceFactory for Files<F> {
    type Source = FilesReader<F>;

    fn build(&self, _context: &WorkerContext) -> Result<FilesReader<F>> {
        let (paths, format) = (self.paths.clone(), self.format.clone());
        Ok(FilesReader { paths, format, open: BTreeMap::new(), paused: BTreeSet::new(), turn: 0 })
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.paths.iter().map(|path| path.display().to_string()).collect();
        format!("{} of {}", self.format.plural(), names.join(", "))
    }
}

/// The source behind [`Files`].
pub struct FilesReader<F: Format> {
    paths: Vec<PathBuf>,
    format: F,
    open: BTreeMap<SplitId, OpenFile<F::Open>>,
    paused: BTreeSet<SplitId>,
    turn: usize,
}

struct OpenFile<O> {
    /// The path, for errors and for whoever asks where a record came from.
    name: Arc<str>,
    reader: BufReader<File>,
    /// The format's own.
    state: O,
    /// Bytes before the next record.
    position: u64,
    ended: bool,
}

/// A head, for people.
fn named(head: &str) -> &str {
    if head.is_empty() { "none of its own" } else { head }
}

impl<O> OpenFile<O> {
    fn open<F: Format<Open = O>>(format: &F, path: PathBuf, resumed: Option<FilePosition>) -> Result<Self> {
        let position = resumed.as_ref().map_or(0, |resumed| resumed.bytes);
        let failed = |e: std::io::Error| {
            Error::invalid_plan(format!("the file {} cannot be read: check its name and its rights", path.display()))
                .caused_by(e)
        };
        let file = File::open(&path).map_err(failed)?;
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
        let mut reader = BufReader::with_capacity(BUFFER, file);
        let (state, head) = format.open(&mut reader).map_err(|e| e.context(path.display()))?;
        if let Some(resumed) = resumed.filter(|resumed| resumed.head != F::head(&state)) {
            return Err(Error::refused(format!(
                "{} has the columns {}, and had {} when it was read before: it is another file now, or its \
                 columns were named elsewhere. Put the old one back, or start the job without its checkpoint",
                path.display(),
                named(F::head(&state)),
                named(&resumed.head)
            )));
        }
        let position = position.max(head);
        reader.seek(SeekFrom::Start(position)).map_err(failed)?;
        Ok(Self { name: path.display().to_string().into(), reader, state, position, ended: false })
    }
}

fn position_of<F: Format>(file: &OpenFile<F::Open>) -> FilePosition {
    FilePosition { bytes: file.position, head: F::head(&file.state).to_owned() }
}

impl<F: Format> FilesReader<F> {
    /// The next records of one file; how many bytes they had.
    fn fill(&mut self, split: &SplitId, out: &mut Batch<F::Item>) -> Result<usize> {
        let Some(file) = self.open.get_mut(split) else { return Ok(0) };
        let mut bytes = 0;
        while out.len() < MAX_BATCH_RECORDS && bytes < MAX_BATCH_BYTES {
            let offset = file.position;
            let place = Place::File { path: &file.name, offset };
            let next = self.format.next(&mut file.state, &mut file.reader, place);
            let next = next.map_err(|e| e.context(place))?;
            file.ended = next.bytes == 0;
            if file.ended {
                break;
            }
            file.position += next.bytes as u64;
            bytes += next.bytes;
            out.extend(next.item.map(|item| Record::new(Timestamp(offset as i64), item)));
        }
        Ok(bytes)
    }
}

impl<F: Format> Source for FilesReader<F> {
    type Item = F::Item;
    type Position = FilePosition;

    fn splits(&mut self) -> Result<Vec<SplitId>> {
        let names = self.paths.iter().zip(0..).map(|(path, index)| SplitId::new(path.display().to_string(), index));
        Ok(names.collect())
    }

    fn assign(&mut self, split: &SplitId, start: StartAt<FilePosition>) -> Result<FilePosition> {
        let resumed = match start {
            StartAt::Configured | StartAt::Discovered => None,
            StartAt::Position(position) => Some(position),
        };
        let path = self.paths.get(split.index as usize).cloned();
        let path = path.ok_or_else(|| Error::internal(format!("there is no file number {}", split.index)))?;
        let file = OpenFile::open(&self.format, path, resumed)?;
        let position = position_of::<F>(&file);
        self.open.insert(split.clone(), file);
        Ok(position)
    }

    fn poll(&mut self, out: &mut Batch<F::Item>) -> Result<Polled> {
        for _ in 0..self.open.len() {
            let Some(split) = self.open.keys().nth(self.turn % self.open.len()).cloned() else { break };
            self.turn += 1;
            // Records that are left out make no batch: on with those behind them.
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

    fn position(&self, split: &SplitId) -> FilePosition {
        self.open.get(split).map(position_of::<F>).unwrap_or_default()
    }

    fn offset(&self, split: &SplitId) -> Option<u64> {
        self.open.get(split).map(|file| file.position)
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

impl<F: Format> fmt::Debug for FilesReader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let positions = self.open.iter().map(|(split, file)| (&split.name, file.position));
        f.debug_map().entries(positions).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::codec;

    #[test]
    fn the_stored_form_stays() {
        let position = FilePosition { bytes: 300, head: "id,n".into() };
        let mut bytes = Vec::new();
        codec::encode(&position, &mut bytes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(bytes, b"\xac\x02\x04id,n");
        assert_eq!(codec::decode::<FilePosition>(&bytes).ok(), Some(position));
    }
}
