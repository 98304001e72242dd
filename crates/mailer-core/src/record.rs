//! What flows: records in batches.

use crate::{KeyHash, Timestamp};

/// Most records in one batch over an edge.
pub const MAX_BATCH_RECORDS: usize = 1_024;
/// Most payload bytes a source puts into one batch (one record may exceed it alone).
pub const MAX_BATCH_BYTES: usize = 64 * 1_024;

/// A value with its event time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// Event time.
    pub timestamp: Timestamp,
    /// The user's value.
    pub value: T,
}

impl<T> Record<T> {
    /// A record at `timestamp`.
    pub fn new(timestamp: Timestamp, value: T) -> Self {
        Self { timestamp, value }
    }

    /// The same event time around another value.
    #[inline]
    pub fn with<U>(&self, value: U) -> Record<U> {
        Record { timestamp: self.timestamp, value }
    }
}

/// A value under its key. The key is hashed once, by `key_by`, and the hash is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyed<K, V> {
    /// The frozen hash of the key; decides key group, worker and place in the state table.
    pub hash: KeyHash,
    /// The key.
    pub key: K,
    /// The value.
    pub value: V,
}

/// Records that move together. A task owns its batches and uses them again: drained, never dropped.
pub type Batch<T> = Vec<Record<T>>;
