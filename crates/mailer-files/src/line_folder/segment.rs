//! What is staged: lines, and which files they belong to.
//!
//! The bytes of a segment are a version, the length of the head, the head, and the lines as they will stand in the file. A
//! checkpoint of an older release must still be published, so versions are kept.

use mailer_core::{Error, Result, codec};
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
/// The version, and the length of the head.
const FIXED: usize = 1 + 4;

/// What the files of a sink look like. Segments of one shape are in one file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Shape {
    pub(super) prefix: String,
    pub(super) extension: String,
    /// Without a line end; empty: none.
    pub(super) first_line: Vec<u8>,
}

impl Shape {
    /// Only the first line tells their files apart.
    pub(super) fn is_named_like(&self, other: &Self) -> bool {
        (&self.prefix, &self.extension) == (&other.prefix, &other.extension)
    }
}

/// The bytes before the lines.
pub(super) fn head(shape: &Shape) -> Result<Vec<u8>> {
    let mut encoded = Vec::new();
    codec::encode(shape, &mut encoded)?;
    let length = u32::try_from(encoded.len())
        .map_err(|e| Error::invalid_plan("the first line of the files is too long").caused_by(e))?;
    Ok([&[VERSION][..], &length.to_le_bytes(), &encoded].concat())
}

/// The shape and the lines of a segment.
pub(super) fn open(bytes: &[u8]) -> Result<(Shape, &[u8])> {
    let cut_off = || Error::corrupt("a staged segment of a file sink is cut off");
    match bytes.first() {
        Some(&VERSION) => {}
        Some(version) => {
            let message =
                format!("a staged segment of a file sink has version {version}; this release reads {VERSION}");
            return Err(Error::corrupt(message));
        }
        None => return Err(cut_off()),
    }
    let length = bytes.get(1..FIXED).and_then(|length| length.try_into().ok()).map(u32::from_le_bytes);
    let end = FIXED + length.ok_or_else(cut_off)? as usize;
    let shape = codec::decode(bytes.get(FIXED..end).ok_or_else(cut_off)?)?;
    Ok((shape, &bytes[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_opened_as_it_was_written_and_damage_is_an_error() {
        let shape = Shape { prefix: "part".into(), extension: "csv".into(), first_line: b"a,b".to_vec() };
        let bytes = [head(&shape).unwrap(), b"1,2\n".to_vec()].concat();
        assert_eq!(open(&bytes).unwrap(), (shape, &b"1,2\n"[..]));
        assert!(open(&bytes[..FIXED + 3]).unwrap_err().message().contains("cut off"));
        assert!(open(&[]).is_err());
        assert!(open(&[9, 0]).unwrap_err().message().contains("version 9"));
    }

    /// A checkpoint of a release may be published by a later one: the bytes are a promise.
    #[test]
    fn the_bytes_of_version_1_are_kept() {
        let shape = Shape { prefix: "p".into(), extension: "txt".into(), first_line: b"x".to_vec() };
        assert_eq!(head(&shape).unwrap(), b"\x01\x08\0\0\0\x01p\x03txt\x01x");
    }
}
