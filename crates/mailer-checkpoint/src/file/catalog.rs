//! What can be read from a root, by its owner or by anybody else while the owner works.

use super::names::{self, COMPLETED, MANIFEST, Name};
use super::{facts, failed};
use crate::manifest::{File, Kind, Manifest};
use crate::{Base, Entry, Status, decode_manifest, void};
use mailer_core::{CheckpointId, Error, OwnerEpoch, Result};
use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// A root, read only.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    root: PathBuf,
}

impl Catalog {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a `/`-separated name.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The folder of a checkpoint.
    pub(crate) fn folder(&self, id: CheckpointId, epoch: OwnerEpoch) -> PathBuf {
        self.path(&names::checkpoint(id, epoch))
    }

    /// All names in the root that are ours, in order.
    pub(crate) fn names(&self) -> Result<Vec<Name>> {
        let mut names: Vec<_> = self.texts()?.iter().filter_map(|name| Name::parse(name)).collect();
        names.sort_by_key(|name| match *name {
            Name::Checkpoint(id, epoch) => (id, epoch),
            other => (CheckpointId(0), other.epoch()),
        });
        Ok(names)
    }

    fn texts(&self) -> Result<Vec<String>> {
        let entries = read_folder(&self.root)?;
        Ok(entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// Every recorded base with its owner.
    pub(crate) fn bases(&self) -> Result<Vec<(OwnerEpoch, Base)>> {
        let owner = |name| if let Name::Base(owner) = name { Some(owner) } else { None };
        self.names()?.into_iter().filter_map(owner).map(|owner| Ok((owner, self.base(owner)?))).collect()
    }

    fn base(&self, owner: OwnerEpoch) -> Result<Base> {
        let path = self.path(&names::base(owner));
        let bytes = fs::read(&path).map_err(|e| failed("read", &path, e))?;
        let base = std::str::from_utf8(&bytes).ok().and_then(facts::parse_base);
        base.ok_or_else(|| Error::corrupt(format!("{}: damaged; it says which checkpoints are void", path.display())))
    }

    /// See [`crate::CheckpointRoot::list`].
    pub(crate) fn list(&self) -> Result<Vec<Entry>> {
        let bases = self.bases()?;
        let mut entries = Vec::new();
        for (id, epoch) in self.folders()? {
            if !void::is_void(id, epoch, &bases) {
                entries.extend(self.entry(id, epoch)?);
            }
        }
        Ok(entries)
    }

    /// Every checkpoint folder in order, with or without a manifest.
    pub(crate) fn folders(&self) -> Result<Vec<(CheckpointId, OwnerEpoch)>> {
        let folder = |name| if let Name::Checkpoint(id, epoch) = name { Some((id, epoch)) } else { None };
        Ok(self.names()?.into_iter().filter_map(folder).collect())
    }

    fn entry(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<Option<Entry>> {
        let completed = self.is_completed(id, epoch);
        let Some(manifest) = self.manifest(id, epoch)? else { return Ok(None) };
        let savepoint = manifest.as_ref().is_ok_and(|manifest| manifest.kind() == Kind::Savepoint);
        let checked = manifest.and_then(|manifest| self.verify(&manifest, completed));
        let status = match checked {
            Ok(()) if completed => Status::Completed,
            Ok(()) => Status::Prepared,
            // Not damage if its owner has completed or deleted it just now.
            Err(_) if completed != self.is_completed(id, epoch) => return self.entry(id, epoch),
            Err(_) if !self.folder(id, epoch).join(MANIFEST).exists() => return Ok(None),
            Err(e) => Status::Damaged(e.message().into()),
        };
        Ok(Some(Entry { id, epoch, status, savepoint }))
    }

    /// See [`crate::CheckpointRoot::load`].
    pub(crate) fn load(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<Manifest> {
        let completed = self.is_completed(id, epoch);
        let Some(manifest) = self.manifest(id, epoch)? else {
            let root = self.root.display();
            return Err(Error::refused(format!("there is no checkpoint {id} of owner {epoch} in {root}: list them")));
        };
        let manifest = manifest?;
        self.verify(&manifest, completed)?;
        Ok(manifest)
    }

    pub(crate) fn is_completed(&self, id: CheckpointId, epoch: OwnerEpoch) -> bool {
        self.folder(id, epoch).join(COMPLETED).exists()
    }

    /// A manifest without a look at its files: `None` when there is none, `Err` inside when it is not usable.
    pub(crate) fn manifest(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<Option<Result<Manifest>>> {
        let path = self.folder(id, epoch).join(MANIFEST);
        let bytes = match fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|e| failed("read", &path, e))?,
        };
        let manifest = decode_manifest(&bytes).and_then(|manifest| check_place(manifest, id, epoch));
        Ok(Some(manifest.map_err(|e| e.context(path.display()))))
    }

    /// Every file the manifest still needs is there with its length.
    pub(crate) fn verify(&self, manifest: &Manifest, completed: bool) -> Result<()> {
        manifest.needed_files(completed).try_for_each(|file| {
            self.verify_file(file)
                .map_err(|e| e.context(format!("checkpoint {} of owner {}", manifest.id, manifest.epoch)))
        })
    }

    fn verify_file(&self, file: &File) -> Result<()> {
        let path = self.path(&file.name);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() && found.len() == file.length => Ok(()),
            Ok(found) => {
                let text = format!("{} has {} bytes, the manifest says {}", path.display(), found.len(), file.length);
                Err(Error::corrupt(text))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(Error::corrupt(format!("{} is missing", path.display())))
            }
            Err(e) => Err(failed("look at", &path, e)),
        }
    }

    /// Every blob with its length, and its owner.
    pub(crate) fn blobs(&self) -> Result<BTreeMap<String, (OwnerEpoch, u64)>> {
        let mut found = BTreeMap::new();
        for name in self.texts()? {
            if let Some(Name::Blobs(epoch)) = Name::parse(&name) {
                collect_files(&self.path(&name), &name, &mut |name, length| {
                    found.insert(name, (epoch, length));
                })?;
            }
        }
        Ok(found)
    }
}

fn check_place(manifest: Manifest, id: CheckpointId, epoch: OwnerEpoch) -> Result<Manifest> {
    if (manifest.id, manifest.epoch) == (id.0, epoch.0) {
        return Ok(manifest);
    }
    let text = format!("this is the manifest of checkpoint {} of owner {}: was it moved?", manifest.id, manifest.epoch);
    Err(Error::corrupt(text))
}

/// Visits every file under `folder` with its name relative to the root and its length.
fn collect_files(folder: &Path, name: &str, visit: &mut dyn FnMut(String, u64)) -> Result<()> {
    for entry in read_folder(folder)? {
        let (path, name) = (entry.path(), format!("{name}/{}", entry.file_name().to_string_lossy()));
        match entry.metadata() {
            Ok(found) if found.is_dir() => collect_files(&path, &name, visit)?,
            Ok(found) => visit(name, found.len()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {} // a temporary name that just got its own
            Err(e) => return Err(failed("look at", &path, e)),
        }
    }
    Ok(())
}

fn read_folder(path: &Path) -> Result<Vec<DirEntry>> {
    fs::read_dir(path).and_then(Iterator::collect).map_err(|e| failed("read the folder", path, e))
}
