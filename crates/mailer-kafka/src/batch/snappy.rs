//! Snappy in the two shapes that are found in topics.
//!
//! The Java client frames it as the xerial library does, in blocks with a length before each; some other clients write one
//! bare block. Both are read; the framed shape is written, because everybody reads it.

use super::codec::{MAX_UNPACKED, too_large};
use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};
use std::io;

/// The name, then two version numbers, of which readers ignore the values.
const HEAD: &[u8; 16] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
const NAME: usize = 8;
/// Bytes that go into one block.
const BLOCK: usize = 32 << 10;
/// A copy of three bytes yields 64: nothing unpacks to more than so many times its size.
const BEST_RATIO: usize = 22;

pub(super) fn pack(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = HEAD.to_vec();
    let mut encoder = Encoder::new();
    for block in records.chunks(BLOCK) {
        let start = packed.len() + 4;
        packed.resize(start + max_compress_len(block.len()), 0);
        let written = encoder.compress(block, &mut packed[start..])?;
        packed.truncate(start + written);
        packed[start - 4..start].copy_from_slice(&(written as u32).to_be_bytes());
    }
    Ok(packed)
}

pub(super) fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    match packed.strip_prefix(&HEAD[..NAME]) {
        Some(framed) => blocks(framed, &mut unpacked)?,
        None => block(packed, &mut unpacked)?,
    }
    Ok(unpacked)
}

fn blocks(framed: &[u8], unpacked: &mut Vec<u8>) -> io::Result<()> {
    let mut rest = framed.get(HEAD.len() - NAME..).ok_or_else(cut)?;
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk().ok_or_else(cut)?;
        let (packed, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(cut)?;
        block(packed, unpacked)?;
        rest = behind;
    }
    Ok(())
}

fn block(packed: &[u8], unpacked: &mut Vec<u8>) -> io::Result<()> {
    let (start, length) = (unpacked.len(), decompress_len(packed)?);
    if length > packed.len() * BEST_RATIO {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it claims to unpack to more than is possible"));
    }
    if start + length > MAX_UNPACKED {
        return Err(too_large());
    }
    unpacked.resize(start + length, 0);
    Decoder::new().decompress(packed, &mut unpacked[start..])?;
    Ok(())
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ends in the middle of a block")
}
