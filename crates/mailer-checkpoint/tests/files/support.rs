//! A root in a temporary folder, and checkpoints in it.

use mailer_checkpoint::manifest::{FORMAT_VERSION, File, Kind, Manifest, Segment};
use mailer_checkpoint::{AcquireOptions, Base, CheckpointRoot, CheckpointStorage, FileStorage};
use mailer_core::{CheckpointId, OwnerEpoch};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const JOB: &str = "order-totals";

pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    _temporary: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        Self { path: temporary.path().join("ckpt"), _temporary: temporary }
    }

    pub(crate) fn acquire(&self) -> Arc<dyn CheckpointRoot> {
        FileStorage::new(&self.path).acquire(&options(false)).unwrap()
    }

    /// An owner that has recorded where it starts from.
    pub(crate) fn start(&self, base: (u64, u64)) -> Arc<dyn CheckpointRoot> {
        let root = self.acquire();
        root.record_base(Base { id: CheckpointId(base.0), epoch: OwnerEpoch(base.1) }).unwrap();
        root
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Every file in the root.
    pub(crate) fn files(&self) -> BTreeSet<String> {
        let mut files = BTreeSet::new();
        collect(&self.path, "", &mut files);
        files
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name);
        }
    }
}

pub(crate) fn options(take_over: bool) -> AcquireOptions {
    AcquireOptions { job: JOB.into(), take_over }
}

/// A manifest with one state file and one staged segment, both written.
pub(crate) fn staged(root: &dyn CheckpointRoot, id: u64) -> Manifest {
    let (blobs, epoch) = (root.blobs(), root.epoch().0);
    let state = blobs.write(&format!("state-{epoch}/{id}"), &[b"state"]).unwrap();
    let segment = blobs.write(&format!("staging-{epoch}/out-0-{id}.segment"), &[b"segment"]).unwrap();
    Manifest {
        format_version: FORMAT_VERSION,
        job: JOB.into(),
        id,
        epoch,
        kind: Kind::Periodic as i32,
        state_files: vec![state.into()],
        segments: vec![Segment { sink: "out".into(), sequence: id, file: File::from(segment), ..Segment::default() }],
        ..Manifest::default()
    }
}

pub(crate) fn commit(root: &dyn CheckpointRoot, manifest: &Manifest) {
    root.prepare(manifest).unwrap();
    root.complete(CheckpointId(manifest.id), root.epoch()).unwrap();
}

/// What `list` shows, as text: `5-1 prepared`.
pub(crate) fn listed(root: &dyn CheckpointRoot) -> Vec<String> {
    let show = |entry: &mailer_checkpoint::Entry| match &entry.status {
        mailer_checkpoint::Status::Damaged(why) => format!("{}-{} damaged: {why}", entry.id, entry.epoch),
        status => format!("{}-{} {}", entry.id, entry.epoch, format!("{status:?}").to_lowercase()),
    };
    root.list().unwrap().iter().map(show).collect()
}
