//! Looks at a root for retention, and deletes what it decided: manifests before the files they name, void manifests before
//! the bases that make them void. A crash at any step leaves a list that tells the truth.

use super::catalog::Catalog;
use super::lock;
use super::names::{self, MANIFEST, Name};
use super::{durable, failed};
use crate::retention::{self, Checkpoint, Deletions, Found, View};
use crate::void;
use mailer_core::{CheckpointId, OwnerEpoch, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// See [`crate::CheckpointRoot::prune`].
pub(crate) fn prune(catalog: &Catalog, own: OwnerEpoch, keep_completed: usize) -> Result<Vec<String>> {
    let deletions = retention::decide(&look(catalog, own)?, keep_completed);
    let mut sweep = Sweep { catalog, deleted: Vec::new() };
    sweep.delete(&deletions, own)?;
    Ok(sweep.deleted)
}

fn look(catalog: &Catalog, own: OwnerEpoch) -> Result<View> {
    let bases = catalog.bases()?;
    let mut checkpoints = Vec::new();
    for (id, epoch) in catalog.folders()? {
        let manifest = match catalog.manifest(id, epoch)? {
            None => Found::Nothing,
            Some(Err(_)) => Found::Unreadable,
            Some(Ok(manifest)) => Found::Manifest(Box::new(manifest)),
        };
        let (void, completed) = (void::is_void(id, epoch, &bases), catalog.is_completed(id, epoch));
        checkpoints.push(Checkpoint { id, epoch, void, completed, manifest });
    }
    let owners = lock::owners(catalog)?.into_iter();
    let owners = owners.map(|owner| Ok((owner, lock::is_alive(catalog, owner)?))).collect::<Result<_>>()?;
    let bases = bases.into_iter().map(|(owner, _)| owner).collect();
    Ok(View { own, checkpoints, blobs: catalog.blobs()?, owners, bases })
}

struct Sweep<'a> {
    catalog: &'a Catalog,
    deleted: Vec<String>,
}

impl Sweep<'_> {
    fn delete(&mut self, deletions: &Deletions, own: OwnerEpoch) -> Result<()> {
        for (id, epoch) in &deletions.manifests {
            self.manifest(*id, *epoch)?;
        }
        for name in &deletions.segments {
            fail::fail_point!("segment-delete");
            self.file(name)?;
        }
        for name in &deletions.blobs {
            self.file(name)?;
        }
        for (id, epoch) in &deletions.folders {
            self.folder(&names::checkpoint(*id, *epoch))?;
        }
        deletions.bases.iter().try_for_each(|owner| self.file(&names::base(*owner)))?;
        deletions.owners.iter().try_for_each(|owner| self.file(&names::owner(*owner)))?;
        self.leftovers(own)?;
        if self.deleted.is_empty() { Ok(()) } else { durable::sync_folder(self.catalog.root()) }
    }

    /// From here on the checkpoint does not exist; its files go afterwards.
    fn manifest(&mut self, id: CheckpointId, epoch: OwnerEpoch) -> Result<()> {
        fail::fail_point!("retention");
        let folder = self.catalog.folder(id, epoch);
        self.file(&format!("{}/{MANIFEST}", names::checkpoint(id, epoch)))?;
        durable::sync_folder(&folder)
    }

    fn file(&mut self, name: &str) -> Result<()> {
        fail::fail_point!("retention");
        durable::remove_if_there(&self.catalog.path(name))?;
        self.deleted.push(name.into());
        Ok(())
    }

    /// A checkpoint folder without a manifest.
    fn folder(&mut self, name: &str) -> Result<()> {
        let path = self.catalog.path(name);
        match fs::remove_dir_all(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(failed("delete the folder", &path, e)),
            _ => self.deleted.push(name.into()),
        }
        Ok(())
    }

    /// Empty blob folders and temporary files of older owners.
    fn leftovers(&mut self, own: OwnerEpoch) -> Result<()> {
        for entry in fs::read_dir(self.catalog.root()).map_err(|e| failed("read the folder", self.catalog.root(), e))? {
            let entry = entry.map_err(|e| failed("read the folder", self.catalog.root(), e))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            match Name::parse(&name) {
                Some(Name::Blobs(owner)) if owner < own => remove_empty_folders(&entry.path()),
                Some(Name::Temporary(owner)) if owner < own => self.file(&name)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Removes what is empty; a folder that holds something refuses by itself.
fn remove_empty_folders(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_empty_folders(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}
