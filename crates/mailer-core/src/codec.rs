//! The compact binary form of `serde` values: keys, state, source positions.
//!
//! The format is postcard's (<https://postcard.jamesmunns.com/wire-format>): integers as varints, no field names.
//! [`Codec`] is the seam for another form per state.

use crate::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};

/// Turns values of `T` into bytes and back. State takes any codec; [`Compact`] is the default.
pub trait Codec<T>: Send + 'static {
    /// Appends the encoding of `value` to `out`.
    fn encode(&self, value: &T, out: &mut Vec<u8>) -> Result<()>;
    /// Reads what [`Codec::encode`] wrote; other bytes are [`crate::ErrorKind::Corrupt`].
    fn decode(&self, bytes: &[u8]) -> Result<T>;
}

/// The default codec: [`encode`] and [`decode`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Compact;

impl<T: Serialize + DeserializeOwned> Codec<T> for Compact {
    #[inline]
    fn encode(&self, value: &T, out: &mut Vec<u8>) -> Result<()> {
        encode(value, out)
    }

    #[inline]
    fn decode(&self, bytes: &[u8]) -> Result<T> {
        decode(bytes)
    }
}

/// Appends the compact encoding of `value` to `out`.
///
/// ```
/// let mut bytes = Vec::new();
/// mailer_core::codec::encode(&("alice", 7u32), &mut bytes).unwrap();
/// assert_eq!(bytes, b"\x05alice\x07");
/// assert_eq!(mailer_core::codec::decode::<(String, u32)>(&bytes).unwrap(), ("alice".into(), 7));
/// ```
#[inline]
pub fn encode<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<()> {
    let buffer = std::mem::take(out);
    *out = postcard::to_extend(value, buffer)
        .map_err(|e| Error::user_function("a value could not be encoded for state or exchange").caused_by(e))?;
    Ok(())
}

/// Reads a value back; trailing bytes are an error.
#[inline]
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => {
            Err(Error::corrupt(format!("{} bytes follow a decoded value; has its type changed?", rest.len())))
        }
        Err(e) => Err(Error::corrupt("stored bytes do not decode; has the type changed?").caused_by(e)),
    }
}
