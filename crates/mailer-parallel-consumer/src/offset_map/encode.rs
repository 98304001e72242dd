//! Writing a map into the space there is.

use super::bytes::put_varint;
use super::{BASE64, BITMAP, CHECKSUM, PREFIX, RUNS};
use crate::ledger::Ranges;
use base64::Engine;
use std::ops::Range;

/// The metadata string for a commit of `base`: as much of `completed` as fits into `max_bytes`. Empty when nothing is
/// complete above the base, or when not even one range fits.
///
/// `completed` are offsets above `base`: ranges that rise. They may touch, as what was completed here touches what an
/// earlier map said.
pub fn encode(topic_id: [u8; 16], base: i64, completed: impl Iterator<Item = Range<i64>>, max_bytes: usize) -> String {
    let room = (max_bytes.saturating_sub(PREFIX.len()) / 4 * 3).saturating_sub(CHECKSUM);
    let header = header(topic_id, base);
    let room = room.saturating_sub(header.len());
    let relative = Ranges::merged(completed).map(|range| (range.start - base) as u64..(range.end - base) as u64);
    match smaller(relative, room) {
        Some(body) => seal([header, body].concat()),
        None => String::new(),
    }
}

fn header(topic_id: [u8; 16], base: i64) -> Vec<u8> {
    let mut header = topic_id.to_vec();
    put_varint(&mut header, base.max(0) as u64);
    header
}

/// Adds the checksum and the clothing.
pub(super) fn seal(mut bytes: Vec<u8>) -> String {
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend(checksum.to_le_bytes());
    let mut text = PREFIX.to_owned();
    BASE64.encode_string(&bytes, &mut text);
    text
}

/// A body that is being written, and what it says so far.
struct Body {
    bytes: Vec<u8>,
    /// Offsets that it describes.
    length: u64,
    /// Offsets that it calls complete.
    complete: u64,
    /// There was more, but no room.
    is_cut: bool,
}

impl Body {
    fn new() -> Self {
        Self { bytes: Vec::new(), length: 0, complete: 0, is_cut: false }
    }

    fn finish(self, encoding: u8) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 11);
        put_varint(&mut bytes, self.length);
        bytes.push(encoding);
        bytes.extend(self.bytes);
        bytes
    }
}

/// Length and encoding come before the body: ten bytes and one.
const BEFORE_BODY: usize = 11;

fn smaller(ranges: impl Iterator<Item = Range<u64>>, room: usize) -> Option<Vec<u8>> {
    let room = room.checked_sub(BEFORE_BODY)?;
    let (mut runs, mut bitmap) = (Body::new(), Body::new());
    for range in ranges {
        if !runs.is_cut {
            put_run(&mut runs, &range, room);
        }
        if !bitmap.is_cut {
            put_bits(&mut bitmap, &range, room);
        }
        if runs.is_cut && bitmap.is_cut {
            break;
        }
    }
    if runs.complete == 0 && bitmap.complete == 0 {
        return None;
    }
    let runs_win = (runs.complete, bitmap.bytes.len()) >= (bitmap.complete, runs.bytes.len());
    Some(if runs_win { runs.finish(RUNS) } else { bitmap.finish(BITMAP) })
}

fn put_run(body: &mut Body, range: &Range<u64>, room: usize) {
    let before = body.bytes.len();
    put_varint(&mut body.bytes, range.start - body.length);
    put_varint(&mut body.bytes, range.end - range.start);
    if body.bytes.len() > room {
        body.bytes.truncate(before);
        body.is_cut = true;
        return;
    }
    body.length = range.end;
    body.complete += range.end - range.start;
}

fn put_bits(body: &mut Body, range: &Range<u64>, room: usize) {
    let end = range.end.min(room as u64 * 8);
    body.is_cut = end < range.end;
    if end <= range.start {
        return;
    }
    body.bytes.resize(end.div_ceil(8) as usize, 0);
    for number in range.start..end {
        body.bytes[(number / 8) as usize] |= 1 << (number % 8);
    }
    body.length = end;
    body.complete += end - range.start;
}
