//! Which records above a committed offset are complete, in the metadata string of the commit.
//!
//! # Format, version 1
//! The text `mpc1:` and then, in base64 for URLs without padding:
//!
//! | bytes | what |
//! |---|---|
//! | 16 | topic id, all zero where the broker knows none |
//! | varint | base: the committed offset, which is not complete itself |
//! | varint | length: how many offsets from the base on are described |
//! | 1 | encoding: 0 runs, 1 bitmap |
//! | … | runs: varints, in turn the length of an incomplete and of a complete run, beginning with an incomplete one; the last one is complete |
//! | | bitmap: a bit an offset, the lowest bit first, set when complete |
//! | 4 | CRC-32C of everything before it, little-endian |
//!
//! Varints are unsigned LEB128. The writer takes the smaller encoding. When neither fits, it takes the one that
//! describes more completed offsets in the space there is, and cuts it: a map is never dropped whole. Offsets behind the
//! end of a map are not complete.
//!
//! The reader believes a map only if everything fits: checksum, topic id, base = committed offset, length below the end
//! of the log, every byte used. Anything else is ignored with a reason, and records are then handled once more; nothing
//! is skipped. It also reads the maps of Confluent's parallel-consumer, see [`confluent`].

mod bytes;
pub mod confluent;
mod encode;

pub use encode::encode;

use crate::ledger::Ranges;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use bytes::Reader;
use std::fmt;
use std::ops::Range;

/// What Kafka's brokers take by default (`offset.metadata.max.bytes`).
pub const DEFAULT_MAX_BYTES: usize = 4_096;
/// How a map of version 1 begins.
const PREFIX: &str = "mpc1:";
const RUNS: u8 = 0;
const BITMAP: u8 = 1;
const CHECKSUM: usize = 4;
/// A map that says more is not ours: no window is that long.
const LONGEST: u64 = 1 << 32;

/// What a map has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The id of the topic.
    pub topic_id: [u8; 16],
    /// The committed offset.
    pub base: i64,
    /// The end of the log; a map that reaches beyond it is of another log.
    pub log_end: i64,
}

/// Why a metadata string is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Neither ours nor Confluent's.
    Foreign,
    /// Cut, changed, or with something left over.
    Damaged,
    /// The checksum is another.
    Checksum,
    /// It belongs to a topic that was deleted and made again.
    OtherTopic,
    /// It belongs to another committed offset.
    OtherBase,
    /// It speaks of offsets beyond the end of the log.
    BeyondLog,
    /// It says that the committed offset itself is complete, which no writer would say.
    CompleteBase,
    /// An encoding of a later version, or one that is not supported.
    Unsupported,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "not an offset map",
            Self::Damaged => "damaged",
            Self::Checksum => "its checksum does not match",
            Self::OtherTopic => "of another topic id",
            Self::OtherBase => "of another committed offset",
            Self::BeyondLog => "reaches beyond the end of the log",
            Self::CompleteBase => "claims the committed offset itself",
            Self::Unsupported => "of an unsupported encoding",
        })
    }
}

/// Reads a metadata string: the offsets above `expected.base` that are complete. An empty string says that none is.
///
/// # Errors
/// Why it is not believed; then nothing is.
pub fn decode(metadata: &str, expected: &Expected) -> Result<Ranges, Refused> {
    if metadata.is_empty() {
        return Ok(Ranges::default());
    }
    let Some(text) = metadata.strip_prefix(PREFIX) else {
        return confluent::decode(metadata, expected);
    };
    let bytes = BASE64.decode(text).map_err(|_| Refused::Damaged)?;
    body(checked(&bytes)?, expected)
}

/// The bytes before the checksum, if it is theirs.
fn checked(bytes: &[u8]) -> Result<&[u8], Refused> {
    let (body, checksum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(Refused::Damaged)?;
    match crc32c::crc32c(body) == u32::from_le_bytes(*checksum) {
        true => Ok(body),
        false => Err(Refused::Checksum),
    }
}

fn body(bytes: &[u8], expected: &Expected) -> Result<Ranges, Refused> {
    let mut reader = Reader(bytes);
    let topic_id: [u8; 16] = reader.array().ok_or(Refused::Damaged)?;
    let base = reader.varint().ok_or(Refused::Damaged)?;
    let length = reader.varint().ok_or(Refused::Damaged)?;
    let [encoding] = reader.array().ok_or(Refused::Damaged)?;
    if topic_id != expected.topic_id {
        return Err(Refused::OtherTopic);
    }
    if i64::try_from(base) != Ok(expected.base) {
        return Err(Refused::OtherBase);
    }
    fits(length, expected)?;
    let relative = match encoding {
        RUNS => runs(reader, length)?,
        BITMAP => bitmap(reader.0, length)?,
        _ => return Err(Refused::Unsupported),
    };
    absolute(relative, expected.base)
}

/// Whether `length` offsets from the base on are in the log.
fn fits(length: u64, expected: &Expected) -> Result<(), Refused> {
    let room = u64::try_from(expected.log_end.saturating_sub(expected.base)).unwrap_or(0);
    match length <= room && length <= LONGEST {
        true => Ok(()),
        false => Err(Refused::BeyondLog),
    }
}

/// Ranges relative to the base become offsets; the base itself must not be in them.
fn absolute(relative: Vec<Range<u64>>, base: i64) -> Result<Ranges, Refused> {
    match relative.first() {
        Some(first) if first.start == 0 => Err(Refused::CompleteBase),
        _ => Ok(relative.into_iter().map(|r| base + r.start as i64..base + r.end as i64).collect()),
    }
}

fn runs(mut reader: Reader<'_>, length: u64) -> Result<Vec<Range<u64>>, Refused> {
    let mut ranges = Vec::new();
    let mut at = 0_u64;
    while at < length {
        let open = reader.varint().ok_or(Refused::Damaged)?;
        let complete = reader.varint().ok_or(Refused::Damaged)?;
        let start = at.checked_add(open).ok_or(Refused::Damaged)?;
        at = start.checked_add(complete).filter(|end| *end <= length).ok_or(Refused::Damaged)?;
        if complete == 0 || (open == 0 && !ranges.is_empty()) {
            return Err(Refused::Damaged); // would not end, and no writer writes it
        }
        ranges.push(start..at);
    }
    if reader.0.is_empty() { Ok(ranges) } else { Err(Refused::Damaged) }
}

/// Ranges of set bits, lowest bit first; bits behind `length` must be clear.
fn bitmap(bytes: &[u8], length: u64) -> Result<Vec<Range<u64>>, Refused> {
    if bytes.len() as u64 != length.div_ceil(8) {
        return Err(Refused::Damaged);
    }
    let ranges = set_ranges(bytes);
    if ranges.last().is_some_and(|last| last.end > length) { Err(Refused::Damaged) } else { Ok(ranges) }
}

fn set_ranges(bytes: &[u8]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let set = |number: &u64| bytes[(number / 8) as usize] & (1 << (number % 8)) != 0;
    for number in (0..bytes.len() as u64 * 8).filter(set) {
        match ranges.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}

/// Entry for the fuzzer: any string and any expectation; must not panic, and must not claim the base or what is beyond.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let (head, text) = data.split_at(data.len().min(2));
    let base = i64::from(head.first().copied().unwrap_or(0));
    let log_end = base + 64 * i64::from(head.get(1).copied().unwrap_or(0));
    let expected = Expected { topic_id: [0; 16], base, log_end };
    let foreign = String::from_utf8_lossy(text);
    // The same bytes as a well-formed envelope, so that the fuzzer need not find a checksum.
    let sealed = encode::seal([&[0; 16], text].concat());
    for metadata in [&*foreign, &sealed] {
        for range in decode(metadata, &expected).iter().flat_map(|ranges| ranges.from(i64::MIN)) {
            assert!(range.start > base && range.end <= log_end, "{range:?} of {base}..{log_end}");
        }
    }
}

#[cfg(test)]
mod tests;
