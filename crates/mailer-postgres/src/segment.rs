//! What is staged: rows in the text format of COPY, and where they belong.
//!
//! The bytes of a segment are a version, the length of the head, the head, and the rows. A checkpoint of an older release
//! must still be published, so versions are kept.

use mailer_core::{Error, Result, codec};
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
/// The version, and the length of the head.
const FIXED: usize = 1 + 4;

/// Where rows go. Identifiers are quoted as SQL wants them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Destination {
    pub(crate) table: String,
    pub(crate) columns: Vec<String>,
    /// Rows replace those with the same key; without any, all are added.
    pub(crate) key: Vec<String>,
}

/// The bytes before the rows.
pub(crate) fn head(destination: &Destination) -> Result<Vec<u8>> {
    let mut encoded = Vec::new();
    codec::encode(destination, &mut encoded)?;
    let length =
        u32::try_from(encoded.len()).map_err(|e| Error::internal("the head of a segment is too long").caused_by(e))?;
    Ok([&[VERSION][..], &length.to_le_bytes(), &encoded].concat())
}

/// The destination, and where the rows begin.
pub(crate) fn open(bytes: &[u8]) -> Result<(Destination, usize)> {
    let cut_off = || Error::corrupt("a staged segment of a PostgreSQL sink is cut off");
    match bytes.first() {
        Some(&VERSION) => {}
        Some(version) => {
            return Err(Error::corrupt(format!(
                "a staged segment of a PostgreSQL sink has version {version}; this release reads {VERSION}"
            )));
        }
        None => return Err(cut_off()),
    }
    let length = bytes.get(1..FIXED).and_then(|length| length.try_into().ok()).map(u32::from_le_bytes);
    let end = FIXED + length.ok_or_else(cut_off)? as usize;
    Ok((codec::decode(bytes.get(FIXED..end).ok_or_else(cut_off)?)?, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination() -> Destination {
        Destination { table: "t".into(), columns: vec!["a".into(), "b".into()], key: vec!["a".into()] }
    }

    #[test]
    fn a_segment_is_opened_as_it_was_written_and_damage_is_an_error() {
        let bytes = [head(&destination()).unwrap(), b"1\t2\n".to_vec()].concat();
        let (opened, rows) = open(&bytes).unwrap();
        assert_eq!((opened, &bytes[rows..]), (destination(), &b"1\t2\n"[..]));
        assert!(open(&bytes[..FIXED + 3]).unwrap_err().message().contains("cut off"));
        assert!(open(&[]).is_err());
        assert!(open(&[9, 0]).unwrap_err().message().contains("version 9"));
    }

    /// A checkpoint of a release may be published by a later one: the bytes are a promise.
    #[test]
    fn the_bytes_of_version_1_are_kept() {
        assert_eq!(head(&destination()).unwrap(), b"\x01\x0a\0\0\0\x01t\x02\x01a\x01b\x01\x01a");
    }
}
