//! The format of state files, frozen: sorted entries, and tombstones for keys that were removed.
//!
//! ```text
//! "MAILERST" | version u32 | entries: key length u32 | value length u32, 0xffff_ffff for a tombstone | key | value
//! ```
//!
//! All numbers are big-endian. Length and checksum of the whole file are in the manifest.

use mailer_core::{Error, Result};

const MAGIC: &[u8; 8] = b"MAILERST";
const VERSION: u32 = 1;
const TOMBSTONE: u32 = u32::MAX;

/// A key with its value, or with `None` for a tombstone.
pub(crate) type Entry<'a> = (&'a [u8], Option<&'a [u8]>);

/// The bytes of a file with these entries, which are in key order.
pub(crate) fn encode<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Result<Vec<u8>> {
    let mut out = [MAGIC.as_slice(), &VERSION.to_be_bytes()].concat();
    for (key, value) in entries {
        let value_length = value.map_or(Ok(TOMBSTONE), |value| length(value, TOMBSTONE - 1))?;
        out.extend_from_slice(&length(key, u32::MAX)?.to_be_bytes());
        out.extend_from_slice(&value_length.to_be_bytes());
        out.extend_from_slice(key);
        out.extend_from_slice(value.unwrap_or_default());
    }
    Ok(out)
}

fn length(part: &[u8], limit: u32) -> Result<u32> {
    u32::try_from(part.len()).ok().filter(|length| *length <= limit).ok_or_else(|| {
        Error::user_function(format!("a state entry of {} bytes; keys and values hold at most 4 GiB", part.len()))
    })
}

/// Hands the entries of a file to `visit`. `name` is for messages.
pub(crate) fn decode<'a>(name: &str, bytes: &'a [u8], mut visit: impl FnMut(Entry<'a>)) -> Result<()> {
    let corrupt = |what: &str| Error::corrupt(format!("{name}: {what}"));
    let body = bytes.strip_prefix(MAGIC).ok_or_else(|| corrupt("not a Mailer state file"))?;
    let (version, mut rest) = take_number(body).ok_or_else(|| corrupt("the version is cut off"))?;
    if version != VERSION {
        return Err(Error::invalid_plan(format!(
            "{name}: state file version {version}, this build reads version {VERSION}: use a newer build"
        )));
    }
    while !rest.is_empty() {
        let (entry, behind) = take_entry(rest).ok_or_else(|| corrupt("an entry is cut off"))?;
        visit(entry);
        rest = behind;
    }
    Ok(())
}

fn take_entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (key_length, rest) = take_number(bytes)?;
    let (value_length, rest) = take_number(rest)?;
    let (key, rest) = rest.split_at_checked(key_length as usize)?;
    if value_length == TOMBSTONE {
        return Some(((key, None), rest));
    }
    let (value, rest) = rest.split_at_checked(value_length as usize)?;
    Some(((key, Some(value)), rest))
}

fn take_number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::ErrorKind;

    const ENTRIES: [Entry<'static>; 4] =
        [(b"", Some(b"empty key")), (b"a", Some(b"")), (b"b", None), (b"c\xff", Some(b"value"))];

    fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>> {
        let mut out = Vec::new();
        decode("file", bytes, |entry| out.push(entry)).map(|()| out)
    }

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    #[test]
    fn version_1_is_written_and_read_byte_by_byte() {
        let frozen = unhex(include_str!("../testdata/v1/four-entries.txt"));
        assert_eq!(encode(ENTRIES.into_iter()).unwrap(), frozen);
        assert_eq!(entries(&frozen).unwrap(), ENTRIES);
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = encode(ENTRIES.into_iter()).unwrap();
        assert_eq!(entries(&good[..good.len() - 1]).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(entries(&good[..10]).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(entries(b"").unwrap_err().kind(), ErrorKind::Corrupt);
        let newer = [b"MAILERST".as_slice(), &[0, 0, 0, 2]].concat();
        assert_eq!(
            entries(&newer).unwrap_err().to_string(),
            "file: state file version 2, this build reads version 1: use a newer build"
        );
    }
}
