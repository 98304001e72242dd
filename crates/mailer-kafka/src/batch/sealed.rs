//! A finished batch, and the stamp it gets when it is sent.

use super::checksum::moved_on;
use super::header::{BEFORE_LENGTH, COVERED, Header, SIZE};
use super::raw::RawBatch;
use bytes::Bytes;
use crc32c::{crc32c, crc32c_append};
use mailer_core::{Error, Result};

/// Who sends a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    /// Of the batch's first record in its partition.
    pub(crate) sequence: i32,
    /// The batch is a part of a transaction.
    pub(crate) transactional: bool,
}

/// A batch that is complete but for its [`Stamp`]: head and records apart, so that a stamp moves no record.
///
/// Without a stamp it is a valid batch of no producer (id, epoch and sequence are -1).
#[derive(Clone, Debug)]
pub(crate) struct SealedBatch {
    header: Header,
    head: [u8; SIZE],
    payload: Bytes,
}

impl SealedBatch {
    /// Fills in length and checksum.
    pub(super) fn new(mut header: Header, payload: Bytes) -> Result<Self> {
        let length = payload.len() + SIZE - BEFORE_LENGTH;
        header.length = i32::try_from(length)
            .map_err(|_| Error::user_function(format!("a record of {length} bytes is too large for Kafka")))?;
        header.crc = crc32c_append(crc32c(&header.write()[COVERED..]), &payload);
        Ok(Self { header, head: header.write(), payload })
    }

    /// A batch that was written before and is to be sent now. Its checksum stays what it was: damage is found where it arrives.
    pub(crate) fn stored(batch: RawBatch) -> Self {
        let RawBatch { header, bytes } = batch;
        Self { header, head: header.write(), payload: bytes.slice(SIZE..) }
    }

    /// Names the sender. The checksum follows from the bytes that change and from how many follow them; the records are not
    /// looked at (checksums are linear: the difference of two heads, moved on over the records, is the difference of the sums).
    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        let before = crc32c(&self.head[COVERED..]);
        self.header.producer_id = stamp.producer_id;
        self.header.producer_epoch = stamp.epoch;
        self.header.base_sequence = stamp.sequence;
        self.header.set_transactional(stamp.transactional);
        let after = crc32c(&self.header.write()[COVERED..]);
        self.header.crc ^= moved_on(before ^ after, self.payload.len());
        self.head = self.header.write();
    }

    pub(crate) fn records(&self) -> u32 {
        self.header.record_count as u32
    }

    /// Bytes of head and records.
    pub(crate) fn bytes(&self) -> usize {
        SIZE + self.payload.len()
    }

    /// The 61 bytes before the records.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The records, compressed if they are.
    pub(crate) fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Head and records in one piece: a copy.
    pub(crate) fn to_bytes(&self) -> Bytes {
        [self.head(), self.payload()].concat().into()
    }
}
