//! Segments of format 1, which releases before 0.2 staged: records one by one, in the order in which they are published.
//!
//! A checkpoint that was decided by such a release may still wait for its publish, so they are read for ever.
//!
//! ```text
//! segment = "MLKS" 1 topic:text record*
//! record  = partition:varint timestamp:zigzag key:optional value:optional headers:varint (text optional)*
//! text    = length:varint bytes           optional = 0 | (length + 1):varint bytes
//! ```
//!
//! Varints are little-endian base 128.

use crate::record::OutRecord;
use bytes::{Buf, Bytes};
use mailer_core::{Error, Result};

/// A segment being read: an iterator of records whose bytes are slices of the file.
#[derive(Debug)]
pub(crate) struct Reading {
    rest: Bytes,
    read: u64,
}

impl Reading {
    /// `rest` is what follows the topic.
    pub(crate) fn new(rest: Bytes) -> Self {
        Self { rest, read: 0 }
    }
}

impl Iterator for Reading {
    type Item = Result<OutRecord>;

    fn next(&mut self) -> Option<Result<OutRecord>> {
        if self.rest.is_empty() {
            return None;
        }
        let record = record(&mut self.rest);
        self.read += 1;
        Some(record.ok_or_else(|| {
            self.rest.clear();
            Error::corrupt(format!("record {} of a staged Kafka segment does not decode", self.read))
        }))
    }
}

fn record(rest: &mut Bytes) -> Option<OutRecord> {
    let partition = i32::try_from(varint(rest)?).ok()?;
    let timestamp = unzigzag(varint(rest)?);
    let (key, value) = (optional(rest)?, optional(rest)?);
    let count = varint(rest)?;
    let mut headers = Vec::new();
    for _ in 0..count {
        headers.push((text(rest)?, optional(rest)?));
    }
    Some(OutRecord { key, value, timestamp: Some(timestamp), headers, partition: Some(partition) })
}

// The pieces. `None` while reading means: these bytes were not written by us.

pub(super) fn varint(rest: &mut Bytes) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = rest.first().copied()?;
        rest.advance(1);
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

pub(super) fn slice(rest: &mut Bytes, length: u64) -> Option<Bytes> {
    let length = usize::try_from(length).ok().filter(|length| *length <= rest.len())?;
    Some(rest.split_to(length))
}

fn text(rest: &mut Bytes) -> Option<String> {
    let length = varint(rest)?;
    String::from_utf8(slice(rest, length)?.to_vec()).ok()
}

fn optional(rest: &mut Bytes) -> Option<Option<Bytes>> {
    match varint(rest)? {
        0 => Some(None),
        length => slice(rest, length - 1).map(Some),
    }
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What format 1 wrote for the record of `the_format_is_read_for_ever`.
    const RECORD: &[u8] = b"\x02\xd8\x04\x02k\x02v\x01\x01h\x02x";

    #[test]
    fn the_format_is_read_for_ever() {
        let mut reading = Reading::new(Bytes::from_static(RECORD));
        let record = OutRecord { timestamp: Some(300), ..OutRecord::value("v").with_key("k").with_header("h", "x") };
        assert_eq!(reading.next().unwrap().unwrap(), OutRecord { partition: Some(2), ..record });
        assert!(reading.next().is_none());
    }

    #[test]
    fn damage_is_an_error_wherever_it_falls() {
        for cut in 1..RECORD.len() {
            let mut reading = Reading::new(Bytes::from_static(&RECORD[..cut]));
            assert!(reading.next().unwrap().is_err(), "cut at {cut}");
            assert!(reading.next().is_none(), "an error ends it");
        }
    }
}
