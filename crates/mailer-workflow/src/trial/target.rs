//! A sink that keeps what it is given, exactly once.

use crate::Value;
use mailer_core::{
    BlobStore, Error, ExactlyOnceSink, Marker, OwnerEpoch, Publisher, RecordedTarget, Result, Segment, StagerContext,
    TargetName,
};
use mailer_runtime::testing::{MemoryStager, staged};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a sink shows; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    name: Arc<str>,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Debug, Default)]
struct Shown {
    records: Vec<Value>,
    marker: Option<Marker>,
    /// Who opened it last.
    owner: u64,
}

impl Kept {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), shown: Arc::default() }
    }

    /// The records that are visible.
    pub(super) fn shown(&self) -> Vec<Value> {
        self.lock().records.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExactlyOnceSink<Value> for Kept {
    type Stager = MemoryStager<Value>;

    fn target(&self, _job: &str) -> TargetName {
        TargetName(format!("test {}", self.name))
    }

    fn stager(&self, context: &StagerContext) -> Result<MemoryStager<Value>> {
        Ok(MemoryStager::new(context))
    }

    fn publisher(&self, _: &str, _: OwnerEpoch, _: Option<&RecordedTarget>) -> Result<Box<dyn Publisher>> {
        Ok(Box::new(KeptPublisher { kept: self.clone(), owner: 0 }))
    }

    fn describe(&self) -> String {
        "a test".into()
    }
}

struct KeptPublisher {
    kept: Kept,
    owner: u64,
}

impl Publisher for KeptPublisher {
    fn open(&mut self) -> Result<()> {
        let mut shown = self.kept.lock();
        shown.owner += 1;
        self.owner = shown.owner;
        Ok(())
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        Ok(self.kept.lock().marker.clone())
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        let records: Vec<Value> = staged(segments, blobs)?;
        let mut shown = self.kept.lock();
        if shown.owner != self.owner {
            return Err(Error::fenced("another start of the test owns this sink"));
        }
        shown.records.extend(records);
        shown.marker = Some(marker.clone());
        Ok(())
    }

    fn recorded(&self) -> RecordedTarget {
        RecordedTarget(self.kept.name.as_bytes().to_vec())
    }

    fn publish_deadline(&self) -> Duration {
        Duration::from_secs(60)
    }
}
