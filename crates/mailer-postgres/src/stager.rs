//! Stages the rows of one worker.

use crate::segment;
use crate::sink::Encode;
use crate::table::Table;
use mailer_core::{Batch, CheckpointId, Result, SealJob, Segment, Stager, StagerContext};
use std::fmt;
use std::marker::PhantomData;

/// A segment is closed at this size: publishing holds one in memory at a time.
const SEGMENT: usize = 64 << 20;

/// Stages the output of one worker. Made by [`crate::PostgresSink`].
pub struct PostgresStager<T, E> {
    context: StagerContext,
    table: Table,
    head: Vec<u8>,
    encode: E,
    full: Vec<Rows>,
    open: Rows,
    sequence: u64,
    item: PhantomData<fn(T)>,
}

#[derive(Default)]
struct Rows {
    bytes: Vec<u8>,
    records: u64,
}

impl<T, E> PostgresStager<T, E> {
    pub(crate) fn new(context: StagerContext, table: Table, encode: E) -> Result<Self> {
        let head = segment::head(&table.destination)?;
        Ok(Self {
            context,
            table,
            head,
            encode,
            full: Vec::new(),
            open: Rows::default(),
            sequence: 0,
            item: PhantomData,
        })
    }

    fn close_segment(&mut self) {
        if self.open.records > 0 {
            self.full.push(std::mem::take(&mut self.open));
        }
    }
}

impl<T: Send + 'static, E: Encode<T>> Stager<T> for PostgresStager<T, E> {
    fn stage(&mut self, batch: &mut Batch<T>) -> Result<()> {
        for record in batch.drain(..) {
            let row = self.encode.row(&record)?;
            self.table.write(&row, &mut self.open.bytes)?;
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
        let (context, head) = (self.context.clone(), self.head.clone());
        Ok(Box::new(move || {
            let numbered = (first..).zip(full);
            numbered.map(|(sequence, rows)| write(&context, sequence, &head, &rows)).collect()
        }))
    }

    fn staged_bytes(&self) -> usize {
        self.full.iter().map(|full| full.bytes.len()).sum::<usize>() + self.open.bytes.len()
    }
}

fn write(context: &StagerContext, sequence: u64, head: &[u8], rows: &Rows) -> Result<Segment> {
    let blob = context.blobs.write(&context.segment_name(sequence), &[head, &rows.bytes])?;
    let worker = &context.worker;
    Ok(Segment { sink: worker.name.clone(), worker: worker.worker, sequence, records: rows.records, blob })
}

impl<T, E> fmt::Debug for PostgresStager<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresStager({:?})", self.context.worker)
    }
}
