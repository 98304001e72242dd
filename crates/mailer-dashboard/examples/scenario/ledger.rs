//! An exactly-once target in memory. It is gone with the process: a page is looked at here, not a recovery.

use mailer_core::{
    Batch, BlobStore, CheckpointId, Error, ExactlyOnceSink, Marker, OwnerEpoch, Publisher, RecordedTarget, Result,
    SealJob, Segment, Stager, StagerContext, TargetName, codec,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A customer and a sum.
type Line = (u64, u64);

#[derive(Clone)]
pub(crate) struct Ledger {
    name: &'static str,
    /// The answer to every so many-th publish is lost on its way.
    loses: u64,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Default)]
struct Shown {
    marker: Option<Marker>,
    publishes: u64,
}

impl Ledger {
    pub(crate) fn new(name: &'static str, loses: u64) -> Self {
        Self { name, loses, shown: Arc::default() }
    }

    fn with<R>(&self, look: impl FnOnce(&mut Shown) -> R) -> R {
        look(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ExactlyOnceSink<Line> for Ledger {
    type Stager = Staging;

    fn target(&self, _: &str) -> TargetName {
        TargetName(self.name.into())
    }

    fn stager(&self, context: &StagerContext) -> Result<Staging> {
        Ok(Staging { context: context.clone(), staged: Vec::new(), sequence: 0 })
    }

    fn publisher(&self, _: &str, _: OwnerEpoch, _: Option<&RecordedTarget>) -> Result<Box<dyn Publisher>> {
        Ok(Box::new(self.clone()))
    }

    fn describe(&self) -> String {
        format!("a ledger in memory, {}", self.name)
    }
}

pub(crate) struct Staging {
    context: StagerContext,
    staged: Vec<Line>,
    sequence: u64,
}

impl Stager<Line> for Staging {
    fn stage(&mut self, batch: &mut Batch<Line>) -> Result<()> {
        self.staged.extend(batch.drain(..).map(|record| record.value));
        Ok(())
    }

    fn seal(&mut self, _: CheckpointId) -> Result<SealJob> {
        let (staged, context, sequence) = (std::mem::take(&mut self.staged), self.context.clone(), self.sequence);
        self.sequence += 1;
        Ok(Box::new(move || {
            if staged.is_empty() {
                return Ok(Vec::new());
            }
            let mut bytes = Vec::new();
            codec::encode(&staged, &mut bytes)?;
            let blob = context.blobs.write(&context.segment_name(sequence), &[&bytes])?;
            let (sink, worker) = (context.worker.name, context.worker.worker);
            Ok(vec![Segment { sink, worker, sequence, records: staged.len() as u64, blob }])
        }))
    }

    fn staged_bytes(&self) -> usize {
        self.staged.len() * size_of::<Line>()
    }
}

impl Publisher for Ledger {
    fn open(&mut self) -> Result<()> {
        Ok(())
    }

    fn last_published(&mut self) -> Result<Option<Marker>> {
        Ok(self.with(|shown| shown.marker.clone()))
    }

    fn publish(&mut self, marker: &Marker, segments: &[Segment], blobs: &dyn BlobStore) -> Result<()> {
        for segment in segments {
            codec::decode::<Vec<Line>>(&blobs.read(&segment.blob)?)?;
        }
        let loses = self.loses;
        self.with(|shown| {
            shown.marker = Some(marker.clone());
            shown.publishes += u64::from(!segments.is_empty());
            match !segments.is_empty() && shown.publishes.is_multiple_of(loses) {
                true => Err(Error::unavailable("the answer of the ledger did not come")),
                false => Ok(()),
            }
        })
    }

    fn recorded(&self) -> RecordedTarget {
        RecordedTarget(self.name.as_bytes().to_vec())
    }

    fn publish_deadline(&self) -> Duration {
        Duration::from_secs(30)
    }
}
