//! LZ4 in its frame format, as Kafka uses it since format v2: independent blocks, which is all the Java client reads.

use super::codec::read_all;
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use std::io::{self, Write};

pub(super) fn pack(records: &[u8]) -> io::Result<Vec<u8>> {
    let shape = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(shape, Vec::with_capacity(records.len() / 2));
    encoder.write_all(records)?;
    encoder.finish().map_err(io::Error::other)
}

pub(super) fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    read_all(FrameDecoder::new(packed), packed.len())
}
