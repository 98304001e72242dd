//! Record batches (format v2) as bytes: read without copying, written in one pass. No I/O, no clock, no topic names.
//!
//! ```text
//! batch  = base_offset:i64 length:i32 leader_epoch:i32 magic:i8=2 crc:u32        not covered by the checksum, except
//!          attributes:i16 last_offset_delta:i32 base_timestamp:i64                all that follows `crc`
//!          max_timestamp:i64 producer_id:i64 producer_epoch:i16
//!          base_sequence:i32 record_count:i32 records                             `records` may be compressed as a whole
//! record = length attributes:i8 timestamp_delta offset_delta key value header_count (name value)*
//! ```
//!
//! Inside a record, numbers are zigzag varints; a length of -1 is null. The source is the protocol guide of Apache Kafka,
//! "Record Batch".
//!
//! Reading goes in three steps, each of which may stop: [`Batches`] looks at headers, [`AbortedFilter`] refuses batches
//! before they are decompressed, [`RawBatch::records`] checks and unpacks one. Records are views ([`RecordView`]): who only
//! looks at a value takes no reference count. Nobody can make this module allocate more than a small multiple of the bytes
//! present or [`codec::MAX_UNPACKED`]; what is not a batch is a [`Malformed`], to which the caller adds topic, partition, and offset.
//!
//! Writing: [`BatchBuilder`] appends and seals; a [`SealedBatch`] gets its producer id, epoch and sequence when it is sent
//! ([`SealedBatch::stamp`]), which does not touch its records.

mod aborted;
mod builder;
mod checksum;
mod codec;
mod header;
mod lz4;
mod malformed;
mod raw;
mod records;
mod sealed;
mod snappy;
mod split;
mod varint;
mod zstd;

#[cfg(test)]
mod damage;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

pub(crate) use aborted::AbortedFilter;
pub(crate) use builder::{BatchBuilder, Settings};
pub(crate) use codec::Codec;
pub(crate) use header::Header;
pub(crate) use malformed::Malformed;
pub(crate) use raw::RawBatch;
pub(crate) use records::{RecordView, Records};
pub(crate) use sealed::{SealedBatch, Stamp};
pub(crate) use split::Batches;
