//! The half of an exactly-once target that is the same for all targets in memory: what is staged.

use mailer_core::{Batch, BlobStore, CheckpointId, Result, SealJob, Segment, Stager, StagerContext, codec};
use serde::{Serialize, de::DeserializeOwned};
use std::mem::{size_of, take};

/// Keeps records until they are sealed, and writes those of a checkpoint as one blob. For exactly-once targets of tests: a
/// publisher gets them back from [`staged`].
pub struct MemoryStager<T> {
    context: StagerContext,
    records: Vec<T>,
    sequence: u64,
}

impl<T> MemoryStager<T> {
    /// A stager for one worker.
    pub fn new(context: &StagerContext) -> Self {
        Self { context: context.clone(), records: Vec::new(), sequence: 0 }
    }
}

impl<T: Serialize + Send + 'static> Stager<T> for MemoryStager<T> {
    fn stage(&mut self, batch: &mut Batch<T>) -> Result<()> {
        self.records.extend(batch.drain(..).map(|record| record.value));
        Ok(())
    }

    fn seal(&mut self, _: CheckpointId) -> Result<SealJob> {
        let records = take(&mut self.records);
        if records.is_empty() {
            return Ok(Box::new(|| Ok(Vec::new())));
        }
        let (context, sequence) = (self.context.clone(), self.sequence);
        self.sequence += 1;
        Ok(Box::new(move || {
            let mut bytes = Vec::new();
            codec::encode(&records, &mut bytes)?;
            let blob = context.blobs.write(&context.segment_name(sequence), &[&bytes])?;
            let (sink, worker) = (context.worker.name, context.worker.worker);
            Ok(vec![Segment { sink, worker, sequence, records: records.len() as u64, blob }])
        }))
    }

    fn staged_bytes(&self) -> usize {
        self.records.len() * size_of::<T>()
    }
}

/// The records that [`MemoryStager`]s have staged in `segments`, in their order.
pub fn staged<T: DeserializeOwned>(segments: &[Segment], blobs: &dyn BlobStore) -> Result<Vec<T>> {
    let mut records = Vec::new();
    for segment in segments {
        records.append(&mut codec::decode::<Vec<T>>(&blobs.read(&segment.blob)?)?);
    }
    Ok(records)
}
