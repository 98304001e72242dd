//! What is wrong with bytes that should be record batches.

use super::codec::{Codec, MAX_UNPACKED};
use mailer_core::{Error, ErrorKind};
use std::fmt;

/// Why bytes are not record batches that we can read. The caller knows where they came from and says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// Message format 0 or 1, which Kafka 4 does not serve any more.
    OldFormat(u8),
    /// A format that does not exist yet.
    UnknownFormat(u8),
    /// Numbers in the header contradict each other or the bytes.
    Header(&'static str),
    /// The bytes are not those that were written.
    Checksum {
        /// What the header says.
        stored: u32,
        /// What the bytes say.
        computed: u32,
    },
    /// A codec that does not exist yet.
    UnknownCodec(u8),
    /// The compressed bytes do not unpack.
    Compressed(Codec, String),
    /// They unpack to more than we are willing to hold.
    TooLarge(Codec),
    /// A record does not hold together.
    Record {
        /// Its position in the batch, from 0.
        index: u32,
        /// What is wrong.
        what: &'static str,
    },
}

impl Malformed {
    /// The error a user sees; `place` is topic, partition and offset: `orders-3@42`.
    pub(crate) fn into_error(self, place: impl fmt::Display) -> Error {
        Error::new(self.kind(), format!("the record batch at {place} cannot be read: {self}"))
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::OldFormat(_) | Self::UnknownFormat(_) | Self::UnknownCodec(_) | Self::TooLarge(_) => {
                ErrorKind::Refused
            }
            _ => ErrorKind::Corrupt,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OldFormat(magic) => write!(
                f,
                "it has message format v{magic}, from before Kafka 0.11; only v2 is read: copy the topic with a current \
                 producer"
            ),
            Self::UnknownFormat(magic) => write!(f, "it has message format {magic}; this release reads v2"),
            Self::Header(what) => write!(f, "its header does not hold together: {what}"),
            Self::Checksum { stored, computed } => {
                write!(f, "its checksum is {stored:#010x} but its bytes give {computed:#010x}")
            }
            Self::UnknownCodec(codec) => {
                write!(f, "it is compressed with codec {codec}; known: 1 gzip, 2 snappy, 3 lz4, 4 zstd")
            }
            Self::Compressed(codec, why) => write!(f, "its {codec} bytes do not unpack: {why}"),
            Self::TooLarge(codec) => {
                write!(f, "its {codec} bytes unpack to more than {} MiB", MAX_UNPACKED >> 20)
            }
            Self::Record { index, what } => write!(f, "record {index} in it does not hold together: {what}"),
        }
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_and_what() {
        let error = Malformed::Checksum { stored: 1, computed: 2 }.into_error("orders-3@42");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("orders-3@42") && error.message().contains("checksum"), "{error}");
        let error = Malformed::OldFormat(1).into_error("orders-3@42");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.message().contains("message format v1"), "{error}");
    }
}
