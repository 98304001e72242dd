//! Owns an output folder: takes it, tells what was published last, publishes.
//!
//! A publish writes the files of a checkpoint under staged names, then the entry that names them (that is the decision),
//! then gives them their names. A crash in between is finished by whoever takes the folder next: a staged file that is
//! there has to get its name, one that is gone has it.

use super::disk::{self, failed};
use super::ledger::{Entry, Ledger, Rename};
use super::segment::{self, Shape};
use mailer_core::{
    BlobStore, Error, Marker, OwnerEpoch, PublishedId, Publisher, RecordedTarget, Result, Segment, codec,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The memory of an output folder, in it.
const MEMORY: &str = "_mailer";
const STAGED: &str = "staged-";
/// A disk takes what memory holds in less.
const DEADLINE: Duration = Duration::from_secs(300);
const VERSION: u8 = 1;

/// A target as manifests remember it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recorded {
    folder: PathBuf,
}

impl Recorded {
    /// The folder, wherever the process that opens it next is started.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let folder = std::path::absolute(folder)
            .map_err(|e| Error::invalid_plan(format!("{} is no folder", folder.display())).caused_by(e))?;
        Ok(Self { folder })
    }

    pub(super) fn decode(recorded: &RecordedTarget) -> Result<Self> {
        let name = "the output folder recorded in the checkpoint";
        match recorded.0.split_first() {
            Some((&VERSION, bytes)) => codec::decode(bytes).map_err(|error| error.context(name)),
            Some((version, _)) => {
                Err(Error::corrupt(format!("{name} has version {version}; this release reads {VERSION}")))
            }
            None => Err(Error::corrupt(format!("{name} is empty"))),
        }
    }

    fn encode(&self) -> RecordedTarget {
        let mut bytes = vec![VERSION];
        // A path always encodes here: it came as text. A failure would only make the record shorter, and `decode` refuse it.
        let _ = codec::encode(self, &mut bytes);
        RecordedTarget(bytes)
    }
}

/// Publishes for all sinks of a job with one folder.
#[derive(Debug)]
pub(super) struct FolderPublisher {
    recorded: Recorded,
    /// The folder is this job's already: a higher owner in it is its own successor.
    known: bool,
    epoch: OwnerEpoch,
    ledger: Ledger,
    claimed: Option<Claimed>,
}

/// A folder that is ours, as long as nobody writes the entry behind the newest.
#[derive(Clone, Debug)]
struct Claimed {
    /// The number of the entry with which it was taken: staged files carry it.
    taken: u64,
    newest: u64,
    entry: Entry,
}

impl FolderPublisher {
    pub(super) fn new(recorded: Recorded, known: bool, epoch: OwnerEpoch) -> Self {
        let ledger = Ledger::new(recorded.folder.join(MEMORY));
        Self { recorded, known, epoch, ledger, claimed: None }
    }

    fn allowed(&self, newest: &Entry) -> Result<()> {
        if self.known && newest.owner > self.epoch {
            return Err(self.fenced(newest));
        }
        Ok(())
    }

    fn fenced(&self, newest: &Entry) -> Error {
        let job = newest.marker.as_ref().map(|marker| format!(" of job \"{}\"", marker.job)).unwrap_or_default();
        Error::fenced(format!(
            "the folder {} belongs to owner {}{job} now; this is owner {}",
            self.recorded.folder.display(),
            newest.owner,
            self.epoch
        ))
    }

    /// Gives staged files of a decided checkpoint their names.
    fn finish(&self, files: &[Rename]) -> Result<()> {
        for (place, Rename { staged, name }) in files.iter().enumerate() {
            disk::rename(&self.ledger.folder().join(staged), &self.recorded.folder.join(name))?;
            if place == 0 {
                fail::fail_point!("files-first-renamed");
            }
        }
        if !files.is_empty() {
            disk::sync_folder(&self.recorded.folder)?;
            disk::sync_folder(self.ledger.folder())?;
        }
        Ok(())
    }

    /// Deletes what former owners have staged and not decided. Those of a later owner carry a higher number.
    fn sweep(&self, claimed: &Claimed) -> Result<()> {
        let of_former = |name: &str| {
            let number = name.strip_prefix(STAGED).and_then(|rest| rest.split('-').next()?.parse::<u64>().ok());
            number.is_some_and(|number| number < claimed.taken)
        };
        let names = disk::names(self.ledger.folder())?;
        names
            .iter()
            .filter(|name| of_former(name))
            .try_for_each(|name| disk::remove_if_there(&self.ledger.folder().join(name)))
    }

    /// Writes the files of a checkpoint under staged names, one for each shape, durable on return.
    fn stage(&self, taken: u64, id: PublishedId, segments: &[Segment], blobs: &dyn BlobStore) -> Result<Vec<Rename>> {
        let mut open: BTreeMap<Shape, (Rename, PathBuf, File)> = BTreeMap::new();
        for segment in segments {
            // One segment in memory at a time.
            let bytes = blobs.read(&segment.blob)?;
            let (shape, lines) = segment::open(&bytes).map_err(|error| error.context(&segment.blob.name))?;
            if !open.contains_key(&shape) {
                let alike = open.keys().filter(|other| shape.is_named_like(other)).count();
                let rename = Rename {
                    staged: format!("{STAGED}{taken:012}-{}-{}", id.checkpoint, open.len()),
                    name: file_name(&shape, id, alike),
                };
                let path = self.ledger.folder().join(&rename.staged);
                let mut file = disk::create_file(&path)?;
                if !shape.first_line.is_empty() {
                    write(&mut file, &path, &[&shape.first_line[..], b"\n"].concat())?;
                }
                open.insert(shape.clone(), (rename, path, file));
            }
            if let Some((_, path, file)) = open.get_mut(&shape) {
                write(file, path, lines)?;
            }
            fail::fail_point!("files-mid-stage");
        }
        for (_, path, file) in open.values() {
            file.sync_all().map_err(|e| failed("fsync", path, e))?;
        }
        Ok(open.into_values().map(|(rename, ..)| rename).collect())
    }

    /// Writes the next entry: the decision. The folder may be somebody else's by now.
    fn decide(&self, claimed: Claimed, entry: Entry) -> Result<Claimed> {
        if !self.ledger.append(claimed.newest + 1, &entry)? {
            let (_, newest) = self.ledger.newest()?;
            return Err(match newest.owner > self.epoch {
                true => self.fenced(&newest),
                false => Error::unavailable(format!(
                    "somebody else has written to {} meanwhile: owner {}",
                    self.recorded.folder.display(),
                    newest.owner
                )),
            });
        }
        Ok(Claimed { newest: claimed.newest + 1, entry, ..claimed })
    }
}

/// Sorted by name, files are in the order of checkpoints. Two lineages of a job never take one name.
fn file_name(shape: &Shape, id: PublishedId, alike: usize) -> String {
    let more = if alike == 0 { String::new() } else { format!("-{alike}") };
    format!("{}-{:012}-{:016x}{more}.{}", shape.prefix, id.checkpoint.0, id.nonce.0, shape.extension)
}

fn write(file: &mut File, path: &Path, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes).map_err(|e| failed("write", path, e))
}

impl Publisher for FolderPublisher {
    fn open(&mut self) -> Result<()> {
        self.claimed = None;
        disk::create_folder(&self.recorded.folder)?;
        disk::create_folder(self.ledger.folder())?;
        let (number, entry) = self.ledger.take(self.epoch, |newest| self.allowed(newest))?;
        self.known = true;
        fail::fail_point!("files-taken");
        self.finish(&entry.files)?;
        let claimed = Claimed { taken: number, newest: number, entry };
        self.sweep(&claimed)?;
        self.ledger.sweep(self.epoch)?;
        self.ledger.prune(number)?;
        self.claimed = Some(claimed);
        Ok(())
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        let claimed = self.claimed.as_ref().ok_or_else(not_open)?;
        Ok(claimed.entry.marker.clone())
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        let claimed = self.claimed.take().ok_or_else(not_open)?;
        let before = claimed.clone();
        // What is visible already does not become visible again.
        let is_visible = before.entry.marker.as_ref().is_some_and(|last| last.published == marker.published);
        let files = match is_visible {
            true => Vec::new(),
            false => self.stage(claimed.taken, marker.published, segments, blobs)?,
        };
        fail::fail_point!("files-staged");
        let entry = Entry { owner: self.epoch, takes_over: false, marker: Some(marker.clone()), files };
        let claimed = self.decide(claimed, entry)?;
        fail::fail_point!("files-decided");
        self.finish(&claimed.entry.files)?;
        fail::fail_point!("files-published");
        if !before.entry.takes_over {
            self.ledger.forget(before.newest)?;
        }
        self.claimed = Some(claimed);
        Ok(())
    }

    fn recorded(&self) -> RecordedTarget {
        self.recorded.encode()
    }

    fn publish_deadline(&self) -> Duration {
        DEADLINE
    }
}

fn not_open() -> Error {
    Error::internal("an output folder was used before it was opened")
}
