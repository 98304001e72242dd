//! The 61 bytes at the head of a batch, read and written field by field.

use super::codec::Codec;
use super::malformed::Malformed;

/// Bytes of a batch before its records.
pub(super) const SIZE: usize = 61;
/// Bytes before what `length` counts: the base offset and the length.
pub(super) const BEFORE_LENGTH: usize = 12;
/// Where the checksum's cover begins.
pub(super) const COVERED: usize = 21;
/// Where the format number stands, in all formats.
pub(super) const MAGIC_AT: usize = 16;
pub(super) const MAGIC: u8 = 2;

const CODEC: i16 = 0b111;
const APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;

/// What a batch says about itself before its records are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The offset its first record had when it was written.
    pub(crate) base_offset: i64,
    /// Bytes behind the length field.
    pub(super) length: i32,
    /// The leader epoch in which it was appended; -1 in a batch that was not appended yet.
    pub(crate) leader_epoch: i32,
    pub(super) crc: u32,
    pub(super) attributes: i16,
    pub(super) last_offset_delta: i32,
    pub(super) base_timestamp: i64,
    /// The latest record's time, or the append time of all of them, in ms since the Unix epoch.
    pub(crate) max_timestamp: i64,
    /// -1: not written by an idempotent producer.
    pub(crate) producer_id: i64,
    /// Counts the instances of the producer.
    pub(crate) producer_epoch: i16,
    /// The first record's number among those of the producer in this partition.
    pub(crate) base_sequence: i32,
    /// Records that are left; compaction removes some and keeps the offsets of the others.
    pub(crate) record_count: i32,
}

impl Header {
    /// Reads the fields; they are looked at by [`Header::check`].
    pub(super) fn read(bytes: &[u8; SIZE]) -> Self {
        Self {
            base_offset: i64::from_be_bytes(field(bytes, 0)),
            length: i32::from_be_bytes(field(bytes, 8)),
            leader_epoch: i32::from_be_bytes(field(bytes, 12)),
            crc: u32::from_be_bytes(field(bytes, 17)),
            attributes: i16::from_be_bytes(field(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(field(bytes, 23)),
            base_timestamp: i64::from_be_bytes(field(bytes, 27)),
            max_timestamp: i64::from_be_bytes(field(bytes, 35)),
            producer_id: i64::from_be_bytes(field(bytes, 43)),
            producer_epoch: i16::from_be_bytes(field(bytes, 51)),
            base_sequence: i32::from_be_bytes(field(bytes, 53)),
            record_count: i32::from_be_bytes(field(bytes, 57)),
        }
    }

    pub(super) fn write(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&self.base_offset.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.leader_epoch.to_be_bytes());
        bytes[MAGIC_AT] = MAGIC;
        bytes[17..21].copy_from_slice(&self.crc.to_be_bytes());
        bytes[21..23].copy_from_slice(&self.attributes.to_be_bytes());
        bytes[23..27].copy_from_slice(&self.last_offset_delta.to_be_bytes());
        bytes[27..35].copy_from_slice(&self.base_timestamp.to_be_bytes());
        bytes[35..43].copy_from_slice(&self.max_timestamp.to_be_bytes());
        bytes[43..51].copy_from_slice(&self.producer_id.to_be_bytes());
        bytes[51..53].copy_from_slice(&self.producer_epoch.to_be_bytes());
        bytes[53..57].copy_from_slice(&self.base_sequence.to_be_bytes());
        bytes[57..61].copy_from_slice(&self.record_count.to_be_bytes());
        bytes
    }

    /// Refuses numbers that no writer of batches produces.
    pub(super) fn check(&self) -> Result<(), Malformed> {
        let wrong = |what| Err(Malformed::Header(what));
        let last = self.base_offset.checked_add(i64::from(self.last_offset_delta) + 1);
        if self.base_offset < 0 || last.is_none() {
            return wrong("its offsets are no offsets");
        }
        if self.last_offset_delta < 0 {
            return wrong("its last offset is before its first");
        }
        if self.record_count < 0 || i64::from(self.record_count) > i64::from(self.last_offset_delta) + 1 {
            return wrong("it counts more records than offsets");
        }
        Codec::of(self.attributes & CODEC).map(|_| ())
    }

    /// The offset behind the batch; behind the records that compaction has removed from its end, too.
    pub(crate) fn next_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta) + 1
    }

    /// It holds no records for readers: a transaction's end, or something of the brokers.
    pub(crate) fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// It is a part of a transaction.
    pub(crate) fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// The time of all its records, where the broker sets it.
    pub(crate) fn append_time(&self) -> Option<i64> {
        (self.attributes & APPEND_TIME != 0).then_some(self.max_timestamp)
    }

    pub(crate) fn codec(&self) -> Result<Codec, Malformed> {
        Codec::of(self.attributes & CODEC)
    }

    pub(super) fn set_transactional(&mut self, transactional: bool) {
        match transactional {
            true => self.attributes |= TRANSACTIONAL,
            false => self.attributes &= !TRANSACTIONAL,
        }
    }
}

fn field<const N: usize>(bytes: &[u8; SIZE], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let mut bytes = [0; SIZE];
        (0..).zip(bytes.iter_mut()).for_each(|(index, byte)| *byte = index);
        bytes[MAGIC_AT] = MAGIC;
        Header::read(&bytes)
    }

    #[test]
    fn fields_stand_where_the_protocol_says_both_ways() {
        let header = header();
        assert_eq!(header.base_offset, 0x0001_0203_0405_0607);
        assert_eq!((header.length, header.leader_epoch), (0x0809_0a0b, 0x0c0d_0e0f));
        assert_eq!((header.crc, header.attributes), (0x1112_1314, 0x1516));
        assert_eq!((header.last_offset_delta, header.record_count), (0x1718_191a, 0x393a_3b3c));
        let again = header.write();
        assert_eq!(Header::read(&again), header);
        assert_eq!((again[8], again[MAGIC_AT], again[60]), (8, 2, 60));
    }

    #[test]
    fn contradictions_are_refused() {
        let good = Header { attributes: 0, last_offset_delta: 9, record_count: 10, base_offset: 5, ..header() };
        good.check().unwrap();
        for bad in [
            Header { base_offset: -1, ..good },
            Header { base_offset: i64::MAX - 9, ..good },
            Header { last_offset_delta: -1, ..good },
            Header { record_count: -1, ..good },
            Header { record_count: 11, ..good },
            Header { attributes: 5, ..good },
        ] {
            bad.check().unwrap_err();
        }
    }
}
