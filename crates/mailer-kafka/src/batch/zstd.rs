//! Zstandard: in one step where the frame tells its size, else as a stream.

use super::codec::{MAX_UNPACKED, read_all};
use std::io;
use zstd::bulk::Decompressor;
use zstd::zstd_safe;

/// Kafka's default.
const LEVEL: i32 = 3;
/// The largest window a frame may ask us to hold, as a power of two: what the reference decoder grants.
const WINDOW: u32 = 27;
/// A size that a frame claims is believed up to so many times its bytes.
const BELIEVABLE: usize = 256;

pub(super) fn pack(records: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(records, LEVEL)
}

pub(super) fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    match claimed(packed) {
        Some(size) if size <= packed.len() * BELIEVABLE && size <= MAX_UNPACKED => {
            Decompressor::new()?.decompress(packed, size)
        }
        _ => stream(packed),
    }
}

/// What the one frame there is says about its size.
fn claimed(packed: &[u8]) -> Option<usize> {
    if zstd_safe::find_frame_compressed_size(packed).ok()? != packed.len() {
        return None;
    }
    usize::try_from(zstd_safe::get_frame_content_size(packed).ok()??).ok()
}

fn stream(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
    decoder.window_log_max(WINDOW)?;
    read_all(decoder, packed.len())
}
