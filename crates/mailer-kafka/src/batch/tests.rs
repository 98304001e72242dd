//! tests
use super::header::Header;

/// A header of `count` records beginning at `offset`.
pub(super) fn header(offset: i64, count: i32) -> Header {
    Header {
        base_offset: offset,
        length: 0,
        leader_epoch: 0,
        crc: 0,
        attributes: 0,
        last_offset_delta: count - 1,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: count,
    }
}
