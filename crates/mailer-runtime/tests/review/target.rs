//! An exactly-once target in memory, and a checkpoint storage whose newest checkpoint comes late.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mailer_checkpoint::manifest::Manifest;
use mailer_checkpoint::{AcquireOptions, Base, CheckpointRoot, CheckpointStorage, Entry};
use mailer_core::{
    BlobStore, CheckpointId, ExactlyOnceSink, Marker, OwnerEpoch, Publisher, RecordedTarget, Segment, StagerContext,
    TargetName,
};
use mailer_runtime::testing::{MemoryStager, staged};
use mailer_runtime::{Error, FileStorage, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) records: Vec<u64>,
    pub(crate) marker: Option<Marker>,
    pub(crate) is_down: bool,
    pub(crate) refused: u32,
}

/// What each name shows.
#[derive(Clone, Default)]
pub(crate) struct Target {
    name: &'static str,
    shown: Arc<Mutex<BTreeMap<String, Shown>>>,
}

impl Target {
    pub(crate) fn named(&self, name: &'static str) -> Self {
        Self { name, shown: self.shown.clone() }
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut Shown) -> R) -> R {
        look(self.shown.lock().unwrap().entry(self.name.to_owned()).or_default())
    }

    pub(crate) fn records(&self) -> Vec<u64> {
        self.with(|shown| shown.records.clone())
    }
}

struct Publishing {
    name: String,
    shown: Arc<Mutex<BTreeMap<String, Shown>>>,
}

impl ExactlyOnceSink<u64> for Target {
    type Stager = MemoryStager<u64>;

    fn target(&self, _: &str) -> TargetName {
        TargetName(format!("memory {}", self.name))
    }

    fn stager(&self, context: &StagerContext) -> Result<MemoryStager<u64>> {
        Ok(MemoryStager::new(context))
    }

    fn publisher(&self, _: &str, _: OwnerEpoch, recorded: Option<&RecordedTarget>) -> Result<Box<dyn Publisher>> {
        let name = recorded.map_or(self.name.into(), |recorded| String::from_utf8(recorded.0.clone()).unwrap());
        Ok(Box::new(Publishing { name, shown: self.shown.clone() }))
    }

    fn describe(&self) -> String {
        "memory".into()
    }
}

impl Publisher for Publishing {
    fn open(&mut self) -> Result<()> {
        Ok(())
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        Ok(self.shown.lock().unwrap().entry(self.name.clone()).or_default().marker.clone())
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        let mut all = self.shown.lock().unwrap();
        let shown = all.entry(self.name.clone()).or_default();
        if shown.is_down && !segments.is_empty() {
            shown.refused += 1;
            return Err(Error::unavailable("the target is down"));
        }
        shown.records.extend(staged::<u64>(segments, blobs)?);
        shown.marker = Some(marker.clone());
        Ok(())
    }

    fn recorded(&self) -> RecordedTarget {
        RecordedTarget(self.name.clone().into_bytes())
    }

    fn publish_deadline(&self) -> Duration {
        Duration::from_secs(60)
    }
}

/// Hides the newest checkpoint from the first look at the root: its owner decided and published it just after.
pub(crate) struct HidesOnce(pub(crate) FileStorage);

struct HidingRoot {
    inner: Arc<dyn CheckpointRoot>,
    has_hidden: AtomicBool,
}

impl CheckpointStorage for HidesOnce {
    fn acquire(&self, options: &AcquireOptions) -> Result<Arc<dyn CheckpointRoot>> {
        Ok(Arc::new(HidingRoot { inner: self.0.acquire(options)?, has_hidden: AtomicBool::new(false) }))
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

impl CheckpointRoot for HidingRoot {
    fn epoch(&self) -> OwnerEpoch {
        self.inner.epoch()
    }

    fn check_owner(&self) -> Result<()> {
        self.inner.check_owner()
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.inner.blobs()
    }

    fn list(&self) -> Result<Vec<Entry>> {
        let mut entries = self.inner.list()?;
        if !self.has_hidden.swap(true, SeqCst) {
            entries.pop();
        }
        Ok(entries)
    }

    fn load(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<Manifest> {
        self.inner.load(id, epoch)
    }

    fn record_base(&self, base: Base) -> Result<()> {
        self.inner.record_base(base)
    }

    fn prepare(&self, manifest: &Manifest) -> Result<()> {
        self.inner.prepare(manifest)
    }

    fn sync_prepared(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<()> {
        self.inner.sync_prepared(id, epoch)
    }

    fn complete(&self, id: CheckpointId, epoch: OwnerEpoch) -> Result<()> {
        self.inner.complete(id, epoch)
    }

    fn prune(&self, keep_completed: usize) -> Result<Vec<String>> {
        self.inner.prune(keep_completed)
    }
}
