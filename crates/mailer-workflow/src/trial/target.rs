//! A sink that keeps what it is given, exactly once.

use crate::Value;
use mailer_core::{
    Batch, BlobStore, CheckpointId, Error, ExactlyOnceSink, Marker, OwnerEpoch, Publisher, RecordedTarget, Result,
    SealJob, Segment, Stager, StagerContext, TargetName, codec,
};
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
    type Stager = KeptStager;

    fn target(&self, _job: &str) -> TargetName {
        TargetName(format!("test {}", self.name))
    }

    fn stager(&self, context: &StagerContext) -> Result<KeptStager> {
        Ok(KeptStager { context: context.clone(), staged: Vec::new(), sequence: 0 })
    }

    fn publisher(&self, _: &str, _: OwnerEpoch, _: Option<&RecordedTarget>) -> Result<Box<dyn Publisher>> {
        Ok(Box::new(KeptPublisher { kept: self.clone(), owner: 0 }))
    }

    fn describe(&self) -> String {
        "a test".into()
    }
}

/// Stages records in memory.
pub(super) struct KeptStager {
    context: StagerContext,
    staged: Vec<Value>,
    sequence: u64,
}

impl Stager<Value> for KeptStager {
    fn stage(&mut self, batch: &mut Batch<Value>) -> Result<()> {
        self.staged.extend(batch.drain(..).map(|record| record.value));
        Ok(())
    }

    fn seal(&mut self, _: CheckpointId) -> Result<SealJob> {
        let (staged, context, sequence) = (std::mem::take(&mut self.staged), self.context.clone(), self.sequence);
        if staged.is_empty() {
            return Ok(Box::new(|| Ok(Vec::new())));
        }
        self.sequence += 1;
        Ok(Box::new(move || {
            let mut bytes = Vec::new();
            codec::encode(&staged, &mut bytes)?;
            let blob = context.blobs.write(&context.segment_name(sequence), &[&bytes])?;
            let (sink, worker) = (context.worker.name, context.worker.worker);
            Ok(vec![Segment { sink, worker, sequence, records: staged.len() as u64, blob }])
        }))
    }

    fn staged_bytes(&self) -> usize {
        self.staged.len() * size_of::<Value>()
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
        let mut records = Vec::new();
        for segment in segments {
            records.extend(codec::decode::<Vec<Value>>(&blobs.read(&segment.blob)?)?);
        }
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
