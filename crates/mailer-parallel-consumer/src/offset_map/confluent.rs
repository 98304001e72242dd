//! Reads the maps of Confluent's parallel-consumer, so that a group can move here without repeating finished work.
//!
//! Written from the public format of that project (Apache-2.0): standard base64; a first byte that names the encoding;
//! then, zstd-compressed or not, either a length and a Java `BitSet` (set = complete) or run lengths, in turn incomplete
//! and complete, beginning with incomplete. Version 1 counts in 16 bits, version 2 in 32, big-endian. There is no
//! checksum and no topic id: the committed offset is the only anchor, as it is there. Never written.

use super::{Expected, Refused, absolute, fits, set_ranges};
use crate::ledger::Ranges;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::io::Read;
use std::ops::Range;

/// A map of 4096 bytes says no more when it is uncompressed; more is a bomb.
const LARGEST: u64 = 4 << 20;

enum Shape {
    BitSet { short: bool },
    RunLength { short: bool },
}

pub(super) fn decode(metadata: &str, expected: &Expected) -> Result<Ranges, Refused> {
    let bytes = BASE64_STANDARD.decode(metadata).map_err(|_| Refused::Foreign)?;
    let (magic, body) = bytes.split_first().ok_or(Refused::Foreign)?;
    let (shape, is_compressed) = shape(*magic)?;
    let body = if is_compressed { decompress(body)? } else { body.to_vec() };
    let (relative, length) = match shape {
        Shape::BitSet { short } => bit_set(&body, short)?,
        Shape::RunLength { short } => run_length(&body, short)?,
    };
    fits(length, expected)?;
    absolute(relative, expected.base)
}

fn shape(magic: u8) -> Result<(Shape, bool), Refused> {
    Ok(match magic {
        b'l' => (Shape::BitSet { short: true }, false),
        b'a' => (Shape::BitSet { short: true }, true),
        b'o' => (Shape::BitSet { short: false }, false),
        b's' => (Shape::BitSet { short: false }, true),
        b'n' => (Shape::RunLength { short: true }, false),
        b'J' => (Shape::RunLength { short: true }, true),
        b'e' => (Shape::RunLength { short: false }, false),
        b'p' => (Shape::RunLength { short: false }, true),
        b'L' | 0xee => return Err(Refused::Unsupported), // a byte an offset: only in tests there
        _ => return Err(Refused::Foreign),
    })
}

fn decompress(bytes: &[u8]) -> Result<Vec<u8>, Refused> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(bytes).map_err(|_| Refused::Damaged)?;
    let mut out = Vec::new();
    let read = decoder.take(LARGEST + 1).read_to_end(&mut out).map_err(|_| Refused::Damaged)?;
    if read as u64 > LARGEST { Err(Refused::Damaged) } else { Ok(out) }
}

/// A big-endian number of 16 or 32 bits, and the rest. A negative one is damage.
fn number(bytes: &[u8], short: bool) -> Option<(u64, &[u8])> {
    match short {
        true => bytes.split_first_chunk().map(|(n, rest)| (i64::from(i16::from_be_bytes(*n)), rest)),
        false => bytes.split_first_chunk().map(|(n, rest)| (i64::from(i32::from_be_bytes(*n)), rest)),
    }
    .and_then(|(n, rest)| u64::try_from(n).ok().map(|n| (n, rest)))
}

/// Java writes no trailing clear words, and pads with a byte: the length says how many offsets are meant.
fn bit_set(bytes: &[u8], short: bool) -> Result<(Vec<Range<u64>>, u64), Refused> {
    let (length, bits) = number(bytes, short).ok_or(Refused::Damaged)?;
    let ranges = set_ranges(bits);
    if ranges.last().is_some_and(|last| last.end > length) {
        return Err(Refused::Damaged);
    }
    Ok((ranges, length))
}

fn run_length(mut bytes: &[u8], short: bool) -> Result<(Vec<Range<u64>>, u64), Refused> {
    let mut ranges = Vec::new();
    let (mut at, mut is_complete) = (0_u64, false);
    while !bytes.is_empty() {
        let (run, rest) = number(bytes, short).ok_or(Refused::Damaged)?;
        if is_complete && run > 0 {
            ranges.push(at..at + run);
        }
        (at, is_complete, bytes) = (at + run, !is_complete, rest);
    }
    Ok((ranges, at))
}
