//! Formats of bytes that are there: a key or a value, never null.

use bytes::Bytes;
use mailer_core::{Error, Result};
use serde::de::DeserializeOwned;
use std::fmt;
use std::marker::PhantomData;

/// Reads one key or value. What null means is said around it: [`crate::Value`], [`crate::OrNull`], [`crate::KeyedBy`].
///
/// ```
/// use mailer_kafka::{KafkaSource, Parse};
/// use mailer_core::{Error, Result};
///
/// #[derive(Clone)]
/// struct BigEndian;
///
/// impl Parse for BigEndian {
///     type Value = u64;
///
///     fn parse(&self, bytes: &bytes::Bytes) -> Result<u64> {
///         let bytes = bytes.as_ref().try_into().map_err(|_| Error::user_function("not 8 bytes"))?;
///         Ok(u64::from_be_bytes(bytes))
///     }
/// }
///
/// let counts = KafkaSource::new("localhost:9092", "counts").parse(BigEndian);
/// ```
pub trait Parse: Clone + Send + Sync + 'static {
    /// What it reads.
    type Value: Send + 'static;

    /// Reads it. A slice of `bytes` that is kept keeps the whole response it came in.
    fn parse(&self, bytes: &Bytes) -> Result<Self::Value>;
}

/// The bytes themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Parse for Plain {
    type Value = Bytes;

    fn parse(&self, bytes: &Bytes) -> Result<Bytes> {
        Ok(bytes.clone())
    }
}

/// UTF-8 text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text;

impl Parse for Text {
    type Value = String;

    fn parse(&self, bytes: &Bytes) -> Result<String> {
        let text = std::str::from_utf8(bytes);
        text.map(str::to_owned).map_err(|e| Error::user_function("it is not UTF-8 text").caused_by(e))
    }
}

/// JSON, by serde.
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T: DeserializeOwned + Send + 'static> Parse for Json<T> {
    type Value = T;

    fn parse(&self, bytes: &Bytes) -> Result<T> {
        serde_json::from_slice(bytes).map_err(|e| Error::user_function("it is not the expected JSON").caused_by(e))
    }
}

/// A protobuf message, by prost.
pub struct Protobuf<M>(PhantomData<fn() -> M>);

impl<M: prost::Message + Default + 'static> Parse for Protobuf<M> {
    type Value = M;

    fn parse(&self, bytes: &Bytes) -> Result<M> {
        let message = M::decode(bytes.clone());
        message.map_err(|e| Error::user_function("it is not the expected protobuf message").caused_by(e))
    }
}

macro_rules! formats_of_a_type {
    ($($format:ident),*) => {$(
        impl<T> Default for $format<T> {
            fn default() -> Self {
                Self(PhantomData)
            }
        }

        impl<T> Clone for $format<T> {
            fn clone(&self) -> Self {
                Self::default()
            }
        }

        impl<T> fmt::Debug for $format<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($format))
            }
        }
    )*};
}

formats_of_a_type!(Json, Protobuf);

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<P: Parse>(format: &P, bytes: &'static [u8]) -> String {
        format.parse(&Bytes::from_static(bytes)).err().unwrap().message().to_owned()
    }

    #[test]
    fn what_is_written_in_a_format_is_read() {
        assert_eq!(Plain.parse(&Bytes::from_static(b"\xff")).unwrap(), &b"\xff"[..]);
        assert_eq!(Text.parse(&Bytes::from_static("ä".as_bytes())).unwrap(), "ä");
        assert_eq!(Json::<(u8, String)>::default().parse(&Bytes::from_static(b"[1,\"a\"]")).unwrap(), (1, "a".into()));
        // Protobuf's own example: field 1 is 150.
        assert_eq!(Protobuf::<Number>::default().parse(&Bytes::from_static(&[8, 0x96, 1])).unwrap().a, 150);
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Number {
        #[prost(int32, tag = "1")]
        a: i32,
    }

    #[test]
    fn what_is_not_says_what_was_expected() {
        assert!(refused(&Text, b"\xff").contains("UTF-8"));
        assert!(refused(&Json::<u8>::default(), b"300").contains("expected JSON: "));
        assert!(refused(&Protobuf::<Number>::default(), &[8]).contains("protobuf"));
    }
}
