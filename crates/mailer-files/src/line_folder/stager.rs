//! Stages the lines of one worker.

use super::segment::{self, Shape};
use mailer_core::{Batch, CheckpointId, Result, SealJob, Segment, Stager, StagerContext};
use std::fmt;

/// A segment is closed at this size: publishing holds one in memory at a time.
const SEGMENT: usize = 64 << 20;

/// Stages the output of one worker. Made by [`super::LineFolder`].
pub struct LineStager<E> {
    context: StagerContext,
    shape: Shape,
    encode: E,
    full: Vec<Lines>,
    open: Lines,
    sequence: u64,
}

#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    records: u64,
}

impl<E> LineStager<E> {
    pub(super) fn new(context: StagerContext, shape: Shape, encode: E) -> Self {
        Self { context, shape, encode, full: Vec::new(), open: Lines::default(), sequence: 0 }
    }

    fn close_segment(&mut self) {
        if self.open.records > 0 {
            self.full.push(std::mem::take(&mut self.open));
        }
    }
}

impl<T, E> Stager<T> for LineStager<E>
where
    T: Send + 'static,
    E: FnMut(&T, &mut Vec<u8>) -> Result<()> + Clone + Send + Sync + 'static,
{
    fn stage(&mut self, batch: &mut Batch<T>) -> Result<()> {
        for record in batch.drain(..) {
            (self.encode)(&record.value, &mut self.open.bytes)?;
            self.open.bytes.push(b'\n');
            self.open.records += 1;
        }
        if self.open.bytes.len() >= SEGMENT {
            self.close_segment();
        }
        Ok(())
    }

    fn seal(&mut self, _id: CheckpointId) -> Result<SealJob> {
        self.close_segment();
        let full = std::mem::take(&mut self.full);
        let first = self.sequence;
        self.sequence += full.len() as u64;
        let (context, head) = (self.context.clone(), segment::head(&self.shape)?);
        Ok(Box::new(move || {
            let numbered = (first..).zip(full);
            numbered.map(|(sequence, lines)| write(&context, sequence, &head, &lines)).collect()
        }))
    }

    fn staged_bytes(&self) -> usize {
        self.full.iter().map(|full| full.bytes.len()).sum::<usize>() + self.open.bytes.len()
    }
}

fn write(context: &StagerContext, sequence: u64, head: &[u8], lines: &Lines) -> Result<Segment> {
    let blob = context.blobs.write(&context.segment_name(sequence), &[head, &lines.bytes])?;
    let worker = &context.worker;
    Ok(Segment { sink: worker.name.clone(), worker: worker.worker, sequence, records: lines.records, blob })
}

impl<E> fmt::Debug for LineStager<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LineStager({:?})", self.context.worker)
    }
}
