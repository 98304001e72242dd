//! Checkpoints in a folder of a local file system.
//!
//! ```text
//! lock                     held (flock) by the running owner
//! owner-<epoch>            every owner that ever started; locked while it runs
//! base-<epoch>             the checkpoint this owner started from
//! <id>-<epoch>/manifest    a decided checkpoint: PREPARED
//! <id>-<epoch>/completed   … and published: COMPLETED (until then its bytes wait as completed.tmp)
//! staging-<epoch>/…        staged segments
//! state-<epoch>/…          state snapshots
//! ```
//!
//! Nothing is renamed over anything. Reading order: `durable` (how a file becomes durable), `names` and `facts` (what lies
//! in the root), `lock` (who owns it), `catalog` (what can be read), `blobs`, `root` (what an owner does), `sweep`.

mod blobs;
mod catalog;
mod durable;
mod facts;
mod lock;
mod names;
mod root;
mod sweep;

use crate::manifest::Manifest;
use crate::{AcquireOptions, CheckpointRoot, CheckpointStorage, Entry};
use catalog::Catalog;
use mailer_core::{CheckpointId, Error, OwnerEpoch, Result};
use root::FileRoot;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checkpoints in a folder. It is created when missing; it belongs to one job.
///
/// The file system must have hard links and `flock`: local ones and NFS do.
#[derive(Clone, Debug)]
pub struct FileStorage {
    path: PathBuf,
}

impl FileStorage {
    /// Checkpoints in the folder `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Looks at the checkpoints without owning the root: for tools, also while a job runs.
    pub fn list(&self) -> Result<Vec<Entry>> {
        self.catalog()?.list()
    }

    /// Reads one manifest without owning the root.
    pub fn load(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<Manifest> {
        self.catalog()?.load(id, epoch)
    }

    fn catalog(&self) -> Result<Catalog> {
        if self.path.is_dir() {
            return Ok(Catalog::new(self.path.clone()));
        }
        Err(Error::invalid_plan(format!("there is no checkpoint root at {}: check the path", self.path.display())))
    }
}

impl CheckpointStorage for FileStorage {
    fn acquire(&self, options: &AcquireOptions) -> Result<Arc<dyn CheckpointRoot>> {
        check_job(&options.job)?;
        let path = make_root(&self.path)?;
        let catalog = Catalog::new(path.clone());
        let lock = lock::lock_root(&catalog, options)?;
        lock::refuse_other_job(&catalog, &options.job)?;
        let owner = lock::next_owner(&catalog, &options.job, lock)?;
        Ok(Arc::new(FileRoot::new(catalog, options.job.clone(), owner)))
    }

    fn describe(&self) -> String {
        format!("files in {}", self.path.display())
    }
}

fn check_job(job: &str) -> Result<()> {
    if job.chars().any(char::is_control) {
        return Err(Error::invalid_plan(format!("job name {job:?} has a control character: rename the job")));
    }
    Ok(())
}

/// Creates the root where it is missing and returns its absolute path.
fn make_root(path: &Path) -> Result<PathBuf> {
    let unusable = |e: io::Error| {
        let text =
            format!("the checkpoint root {} cannot be used: give a folder this process may write to", path.display());
        Error::invalid_plan(text).caused_by(e)
    };
    std::fs::create_dir_all(path).map_err(unusable)?;
    let path = path.canonicalize().map_err(unusable)?;
    // Its own name and those of the folders above; where we may not open one, it was not made just now.
    path.ancestors().skip(1).map_while(|folder| durable::sync_folder(folder).ok()).count();
    Ok(path)
}

/// An I/O error as the engine sees it: a retry may help, the outcome may be unknown.
fn failed(what: &str, path: &Path, error: io::Error) -> Error {
    Error::unavailable(format!("cannot {what} {}", path.display())).caused_by(error)
}

/// What the injected errors return.
#[allow(dead_code, reason = "called where failpoints are compiled in")]
fn disk_full(path: &Path) -> Error {
    failed("write", path, io::Error::from(io::ErrorKind::StorageFull))
}
