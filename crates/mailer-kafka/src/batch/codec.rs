//! The codecs a batch may be compressed with, in the shapes the Java client writes and reads.

use super::malformed::Malformed;
use super::{lz4, snappy, zstd};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use mailer_core::{Error, Result};
use std::fmt;
use std::io::{self, Read, Write};

/// Most bytes one batch may unpack to. Producers limit a batch to far less before they compress it.
pub(super) const MAX_UNPACKED: usize = 128 << 20;
/// Unpacking begins with room for so many times the packed bytes.
const USUAL_RATIO: usize = 4;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Codec {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    /// The names of Kafka's `compression.type`.
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("none", Self::None),
        ("gzip", Self::Gzip),
        ("snappy", Self::Snappy),
        ("lz4", Self::Lz4),
        ("zstd", Self::Zstd),
    ];

    pub(super) fn of(number: i16) -> std::result::Result<Self, Malformed> {
        let known = Self::NAMES.get(usize::from(number as u8)).map(|(_, codec)| *codec);
        known.ok_or(Malformed::UnknownCodec(number as u8))
    }

    pub(super) fn number(self) -> i16 {
        self as i16
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Compresses the records of a batch.
pub(super) fn pack(codec: Codec, records: &[u8]) -> Result<Vec<u8>> {
    let packed = match codec {
        Codec::None => Ok(records.to_vec()),
        Codec::Gzip => gzip(records),
        Codec::Snappy => snappy::pack(records),
        Codec::Lz4 => lz4::pack(records),
        Codec::Zstd => zstd::pack(records),
    };
    packed.map_err(|e| Error::internal(format!("a batch could not be compressed with {codec}")).caused_by(e))
}

/// Unpacks the records of a batch.
pub(super) fn unpack(codec: Codec, packed: &[u8]) -> std::result::Result<Vec<u8>, Malformed> {
    let unpacked = match codec {
        Codec::None => Ok(packed.to_vec()),
        Codec::Gzip => read_all(MultiGzDecoder::new(packed), packed.len()),
        Codec::Snappy => snappy::unpack(packed),
        Codec::Lz4 => lz4::unpack(packed),
        Codec::Zstd => zstd::unpack(packed),
    };
    unpacked.map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => Malformed::TooLarge(codec),
        _ => Malformed::Compressed(codec, error.to_string()),
    })
}

fn gzip(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(records.len() / 2), Compression::default());
    encoder.write_all(records)?;
    encoder.finish()
}

/// Reads to the end, but never more than we are willing to hold, and never into room that nothing asks for.
pub(super) fn read_all(reader: impl Read, packed: usize) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::with_capacity((packed * USUAL_RATIO).min(MAX_UNPACKED));
    reader.take(MAX_UNPACKED as u64 + 1).read_to_end(&mut unpacked)?;
    match unpacked.len() {
        ..=MAX_UNPACKED => Ok(unpacked),
        _ => Err(too_large()),
    }
}

pub(super) fn too_large() -> io::Error {
    io::Error::from(io::ErrorKind::FileTooLarge)
}
