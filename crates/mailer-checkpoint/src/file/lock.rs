//! Who owns a root. Two locks tell: `lock`, and each owner's own `owner-<epoch>` file. The second one is what remains of
//! an owner that took over while somebody else held the first, and says of every former owner whether it still lives.

use super::catalog::Catalog;
use super::facts::Owner;
use super::names::{self, Name};
use super::{durable, failed};
use crate::AcquireOptions;
use mailer_core::{Error, OwnerEpoch, Result};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

/// An owner's epoch and its locks; dropping it releases them.
#[derive(Debug)]
pub(crate) struct Owned {
    pub(crate) epoch: OwnerEpoch,
    lock: Option<File>,
    owner: File,
}

impl Drop for Owned {
    /// Closing would do, but not at once while the host process is just starting a child, which has our files until it
    /// runs its own program. Errors do not matter: the files are closed next.
    fn drop(&mut self) {
        let _ = self.owner.unlock();
        let _ = self.lock.as_ref().map(File::unlock);
    }
}

/// Takes the lock of the root. `None`: another process holds it and `take_over` goes on nevertheless.
pub(crate) fn lock_root(catalog: &Catalog, options: &AcquireOptions) -> Result<Option<File>> {
    let path = catalog.path(names::LOCK);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = file.map_err(|e| unusable(&path, e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) if options.take_over => return Ok(None),
        Err(TryLockError::WouldBlock) => return Err(in_use(catalog, options, read_owner(&mut file))),
        Err(TryLockError::Error(e)) => return Err(unusable(&path, e)),
    }
    if !options.take_over {
        refuse_living_owner(catalog, options)?;
    }
    file.set_len(0).map_err(|e| failed("write", &path, e))?; // until we know our epoch, better nobody than a former owner
    Ok(Some(file))
}

/// An owner that took over may live although the lock is free: the process it took over from has ended since.
fn refuse_living_owner(catalog: &Catalog, options: &AcquireOptions) -> Result<()> {
    for epoch in owners(catalog)?.into_iter().rev() {
        if is_alive(catalog, epoch)? {
            return Err(in_use(catalog, options, owner(catalog, epoch)));
        }
    }
    Ok(())
}

/// Whether the owner `epoch` still runs, or may: its process holds the lock of its file.
pub(crate) fn is_alive(catalog: &Catalog, epoch: OwnerEpoch) -> Result<bool> {
    let path = catalog.path(&names::owner(epoch));
    let file = match File::open(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        file => file.map_err(|e| failed("open", &path, e))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(e)) => Err(failed("lock", &path, e)),
    }
}

/// A root belongs to the job that first owned it.
pub(crate) fn refuse_other_job(catalog: &Catalog, job: &str) -> Result<()> {
    let known = owners(catalog)?.into_iter().rev().find_map(|epoch| owner(catalog, epoch));
    match known {
        Some(owner) if owner.job != job => Err(Error::refused(format!(
            "the checkpoint root {} belongs to job {:?} and this is job {job:?}: give each job a root of its own",
            catalog.root().display(),
            owner.job
        ))),
        _ => Ok(()),
    }
}

/// Becomes the next owner: creates `owner-<epoch>` exclusively and durably, and holds its lock.
pub(crate) fn next_owner(catalog: &Catalog, job: &str, lock: Option<File>) -> Result<Owned> {
    loop {
        let epoch = OwnerEpoch(newest_epoch(catalog)?.0 + 1);
        let path = catalog.path(&names::owner(epoch));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return enrol(catalog, Owner::this_process(job, epoch), lock, file),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {} // somebody else was faster: the next one
            Err(e) => return Err(unusable(&path, e)),
        }
    }
}

fn enrol(catalog: &Catalog, owner: Owner, mut lock: Option<File>, mut file: File) -> Result<Owned> {
    let path = catalog.path(&names::owner(owner.epoch));
    let text = owner.render();
    file.lock().and_then(|()| file.write_all(text.as_bytes())).map_err(|e| failed("write", &path, e))?;
    durable::sync_file(&file, &path)?;
    durable::sync_folder(catalog.root())?;
    if let Some(lock) = &mut lock {
        let _ = lock.write_all(text.as_bytes()); // for messages only: a full disk must not stop who comes to free it
    }
    Ok(Owned { epoch: owner.epoch, lock, owner: file })
}

/// The newest epoch that any name in the root carries.
pub(crate) fn newest_epoch(catalog: &Catalog) -> Result<OwnerEpoch> {
    Ok(catalog.names()?.into_iter().map(Name::epoch).max().unwrap_or_default())
}

/// The owners whose files are there, oldest first.
pub(crate) fn owners(catalog: &Catalog) -> Result<Vec<OwnerEpoch>> {
    let owner = |name| if let Name::Owner(epoch) = name { Some(epoch) } else { None };
    Ok(catalog.names()?.into_iter().filter_map(owner).collect())
}

/// What an owner wrote about itself; `None` when it crashed while it did.
pub(crate) fn owner(catalog: &Catalog, epoch: OwnerEpoch) -> Option<Owner> {
    read_owner(&mut File::open(catalog.path(&names::owner(epoch))).ok()?)
}

fn read_owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Owner::parse(&text)
}

fn in_use(catalog: &Catalog, options: &AcquireOptions, owner: Option<Owner>) -> Error {
    let owner = owner.map_or("a process that is just starting".into(), |owner| owner.to_string());
    Error::refused(format!(
        "the checkpoint root {} cannot be opened for job {:?}: it is in use by {owner}. Stop that one first; if it is stopped \
         or unreachable, `take_over` goes on without it and fences it",
        catalog.root().display(),
        options.job
    ))
}

fn unusable(path: &Path, error: io::Error) -> Error {
    let text = format!("cannot open or lock {}: the checkpoint root must be a writable folder", path.display());
    Error::invalid_plan(text).caused_by(error)
}
