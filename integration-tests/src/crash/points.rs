//! The failpoints, in the order a checkpoint passes them. See `docs/` for what each separates.

/// Where a point lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the life of a checkpoint.
    Checkpoint,
    /// There, with RocksDB only.
    RocksDb,
    /// In a recovery that finds a prepared checkpoint.
    Recovery,
}

/// A named point, and which pass of it lies in the middle of the run.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Its name in the code.
    pub name: &'static str,
    /// The pass that counts.
    pub nth: u64,
    /// Where it lies.
    pub place: Place,
}

const fn checkpoint(name: &'static str, nth: u64) -> Point {
    Point { name, nth, place: Place::Checkpoint }
}

const fn rocksdb(name: &'static str, nth: u64) -> Point {
    Point { name, nth, place: Place::RocksDb }
}

const fn recovery(name: &'static str) -> Point {
    Point { name, nth: 1, place: Place::Recovery }
}

/// Every point.
pub const POINTS: &[Point] = &[
    checkpoint("barrier-inject-before", 3),
    checkpoint("barrier-inject-after", 3),
    checkpoint("snapshot-first", 3),
    checkpoint("snapshot-part", 9),
    checkpoint("snapshot-last", 3),
    rocksdb("state-table-write", 4),
    rocksdb("state-ingest-before", 3),
    rocksdb("state-ingest-after", 3),
    rocksdb("state-link-before", 3),
    rocksdb("state-link-after", 3),
    checkpoint("segment-write", 7),
    checkpoint("segment-fsync", 7),
    checkpoint("manifest-write", 3),
    checkpoint("manifest-rename-before", 3),
    checkpoint("manifest-rename-after", 3),
    checkpoint("manifest-folder-fsync", 3),
    checkpoint("manifest-root-fsync", 3),
    checkpoint("publish-begin", 3),
    checkpoint("publish-mid-produce", 2),
    checkpoint("publish-before-commit", 3),
    checkpoint("publish-commit-sent", 3),
    checkpoint("publish-after-commit", 3),
    checkpoint("complete-before", 3),
    checkpoint("complete-after", 3),
    checkpoint("segment-delete", 3),
    checkpoint("retention", 3),
    checkpoint("group-offset-commit", 3),
    recovery("recovery-locked"),
    recovery("recovery-listed"),
    recovery("recovery-opened"),
    recovery("recovery-marker-read"),
    recovery("recovery-claimed"),
    recovery("recovery-based"),
    recovery("recovery-published"),
    recovery("recovery-completed"),
    recovery("recovery-restored"),
];
