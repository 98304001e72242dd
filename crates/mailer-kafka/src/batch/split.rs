//! From the record field of a response to batches: only headers are looked at.

use super::header::{BEFORE_LENGTH, Header, MAGIC, MAGIC_AT, SIZE};
use super::malformed::Malformed;
use super::raw::RawBatch;
use bytes::Bytes;

/// The batches that stand end to end in some bytes. A broker cuts off in the middle of a batch where its limit of bytes is
/// reached: an incomplete one at the end is left out. After an error there is nothing more.
#[derive(Debug)]
pub(crate) struct Batches {
    rest: Bytes,
    found: bool,
}

impl Batches {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { rest: bytes, found: false }
    }

    /// When it is over: how many bytes have to be fetched to get the first batch whole, if not even one was complete.
    pub(crate) fn needs(&self) -> Option<usize> {
        if self.found || self.rest.is_empty() {
            return None;
        }
        Some(length(&self.rest).map_or(SIZE, |length| length as usize + BEFORE_LENGTH))
    }

    fn split(&mut self) -> Result<Option<RawBatch>, Malformed> {
        let Some(length) = length(&self.rest) else { return Ok(None) };
        match self.rest.get(MAGIC_AT).copied() {
            None => return Ok(None),
            Some(MAGIC) => {}
            Some(old @ 0..MAGIC) => return Err(Malformed::OldFormat(old)),
            Some(unknown) => return Err(Malformed::UnknownFormat(unknown)),
        }
        let size = usize::try_from(length).map_err(|_| Malformed::Header("its length is negative"))? + BEFORE_LENGTH;
        if size < SIZE {
            return Err(Malformed::Header("it is shorter than a header"));
        }
        if self.rest.len() < size {
            return Ok(None);
        }
        let bytes = self.rest.split_to(size);
        let Some(head) = bytes.first_chunk() else { return Ok(None) };
        let header = Header::read(head);
        header.check()?;
        Ok(Some(RawBatch { header, bytes }))
    }
}

fn length(bytes: &[u8]) -> Option<i32> {
    bytes.get(8..BEFORE_LENGTH)?.first_chunk().map(|length| i32::from_be_bytes(*length))
}

impl Iterator for Batches {
    type Item = Result<RawBatch, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.split().transpose()?;
        self.found = true;
        if batch.is_err() {
            self.rest.clear();
        }
        Some(batch)
    }
}
