//! Encodes one worker's output into segments.

use super::limits::{WatchedLimits, poison};
use super::segment::Draft;
use crate::encode::{Encode, Encoded};
use crate::partitioner::{Spread, of_key};
use crate::runtime::Io;
use mailer_core::{Batch, BlobStore, CheckpointId, Result, SealJob, Segment, Stager, StagerContext};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A segment is closed at this size: publishing holds one in memory at a time.
const SEGMENT: usize = 64 << 20;

/// Stages the output of one worker. Made by [`super::TransactionalKafkaSink`].
pub struct KafkaStager<T, E> {
    context: StagerContext,
    topic: String,
    encode: E,
    scratch: Encoded,
    limits: Arc<WatchedLimits>,
    spread: Spread,
    full: Vec<Draft>,
    open: Draft,
    sequence: u64,
    /// Keeps the task alive that reads the limits again.
    _io: Arc<Io>,
    item: PhantomData<fn(T)>,
}

impl<T, E> KafkaStager<T, E> {
    pub(crate) fn new(
        context: StagerContext,
        topic: String,
        encode: E,
        limits: Arc<WatchedLimits>,
        io: Arc<Io>,
    ) -> Self {
        let spread = Spread::new(context.worker.worker);
        let open = Draft::new(&topic);
        let (scratch, full) = (Encoded::default(), Vec::new());
        Self { context, topic, encode, scratch, limits, spread, full, open, sequence: 0, _io: io, item: PhantomData }
    }

    fn close_segment(&mut self) {
        if self.open.records() > 0 {
            self.full.push(std::mem::replace(&mut self.open, Draft::new(&self.topic)));
        }
    }

    /// The partition, decided now so that a replay of the publish writes the same again.
    fn partition(&mut self, partitions: u32) -> Result<i32> {
        match (self.scratch.partition(), self.scratch.key()) {
            (Some(partition), _) if (0..i64::from(partitions)).contains(&i64::from(partition)) => Ok(partition),
            (Some(partition), _) => {
                Err(poison(&self.topic, &format!("it names partition {partition}, and there are {partitions}")))
            }
            (None, Some(key)) => Ok(of_key(key, partitions)),
            (None, None) => Ok(self.spread.next(self.scratch.bytes(), partitions)),
        }
    }
}

impl<T: Send + 'static, E: Encode<T>> Stager<T> for KafkaStager<T, E> {
    fn stage(&mut self, batch: &mut Batch<T>) -> Result<()> {
        let limits = self.limits.now();
        let now = self.context.worker.clock.wall();
        for record in batch.drain(..) {
            self.scratch.begin(record.timestamp.0);
            self.encode.encode(&record, &mut self.scratch)?;
            limits.check(&self.scratch, now).map_err(|why| poison(&self.topic, &why))?;
            let partition = self.partition(limits.partitions)?;
            self.open.push(partition, &self.scratch);
        }
        if self.open.bytes() >= SEGMENT {
            self.close_segment();
        }
        Ok(())
    }

    fn seal(&mut self, _id: CheckpointId) -> Result<SealJob> {
        self.close_segment();
        let drafts = std::mem::take(&mut self.full);
        let first = self.sequence;
        self.sequence += drafts.len() as u64;
        let context = self.context.clone();
        Ok(Box::new(move || {
            let numbered = (first..).zip(drafts);
            numbered.map(|(sequence, draft)| write(&context, sequence, &draft)).collect()
        }))
    }

    fn staged_bytes(&self) -> usize {
        let open = if self.open.records() > 0 { self.open.bytes() } else { 0 };
        self.full.iter().map(Draft::bytes).sum::<usize>() + open
    }
}

fn write(context: &StagerContext, sequence: u64, draft: &Draft) -> Result<Segment> {
    let blobs: &dyn BlobStore = context.blobs.as_ref();
    let blob = blobs.write(&context.segment_name(sequence), &draft.chunks())?;
    let worker = &context.worker;
    Ok(Segment { sink: worker.name.clone(), worker: worker.worker, sequence, records: draft.records(), blob })
}

impl<T, E> fmt::Debug for KafkaStager<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KafkaStager({} {:?})", self.topic, self.context.worker)
    }
}
