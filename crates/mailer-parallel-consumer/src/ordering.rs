//! What may run beside what.

use crate::Record;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Finds the key of a record, where it is not the record's own.
pub type KeyFunction = Arc<dyn Fn(&Record) -> Option<Bytes> + Send + Sync>;

/// Which records keep their order. Records that need not keep theirs run side by side.
#[derive(Clone, Default)]
pub enum Ordering {
    /// Those of one key. Records with a null key have no order among each other.
    #[default]
    Key,
    /// Those of one key as the function finds it; `None` means no order.
    KeyBy(KeyFunction),
    /// Those of one partition: one handler a partition.
    Partition,
    /// None.
    Unordered,
}

impl Ordering {
    /// Order by what the function finds, such as a field of the value.
    pub fn key_by(f: impl Fn(&Record) -> Option<Bytes> + Send + Sync + 'static) -> Self {
        Self::KeyBy(Arc::new(f))
    }

    /// The queue of a record: equal numbers are handled one after the other. Two keys that collide in 64 bits share a
    /// queue, which costs parallelism and breaks nothing. `lane` is the number of the partition here.
    pub(crate) fn queue(&self, scope: KeyScope, lane: u32, record: &Record) -> u64 {
        let of_key = |key: Option<&Bytes>| match key {
            None => mix(mix(u64::from(lane)) ^ record.offset as u64),
            Some(key) => xxh3_64_with_seed(key, scope.seed(lane, record)),
        };
        match self {
            Self::Key => of_key(record.key.as_ref()),
            Self::KeyBy(f) => of_key(f(record).as_ref()),
            Self::Partition => mix(u64::from(lane)),
            Self::Unordered => of_key(None),
        }
    }

    /// Whether two records of one queue may share a batch: all of one queue do, unless two keys have collided.
    pub(crate) fn is_same_key(&self, a: &Record, b: &Record) -> bool {
        match self {
            Self::Key => a.key == b.key,
            Self::KeyBy(f) => f(a) == f(b),
            Self::Partition | Self::Unordered => true,
        }
    }
}

/// How far a key reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyScope {
    /// Its partition: equal keys in different partitions are different keys.
    #[default]
    Partition,
    /// All partitions of its topic that this member has.
    Topic,
    /// All topics.
    All,
}

impl KeyScope {
    fn seed(self, lane: u32, record: &Record) -> u64 {
        match self {
            Self::Partition => mix(u64::from(lane)),
            Self::Topic => xxh3_64(record.partition.topic.as_bytes()),
            Self::All => 0,
        }
    }
}

/// Spreads the bits of a number (the finaliser of splitmix64).
const fn mix(number: u64) -> u64 {
    let a = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    c ^ (c >> 31)
}

impl fmt::Debug for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "Key",
            Self::KeyBy(_) => "KeyBy",
            Self::Partition => "Partition",
            Self::Unordered => "Unordered",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Partition;

    fn record(topic: &str, offset: i64, key: Option<&'static str>) -> Record {
        Record { key: key.map(Bytes::from), ..Record::at(Partition::new(topic, 0), offset) }
    }

    #[test]
    fn a_key_reaches_as_far_as_its_scope() {
        let (a, b) = (record("a", 1, Some("k")), record("b", 9, Some("k")));
        let same = |scope, lanes: (u32, u32), second: &Record| {
            Ordering::Key.queue(scope, lanes.0, &a) == Ordering::Key.queue(scope, lanes.1, second)
        };
        assert!(same(KeyScope::Partition, (0, 0), &a) && !same(KeyScope::Partition, (0, 1), &a));
        assert!(same(KeyScope::Topic, (0, 1), &a) && !same(KeyScope::Topic, (0, 1), &b));
        assert!(same(KeyScope::All, (0, 1), &b));
    }

    #[test]
    fn null_keys_have_no_order_and_empty_keys_have() {
        let queue = |offset, key| Ordering::Key.queue(KeyScope::Partition, 0, &record("a", offset, key));
        assert_ne!(queue(1, None), queue(2, None));
        assert_eq!(queue(1, Some("")), queue(2, Some("")));
        assert_ne!(queue(1, Some("")), queue(1, None));
    }

    #[test]
    fn an_own_function_finds_the_key() {
        let by_topic = Ordering::key_by(|record| Some(Bytes::copy_from_slice(record.partition.topic.as_bytes())));
        let queue = |record: &Record| by_topic.queue(KeyScope::All, 0, record);
        assert_eq!(queue(&record("a", 1, Some("x"))), queue(&record("a", 2, None)));
        let partition = |lane| Ordering::Partition.queue(KeyScope::All, lane, &record("a", 1, None));
        assert!(partition(1) == partition(1) && partition(1) != partition(2));
    }
}
