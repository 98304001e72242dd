//! A folder for the checkpoints of one test, gone with it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static NEXT: AtomicU64 = AtomicU64::new(0);

pub(super) struct Folder(PathBuf);

impl Folder {
    /// A name that nobody else uses; the folder is made by who writes into it.
    pub(super) fn new() -> Self {
        let name = format!("mailer-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        Self(std::env::temp_dir().join(name))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _was_never_made = std::fs::remove_dir_all(&self.0);
    }
}
