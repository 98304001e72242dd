//! The frozen layout of keys in every store and every snapshot. Checkpoints depend on it: it never changes, and the
//! vectors under `testdata/v1` keep it so.
//!
//! ```text
//! entry:  group u16 | operator u16 | state u16 | hash u64 | length u32, key | length u32, namespace | user key
//! timer:  group u16 | operator u16 | state u16 | time i64, sign bit flipped | hash u64 | key
//! ```
//!
//! All numbers are big-endian, so byte order is: by key group, then operator, then state. A worker owns a range of groups:
//! rescaling is range work. Lengths stand in front of the parts that something follows, so that different parts never
//! make equal keys (`"ab" + "c"` and `"a" + "bc"`); the last part needs none. The namespace is empty, or the window an
//! entry belongs to ([`window_namespace`]); the user key is empty, or the key within a map state.

use crate::StateId;
use mailer_core::{Error, KeyGroup, KeyHash, Result, Timestamp};

/// Groups from here on hold what has no key: broadcast state, un-keyed elements in flight.
pub const FIRST_UNKEYED_GROUP: u16 = 0x8000;

/// Turns the order of `i64` into the order of unsigned bytes.
const SIGN_BIT: u64 = 1 << 63;

/// A key of keyed state, in parts.
///
/// ```
/// use mailer_core::{KeyGroup, KeyHash};
/// use mailer_state::{StateId, layout::StateKey};
/// let id = StateId { operator: 1, state: 2 };
/// let key = StateKey { group: KeyGroup(7), id, hash: KeyHash(9), key: b"alice", namespace: b"", user_key: b"" };
/// let mut bytes = Vec::new();
/// key.encode(&mut bytes).unwrap();
/// assert_eq!(StateKey::parse(&bytes).unwrap(), key);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateKey<'a> {
    /// The key group, first: it decides the worker.
    pub group: KeyGroup,
    /// Operator and state.
    pub id: StateId,
    /// The frozen hash of the key.
    pub hash: KeyHash,
    /// The key in its compact encoding.
    pub key: &'a [u8],
    /// The window, or nothing.
    pub namespace: &'a [u8],
    /// The key within a map state, or nothing.
    pub user_key: &'a [u8],
}

impl<'a> StateKey<'a> {
    /// Writes the key into the cleared `out`. With an empty user key it is a prefix of all entries of that map.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        state_prefix(self.group, self.id, out);
        out.extend_from_slice(&self.hash.0.to_be_bytes());
        put_part(self.key, out)?;
        put_part(self.namespace, out)?;
        out.extend_from_slice(self.user_key);
        Ok(())
    }

    /// Reads what [`StateKey::encode`] wrote.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader { rest: bytes };
        let (group, id) = reader.state_prefix()?;
        let hash = KeyHash(u64::from_be_bytes(reader.array()?));
        let (key, namespace) = (reader.part()?, reader.part()?);
        Ok(Self { group, id, hash, key, namespace, user_key: reader.rest })
    }
}

/// The key of a timer, in parts. In byte order the due ones of a group come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerKey<'a> {
    /// The key group of the key.
    pub group: KeyGroup,
    /// Operator and state.
    pub id: StateId,
    /// When it is due.
    pub time: Timestamp,
    /// The frozen hash of the key.
    pub hash: KeyHash,
    /// The key in its compact encoding.
    pub key: &'a [u8],
}

impl<'a> TimerKey<'a> {
    /// Writes the key into the cleared `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        state_prefix(self.group, self.id, out);
        out.extend_from_slice(&(self.time.0 as u64 ^ SIGN_BIT).to_be_bytes());
        out.extend_from_slice(&self.hash.0.to_be_bytes());
        out.extend_from_slice(self.key);
    }

    /// Reads what [`TimerKey::encode`] wrote.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader { rest: bytes };
        let (group, id) = reader.state_prefix()?;
        let time = Timestamp((u64::from_be_bytes(reader.array()?) ^ SIGN_BIT) as i64);
        let hash = KeyHash(u64::from_be_bytes(reader.array()?));
        Ok(Self { group, id, time, hash, key: reader.rest })
    }
}

/// The operator a key of an entry or of a timer belongs to; `None` for what is no such key.
pub fn operator_of(key: &[u8]) -> Option<u16> {
    Reader { rest: key }.state_prefix().ok().map(|(_, id)| id.operator)
}

/// Writes the prefix of all entries of one state in one key group into the cleared `out`.
pub fn state_prefix(group: KeyGroup, id: StateId, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&group.0.to_be_bytes());
    out.extend_from_slice(&id.operator.to_be_bytes());
    out.extend_from_slice(&id.state.to_be_bytes());
}

fn put_part(part: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let length = u32::try_from(part.len()).map_err(|_| {
        Error::user_function(format!("a key or window of {} bytes; state keys hold at most 4 GiB", part.len()))
    })?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(part);
    Ok(())
}

/// Takes parts from the front of a key.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (part, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| Error::corrupt(format!("a state key ends {} bytes early", length - self.rest.len())))?;
        self.rest = rest;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn part(&mut self) -> Result<&'a [u8]> {
        let length = u32::from_be_bytes(self.array()?);
        self.take(length as usize)
    }

    fn state_prefix(&mut self) -> Result<(KeyGroup, StateId)> {
        let group = KeyGroup(u16::from_be_bytes(self.array()?));
        let (operator, state) = (u16::from_be_bytes(self.array()?), u16::from_be_bytes(self.array()?));
        Ok((group, StateId { operator, state }))
    }
}

mod window;
pub use window::{parse_window, window_namespace};

#[cfg(test)]
mod tests;
