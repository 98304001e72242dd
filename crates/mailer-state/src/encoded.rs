//! A key in its compact encoding, small enough to be passed about.

use mailer_core::{Result, codec};
use serde::ser::{Serialize, SerializeTuple, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// Bytes that fit without an allocation: with them an encoded key is as large as a `String`.
const INLINE: usize = 22;

/// The compact encoding of a key: what stands in for a key of any type where its bytes are enough. Ordered by bytes, as
/// the store is. Up to 22 bytes lie in the value itself.
///
/// As a value of `serde` it is its bytes and nothing else, so state under an encoded key lies where state under the key
/// itself would lie.
///
/// ```
/// use mailer_state::EncodedKey;
/// let key = EncodedKey::of(&"alice", &mut Vec::new()).unwrap();
/// assert_eq!(key.as_bytes(), b"\x05alice");
/// assert_eq!(key.decode::<String>().unwrap(), "alice");
/// ```
#[derive(Clone)]
pub struct EncodedKey(Bytes);

#[derive(Clone)]
enum Bytes {
    Inline(u8, [u8; INLINE]),
    Boxed(Box<[u8]>),
}

impl EncodedKey {
    /// Encodes `key`; `scratch` is cleared and used on the way.
    #[inline]
    pub fn of<K: Serialize + ?Sized>(key: &K, scratch: &mut Vec<u8>) -> Result<Self> {
        scratch.clear();
        codec::encode(key, scratch)?;
        Ok(Self::from_bytes(scratch))
    }

    /// A key that is encoded already.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut inline = [0; INLINE];
        match inline.get_mut(..bytes.len()) {
            Some(part) => {
                part.copy_from_slice(bytes);
                Self(Bytes::Inline(bytes.len() as u8, inline))
            }
            None => Self(Bytes::Boxed(bytes.into())),
        }
    }

    /// The encoding.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline(length, bytes) => &bytes[..usize::from(*length)],
            Bytes::Boxed(bytes) => bytes,
        }
    }

    /// The key itself.
    pub fn decode<K: serde::de::DeserializeOwned>(&self) -> Result<K> {
        codec::decode(self.as_bytes())
    }
}

impl PartialEq for EncodedKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // Behind the key lie zeros: whole arrays are compared, without a loop.
            (Bytes::Inline(length, bytes), Bytes::Inline(other_length, other)) => {
                length == other_length && bytes == other
            }
            _ => self.as_bytes() == other.as_bytes(),
        }
    }
}

impl Eq for EncodedKey {}

impl PartialOrd for EncodedKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EncodedKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            // Zeros come first, so what lies behind a key changes nothing; of equal arrays the shorter key is less.
            (Bytes::Inline(length, bytes), Bytes::Inline(other_length, other)) => {
                bytes.cmp(other).then(length.cmp(other_length))
            }
            _ => self.as_bytes().cmp(other.as_bytes()),
        }
    }
}

impl Hash for EncodedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for EncodedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedKey({})", self.as_bytes().escape_ascii())
    }
}

/// A tuple of bytes: in the compact form a tuple has no length in front.
impl Serialize for EncodedKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = self.as_bytes();
        let mut tuple = serializer.serialize_tuple(bytes.len())?;
        bytes.iter().try_for_each(|byte| tuple.serialize_element(byte))?;
        tuple.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_keys_are_their_bytes_in_order_equality_and_encoding() {
        assert_eq!(size_of::<EncodedKey>(), 24, "as the documentation of timers counts");
        let sevens = [0, 1, 21, 22, 23, 100].iter().map(|&length| vec![7; length]);
        let zeros = [1, 2, 22, 23].iter().map(|&length| vec![0; length]);
        let mixed = [[7, 0].to_vec(), [7, 0, 7].to_vec(), [7, 8].to_vec()];
        let keys: Vec<Vec<u8>> = sevens.chain(zeros).chain(mixed).collect();
        for (a, b) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
            let (left, right) = (EncodedKey::from_bytes(a), EncodedKey::from_bytes(b));
            assert_eq!(left.as_bytes(), a);
            assert_eq!(left.cmp(&right), a.cmp(b));
            assert_eq!(left == right, a == b);
        }
        for key in ["alice", "a name that is longer than twenty-two bytes"] {
            let (mut scratch, mut again) = (Vec::new(), Vec::new());
            let encoded = EncodedKey::of(key, &mut scratch).unwrap();
            codec::encode(&encoded, &mut again).unwrap();
            assert_eq!(again, scratch);
            assert_eq!(encoded.decode::<String>().unwrap(), key);
        }
    }
}
