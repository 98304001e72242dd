//! From a chunk to records: on the worker's thread, batch by batch, refusing aborted and control batches unopened.

use super::queue::Chunk;
use crate::batch::{AbortedFilter, Batches, Header, Malformed, Records};

/// A chunk being handed out.
#[derive(Debug)]
pub(crate) struct Unpacking {
    pub(crate) slot: usize,
    /// Bytes to release when it is done.
    pub(crate) bytes: usize,
    pub(crate) next: i64,
    pub(crate) leader_epoch: Option<i32>,
    batches: Batches,
    filter: AbortedFilter,
    open: Option<Open>,
}

/// A batch whose records are being handed out.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) header: Header,
    pub(crate) records: Records,
}

impl Open {
    /// The leader epoch in which the batch was appended, where it is known.
    pub(crate) fn leader_epoch(&self) -> Option<i32> {
        epoch(&self.header)
    }
}

/// A batch that cannot be read, and its first offset.
pub(crate) type Bad = (i64, Malformed);

impl Unpacking {
    pub(crate) fn new(chunk: Chunk) -> Self {
        Self {
            slot: chunk.slot,
            bytes: chunk.records.len(),
            next: chunk.next,
            leader_epoch: chunk.leader_epoch,
            filter: AbortedFilter::new(chunk.aborted),
            batches: Batches::new(chunk.records),
            open: None,
        }
    }

    /// The batch to read from: the open one, or the next that holds something for a reader at `from`.
    pub(crate) fn batch(&mut self, from: i64) -> Result<Option<&mut Open>, Bad> {
        while self.open.is_none() {
            let Some(batch) = self.batches.next() else { return Ok(None) };
            let batch = batch.map_err(|malformed| (from, malformed))?;
            let header = *batch.header();
            let bad = |malformed| (header.base_offset, malformed);
            let admitted = self.filter.admits(&header, batch.control_kind().map_err(bad)?);
            if admitted && header.next_offset() > from {
                self.open = Some(Open { header, records: batch.records().map_err(bad)? });
            }
        }
        Ok(self.open.as_mut())
    }

    /// The open batch has no more records.
    pub(crate) fn close_batch(&mut self) {
        self.open = None;
    }

    /// Nothing behind `end` is of interest.
    pub(crate) fn cut(&mut self, end: i64) {
        (self.open, self.batches) = (None, Batches::new(bytes::Bytes::new()));
        (self.next, self.leader_epoch) = (end, None);
    }
}

/// What the headers in the record field of a response say, without a look at records.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Bytes of the batches that are complete.
    pub(crate) bytes: usize,
    /// Behind the last of them.
    pub(crate) next: Option<i64>,
    pub(crate) leader_epoch: Option<i32>,
    /// Not even one is complete: how many bytes the first takes.
    pub(crate) needs: Option<usize>,
    /// What is behind them cannot be read.
    pub(crate) malformed: Option<Malformed>,
}

pub(crate) fn scan(records: bytes::Bytes) -> Scan {
    let mut scan = Scan::default();
    let mut batches = Batches::new(records);
    for batch in batches.by_ref() {
        match batch {
            Ok(batch) => {
                scan.bytes += batch.bytes().len();
                scan.next = Some(batch.header().next_offset());
                scan.leader_epoch = epoch(batch.header());
            }
            Err(malformed) => scan.malformed = Some(malformed),
        }
    }
    scan.needs = batches.needs();
    scan
}

fn epoch(header: &Header) -> Option<i32> {
    Some(header.leader_epoch).filter(|epoch| *epoch >= 0)
}
