//! The bytes around a manifest: they say what it is, which version wrote it, and whether it is whole.
//!
//! `magic "MAILCKPT" | format version u32 | payload length u64 | CRC-32C u32 | payload (protobuf)`, integers little-endian;
//! the checksum covers version, length and payload. This layout never changes; a new format changes the payload only.

use crate::manifest::{FORMAT_VERSION, Manifest};
use mailer_core::{Error, Result};
use prost::Message;

const MAGIC: &[u8; 8] = b"MAILCKPT";
const HEADER: usize = 24;

/// The bytes of a manifest file.
pub fn encode_manifest(manifest: &Manifest) -> Vec<u8> {
    let payload = manifest.encode_to_vec();
    let version = manifest.format_version.to_le_bytes();
    let length = (payload.len() as u64).to_le_bytes();
    let checksum = checksum(&version, &length, &payload).to_le_bytes();
    [&MAGIC[..], &version, &length, &checksum, &payload].concat()
}

/// Reads what [`encode_manifest`] wrote. Bytes that are not whole are [`mailer_core::ErrorKind::Corrupt`]; a format newer
/// than this code is [`mailer_core::ErrorKind::Refused`]. Messages begin with what is wrong: put the file's name before.
pub fn decode_manifest(bytes: &[u8]) -> Result<Manifest> {
    let (version, payload) = open(bytes)?;
    if version > FORMAT_VERSION {
        return Err(Error::refused(format!(
            "written by a newer Mailer (format {version}, this one reads up to {FORMAT_VERSION}): start that version"
        )));
    }
    let manifest = Manifest::decode(payload)
        .map_err(|e| Error::corrupt("the checksum is right but the manifest does not decode").caused_by(e))?;
    if manifest.format_version != version {
        return Err(Error::corrupt(format!("format {version} outside, {} inside", manifest.format_version)));
    }
    Ok(manifest)
}

fn open(bytes: &[u8]) -> Result<(u32, &[u8])> {
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(Error::corrupt(format!("{} bytes are too few for a manifest", bytes.len())));
    };
    let [magic @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] = header;
    if magic != MAGIC {
        return Err(Error::corrupt("not a manifest: it does not begin with MAILCKPT"));
    }
    let (version, length, stored) = (array(header, 8), array(header, 12), array(header, 20));
    if u64::from_le_bytes(length) != payload.len() as u64 {
        let promised = u64::from_le_bytes(length);
        return Err(Error::corrupt(format!("{} bytes follow the header, which says {promised}", payload.len())));
    }
    if u32::from_le_bytes(stored) != checksum(&version, &length, payload) {
        return Err(Error::corrupt("the checksum does not match"));
    }
    Ok((u32::from_le_bytes(version), payload))
}

fn array<const N: usize>(header: &[u8; HEADER], at: usize) -> [u8; N] {
    std::array::from_fn(|i| header[at + i])
}

fn checksum(version: &[u8; 4], length: &[u8; 8], payload: &[u8]) -> u32 {
    [&version[..], length, payload].iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{File, Operator, Published, Segment, Source, Split, State, Target};
    use mailer_core::ErrorKind;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn file() -> impl Strategy<Value = File> {
        (".{0,12}", any::<u64>(), any::<u32>()).prop_map(|(name, length, checksum)| File { name, length, checksum })
    }

    fn split() -> impl Strategy<Value = Split> {
        (".{0,8}", any::<u32>(), vec(any::<u8>(), 0..9), vec(any::<u8>(), 0..9))
            .prop_map(|(name, index, position, watermark)| Split { name, index, position, watermark })
    }

    fn source() -> impl Strategy<Value = Source> {
        (".{0,8}", vec(split(), 0..4)).prop_map(|(name, splits)| Source { name, splits })
    }

    fn state() -> impl Strategy<Value = State> {
        (".{0,8}", any::<u32>(), any::<u32>()).prop_map(|(name, id, schema_version)| State { name, id, schema_version })
    }

    fn operator() -> impl Strategy<Value = Operator> {
        (".{0,8}", any::<u32>(), vec(state(), 0..3), any::<u32>(), vec(any::<i64>(), 0..3)).prop_map(
            |(name, id, states, parallelism, watermarks)| Operator { name, id, states, parallelism, watermarks },
        )
    }

    fn target() -> impl Strategy<Value = Target> {
        (".{0,8}", vec(any::<u8>(), 0..9), vec(".{0,8}", 0..3), any::<(u64, u64)>()).prop_map(
            |(name, recorded, sinks, (checkpoint, nonce))| Target {
                name,
                recorded,
                sinks,
                previous: Published { checkpoint, nonce },
            },
        )
    }

    fn segment() -> impl Strategy<Value = Segment> {
        (".{0,8}", any::<(u32, u64, u64)>(), file()).prop_map(|(sink, (worker, sequence, records), file)| Segment {
            sink,
            worker,
            sequence,
            records,
            file,
        })
    }

    prop_compose! {
        fn manifest()(
            (id, epoch, nonce, created_ms, key_groups) in any::<(u64, u64, u64, i64, u32)>(),
            (job, state_backend) in (".{0,8}", ".{0,8}"),
            kind in 0..4i32,
            sources in vec(source(), 0..3),
            operators in vec(operator(), 0..3),
            state_files in vec(file(), 0..4),
            targets in vec(target(), 0..3),
            segments in vec(segment(), 0..4),
        ) -> Manifest {
            Manifest {
                format_version: FORMAT_VERSION,
                job, id, epoch, nonce, kind, created_ms, key_groups, sources, operators, state_backend, state_files,
                targets, segments,
            }
        }
    }

    proptest! {
        #[test]
        fn a_manifest_round_trips(manifest in manifest()) {
            prop_assert_eq!(decode_manifest(&encode_manifest(&manifest)).unwrap(), manifest);
        }

        #[test]
        fn any_flipped_bit_is_corrupt(manifest in manifest(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let mut bytes = encode_manifest(&manifest);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(decode_manifest(&bytes).unwrap_err().kind(), ErrorKind::Corrupt);
        }

        #[test]
        fn any_cut_is_corrupt(manifest in manifest(), at in any::<prop::sample::Index>()) {
            let bytes = encode_manifest(&manifest);
            let cut = &bytes[..at.index(bytes.len())];
            prop_assert_eq!(decode_manifest(cut).unwrap_err().kind(), ErrorKind::Corrupt);
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..200)) {
            prop_assert!(decode_manifest(&bytes).is_err());
        }
    }

    #[test]
    fn a_newer_format_is_refused_not_called_corrupt() {
        let newer = Manifest { format_version: FORMAT_VERSION + 1, ..Manifest::default() };
        let error = decode_manifest(&encode_manifest(&newer)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.message().contains("newer Mailer (format 2, this one reads up to 1)"), "{error}");
    }

    #[test]
    fn fields_of_a_later_minor_version_are_skipped() {
        let mut payload = Manifest { format_version: FORMAT_VERSION, id: 7, ..Manifest::default() }.encode_to_vec();
        payload.extend([0xf8, 0x06, 0x01]); // field 111, varint 1
        let (version, length) = (FORMAT_VERSION.to_le_bytes(), (payload.len() as u64).to_le_bytes());
        let crc = checksum(&version, &length, &payload).to_le_bytes();
        let bytes = [&MAGIC[..], &version, &length, &crc, &payload].concat();
        assert_eq!(decode_manifest(&bytes).unwrap().id, 7);
    }
}
