//! One batch whose header has been read and whose records have not.

use super::codec::{self, Codec};
use super::header::{COVERED, Header, SIZE};
use super::malformed::Malformed;
use super::records::Records;
use bytes::Bytes;

/// What a control batch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlKind {
    /// The producer's transaction was aborted.
    Abort,
    /// The producer's transaction was committed.
    Commit,
    /// Something brokers tell each other, or nothing: compaction has removed the record.
    Other,
}

/// A batch, whole, as it came.
#[derive(Clone, Debug)]
pub(crate) struct RawBatch {
    pub(super) header: Header,
    pub(super) bytes: Bytes,
}

impl RawBatch {
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Header and records, as they came.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What it says if it is a control batch.
    pub(crate) fn control_kind(&self) -> Result<Option<ControlKind>, Malformed> {
        match self.header.is_control() {
            true => {
                self.clone().records()?.next_record().map_or(Ok(ControlKind::Other), |r| Ok(kind(r?.key))).map(Some)
            }
            false => Ok(None),
        }
    }

    /// Checks the checksum, unpacks, and hands out what is inside.
    pub(crate) fn records(self) -> Result<Records, Malformed> {
        self.verify()?;
        let packed = self.bytes.slice(SIZE..);
        let payload = match self.header.codec()? {
            Codec::None => packed,
            codec => Bytes::from(codec::unpack(codec, &packed)?),
        };
        Ok(Records::new(&self.header, payload))
    }

    fn verify(&self) -> Result<(), Malformed> {
        let computed = crc32c::crc32c(&self.bytes[COVERED..]);
        match computed == self.header.crc {
            true => Ok(()),
            false => Err(Malformed::Checksum { stored: self.header.crc, computed }),
        }
    }
}

/// The key of a control record: version and kind, both i16.
fn kind(key: Option<&[u8]>) -> ControlKind {
    match key {
        Some([_, _, 0, 0, ..]) => ControlKind::Abort,
        Some([_, _, 0, 1, ..]) => ControlKind::Commit,
        _ => ControlKind::Other,
    }
}
