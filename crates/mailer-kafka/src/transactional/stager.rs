//! Encodes one worker's output into segments.

use super::fresh::Fresh;
use super::limits::{WatchedLimits, poison};
use super::segment::{self, Draft};
use crate::batch::Settings;
use crate::encode::{Encode, Encoded};
use crate::gather::{Gather, Parted};
use crate::partitioner::{self, Spread};
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
    settings: Settings,
    full: Vec<Gathered>,
    open: Gather,
    sequence: u64,
    fresh: Arc<Fresh>,
    /// Keeps the task alive that reads the limits again.
    _io: Arc<Io>,
    item: PhantomData<fn(T)>,
}

/// The batches of one segment to be.
struct Gathered {
    parts: Vec<Parted>,
    bytes: usize,
}

impl<T, E> KafkaStager<T, E> {
    pub(crate) fn new(
        context: StagerContext,
        (topic, settings): (String, Settings),
        (encode, fresh): (E, Arc<Fresh>),
        limits: Arc<WatchedLimits>,
        io: Arc<Io>,
    ) -> Self {
        Self {
            spread: Spread::new(context.worker.worker),
            open: Gather::new(within(settings, &limits)),
            scratch: Encoded::default(),
            full: Vec::new(),
            sequence: 0,
            context,
            topic,
            settings,
            encode,
            limits,
            fresh,
            _io: io,
            item: PhantomData,
        }
    }

    fn close_segment(&mut self) -> Result<()> {
        if self.open.records() > 0 {
            self.open.close()?;
            self.full.push(Gathered { bytes: self.open.bytes(), parts: self.open.take_done() });
            self.open.restart(within(self.settings, &self.limits));
        }
        Ok(())
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
            // Decided now, so that a replay of the publish writes the same again.
            let partition = partitioner::choose(&self.scratch, limits.partitions, &mut self.spread);
            let partition = partition.map_err(|why| poison(&self.topic, &why))?;
            // A record without a time gets the one at which it is staged.
            let timestamp = Some(self.scratch.timestamp()).filter(|timestamp| *timestamp >= 0).unwrap_or(now.0);
            self.open.push(partition, timestamp, &self.scratch)?;
        }
        if self.open.bytes() >= SEGMENT { self.close_segment() } else { Ok(()) }
    }

    fn seal(&mut self, _id: CheckpointId) -> Result<SealJob> {
        self.close_segment()?;
        let full = std::mem::take(&mut self.full);
        let first = self.sequence;
        self.sequence += full.len() as u64;
        let (context, topic, fresh) = (self.context.clone(), self.topic.clone(), self.fresh.clone());
        Ok(Box::new(move || {
            let numbered = (first..).zip(full);
            let written = numbered.map(|(sequence, full)| {
                let written = write(&context, sequence, &Draft::new(&topic, &full.parts))?;
                fresh.keep(&written.blob, segment::Segment { topic: topic.clone(), parts: full.parts });
                Ok(written)
            });
            written.collect()
        }))
    }

    fn staged_bytes(&self) -> usize {
        self.full.iter().map(|full| full.bytes).sum::<usize>() + self.open.bytes()
    }
}

/// No batch is larger than the topic takes now.
fn within(settings: Settings, limits: &WatchedLimits) -> Settings {
    Settings { max_bytes: settings.max_bytes.min(limits.now().max_bytes), ..settings }
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
