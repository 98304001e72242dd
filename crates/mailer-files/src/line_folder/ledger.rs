//! The memory of an output folder: a list of numbered entries, each a file that can be created once.
//!
//! The newest entry says what was published, which staged files have to get their names, and who owns the folder. Whoever
//! writes the entry behind it owns the folder from then on; a former owner finds its next number taken. There is no lock to
//! wait for: a process that sleeps for a day and wakes up is fenced like any other.

use super::disk::{self, failed};
use mailer_core::{CheckpointId, Error, Marker, Nonce, OwnerEpoch, PublishedId, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;
const PREFIX: &str = "marker-";
const UNFINISHED: &str = "entry-";
/// Entries in which an owner took the folder stay, so that its predecessor's next number stays taken. Nobody sleeps through
/// so many starts.
const OWNERS: usize = 1_000;
/// More than anybody tries to take one folder at once.
const ATTEMPTS: usize = 1_000;

/// The name of an entry until it has its number.
fn temporary(owner: OwnerEpoch) -> String {
    format!("{UNFINISHED}{owner}-{}.tmp", std::process::id())
}

/// A staged file, and the name it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rename {
    pub(super) staged: String,
    pub(super) name: String,
}

/// What an entry says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) owner: OwnerEpoch,
    /// Written by a start of a job, before it has published anything.
    pub(super) takes_over: bool,
    pub(super) marker: Option<Marker>,
    pub(super) files: Vec<Rename>,
}

/// The form on disk: JSON, to be read by people too.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    owner_epoch: u64,
    takes_over: bool,
    marker: Option<StoredMarker>,
    files: Vec<Rename>,
}

#[derive(Serialize, Deserialize)]
struct StoredMarker {
    job: String,
    checkpoint: u64,
    /// Sixteen hex digits.
    nonce: String,
    owner_epoch: u64,
}

impl Entry {
    fn encode(&self) -> Result<Vec<u8>> {
        let marker = self.marker.as_ref().map(|marker| StoredMarker {
            job: marker.job.clone(),
            checkpoint: marker.published.checkpoint.0,
            nonce: format!("{:016x}", marker.published.nonce.0),
            owner_epoch: marker.epoch.0,
        });
        let Self { owner, takes_over, files, .. } = self.clone();
        let stored = Stored { version: VERSION, owner_epoch: owner.0, takes_over, marker, files };
        serde_json::to_vec(&stored).map_err(|e| Error::internal("a marker does not encode").caused_by(e))
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let stored: Stored = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if stored.version != VERSION {
            return Err(format!("it has version {}, and this release reads {VERSION}", stored.version));
        }
        let marker = stored.marker.map(|marker| {
            let nonce = u64::from_str_radix(&marker.nonce, 16).map_err(|e| e.to_string())?;
            let published = PublishedId { checkpoint: CheckpointId(marker.checkpoint), nonce: Nonce(nonce) };
            Ok::<_, String>(Marker { job: marker.job, published, epoch: OwnerEpoch(marker.owner_epoch) })
        });
        let owner = OwnerEpoch(stored.owner_epoch);
        Ok(Self { owner, takes_over: stored.takes_over, marker: marker.transpose()?, files: stored.files })
    }
}

/// The entries of one output folder.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    folder: PathBuf,
}

impl Ledger {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where entries and staged files are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The newest entry and its number; 0 and an empty one where there is none.
    pub(super) fn newest(&self) -> Result<(u64, Entry)> {
        for _ in 0..ATTEMPTS {
            let Some(number) = self.numbers()?.into_iter().max() else { return Ok((0, Entry::default())) };
            // Deleted meanwhile: then there is a newer one.
            if let Some(entry) = self.read(number)? {
                return Ok((number, entry));
            }
        }
        Err(Error::unavailable(format!("{} changes all the time: who else writes there?", self.folder.display())))
    }

    /// Takes the folder: writes an entry behind the newest one, which `allowed` has seen.
    pub(super) fn take(&self, owner: OwnerEpoch, allowed: impl Fn(&Entry) -> Result<()>) -> Result<(u64, Entry)> {
        for _ in 0..ATTEMPTS {
            let (number, newest) = self.newest()?;
            allowed(&newest)?;
            let entry = Entry { owner, takes_over: true, ..newest };
            if self.append(number + 1, &entry)? {
                return Ok((number + 1, entry));
            }
        }
        Err(Error::unavailable(format!("{} is taken all the time: who else writes there?", self.folder.display())))
    }

    /// Writes entry `number`, durable on return; `false` when it is there already.
    pub(super) fn append(&self, number: u64, entry: &Entry) -> Result<bool> {
        let temporary = self.folder.join(temporary(entry.owner));
        let mut file = disk::create_file(&temporary)?;
        let written = file.write_all(&entry.encode()?).and_then(|()| file.sync_all());
        written.map_err(|e| failed("write", &temporary, e))?;
        let is_new = disk::claim_name(&temporary, &self.path(number))?;
        disk::sync_folder(&self.folder)?;
        Ok(is_new)
    }

    /// Deletes what nobody needs any more of the entries below `number`.
    pub(super) fn prune(&self, number: u64) -> Result<()> {
        let mut owners = Vec::new();
        for old in self.numbers()?.into_iter().filter(|old| *old < number) {
            match self.read(old)? {
                Some(entry) if entry.takes_over => owners.push(old),
                _ => disk::remove_if_there(&self.path(old))?,
            }
        }
        owners.sort_unstable();
        let surplus = owners.len().saturating_sub(OWNERS);
        owners.drain(..surplus).try_for_each(|old| disk::remove_if_there(&self.path(old)))
    }

    /// Deletes entries that nobody has finished: of former owners, and of a former process of this one.
    pub(super) fn sweep(&self, owner: OwnerEpoch) -> Result<()> {
        let of_former = |name: &&String| {
            let epoch = name.strip_prefix(UNFINISHED).and_then(|rest| rest.split('-').next()?.parse::<u64>().ok());
            epoch.is_some_and(|epoch| epoch <= owner.0) && **name != temporary(owner)
        };
        let names = disk::names(&self.folder)?;
        names.iter().filter(of_former).try_for_each(|name| disk::remove_if_there(&self.folder.join(name)))
    }

    /// Deletes one entry that its successor has replaced.
    pub(super) fn forget(&self, number: u64) -> Result<()> {
        disk::remove_if_there(&self.path(number))
    }

    fn numbers(&self) -> Result<Vec<u64>> {
        let names = disk::names(&self.folder)?;
        Ok(names.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{PREFIX}{number:012}"))
    }

    fn read(&self, number: u64) -> Result<Option<Entry>> {
        let path = self.path(number);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("read", &path, e)),
        };
        Entry::decode(&bytes).map(Some).map_err(|why| {
            Error::refused(format!(
                "{} cannot be read ({why}), so it is not known what was published; restore it, or start a new lineage in \
                 another folder",
                path.display()
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(owner: u64) -> Entry {
        let published = PublishedId { checkpoint: CheckpointId(7), nonce: Nonce(0xab) };
        let marker = Marker { job: "j".into(), published, epoch: OwnerEpoch(owner) };
        let files = vec![Rename { staged: "s".into(), name: "n".into() }];
        Entry { owner: OwnerEpoch(owner), takes_over: false, marker: Some(marker), files }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written_and_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(folder.path().to_owned());
        assert_eq!(ledger.newest().unwrap(), (0, Entry::default()));
        assert!(ledger.append(1, &entry(1)).unwrap());
        assert!(!ledger.append(1, &entry(2)).unwrap(), "the number is taken");
        assert_eq!(ledger.newest().unwrap(), (1, entry(1)));
    }

    #[test]
    fn entries_of_owners_stay_and_others_go() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(folder.path().to_owned());
        ledger.take(OwnerEpoch(1), |_| Ok(())).unwrap();
        ledger.append(2, &entry(1)).unwrap();
        ledger.append(3, &entry(1)).unwrap();
        let (number, taken) = ledger.take(OwnerEpoch(2), |_| Ok(())).unwrap();
        assert_eq!((number, taken.files, taken.takes_over), (4, entry(1).files, true));
        ledger.prune(number).unwrap();
        let mut left = ledger.numbers().unwrap();
        left.sort_unstable();
        assert_eq!(left, [1, 4]);
    }

    #[test]
    fn what_a_dead_process_left_half_written_goes_and_a_later_owner_s_stays() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(folder.path().to_owned());
        for name in ["entry-1-77.tmp", "entry-2-77.tmp", "entry-3-77.tmp"] {
            fs::write(folder.path().join(name), b"{").unwrap();
        }
        ledger.sweep(OwnerEpoch(2)).unwrap();
        assert_eq!(disk::names(folder.path()).unwrap(), ["entry-3-77.tmp"]);
        // Tidied away before it has its number: then the number is somebody else's to give.
        assert!(!disk::claim_name(&folder.path().join("entry-1-77.tmp"), &folder.path().join("marker-1")).unwrap());
    }

    #[test]
    fn a_damaged_entry_is_refused_and_never_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(folder.path().to_owned());
        ledger.append(1, &entry(1)).unwrap();
        fs::write(ledger.path(2), b"{").unwrap();
        let error = ledger.newest().unwrap_err();
        assert!(error.message().contains("marker-000000000002 cannot be read"), "{error}");
    }
}
