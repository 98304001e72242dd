//! Where a key lives: frozen hash → key group → worker. Files depend on these functions; they never change.

use crate::codec;
use serde::{Serialize, de::DeserializeOwned};
use std::hash::Hash;
use std::ops::Range;

/// Key groups of a job unless the environment says otherwise (`max_parallelism`).
pub const DEFAULT_KEY_GROUPS: u16 = 1_024;

/// What can be a key: any `serde` type with equality. Blanket-implemented.
pub trait Key: Serialize + DeserializeOwned + Eq + Hash + Clone + Send + 'static {}
impl<K: Serialize + DeserializeOwned + Eq + Hash + Clone + Send + 'static> Key for K {}

/// 64 bits that decide where a key lives: XXH3-64, seed 0, over the key's compact encoding ([`codec::encode`]).
///
/// The top bits choose the key group, the group chooses the worker. Frozen: checkpoints depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub u64);

impl KeyHash {
    /// Hashes a key; `scratch` is cleared and then holds the key's encoding.
    ///
    /// ```
    /// use mailer_core::KeyHash;
    /// let mut scratch = Vec::new();
    /// let hash = KeyHash::of(&"alice", &mut scratch).unwrap();
    /// assert_eq!(hash.0, 0xff20_a1b3_0cbd_dc93, "frozen: checkpoints depend on it");
    /// ```
    #[inline]
    pub fn of<K: Serialize + ?Sized>(key: &K, scratch: &mut Vec<u8>) -> crate::Result<Self> {
        scratch.clear();
        codec::encode(key, scratch)?;
        Ok(Self(xxhash_rust::xxh3::xxh3_64(scratch)))
    }

    /// The key group among `groups` (at most 32,768).
    #[inline]
    pub fn group(self, groups: u16) -> KeyGroup {
        KeyGroup(((u128::from(self.0) * u128::from(groups)) >> 64) as u16)
    }
}

/// The unit in which keyed state moves between workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyGroup(pub u16);

impl KeyGroup {
    /// The worker that owns this group: `group × workers / groups`.
    #[inline]
    pub fn worker(self, groups: u16, workers: u16) -> u16 {
        (u32::from(self.0) * u32::from(workers) / u32::from(groups)) as u16
    }
}

/// The contiguous groups that `worker` of `workers` owns; the inverse of [`KeyGroup::worker`].
///
/// ```
/// use mailer_core::{KeyGroup, group_range};
/// for worker in 0..3 {
///     assert!(group_range(worker, 3, 1_024).all(|group| KeyGroup(group).worker(1_024, 3) == worker));
/// }
/// assert_eq!(group_range(2, 3, 1_024).end, 1_024);
/// ```
pub fn group_range(worker: u16, workers: u16, groups: u16) -> Range<u16> {
    let bound = |worker: u16| (u32::from(worker) * u32::from(groups)).div_ceil(u32::from(workers)) as u16;
    bound(worker)..bound(worker + 1)
}
