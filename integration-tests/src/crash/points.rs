//! The failpoints, in the order a checkpoint passes them. See `docs/` for what each separates.

/// Where a point lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the life of a checkpoint, or of a publish.
    Checkpoint,
    /// There, with RocksDB only.
    RocksDb,
    /// In a recovery; the process that it recovers from died at the n-th pass of this point.
    Recovery(&'static str, u64),
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
    Point { name, nth: 1, place: Place::Recovery(PREPARED.0, PREPARED.1) }
}

/// Here a checkpoint is PREPARED and durable, and nothing is published.
pub const PREPARED: (&str, u64) = ("manifest-root-fsync", 5);

/// Every point of a job from Kafka to Kafka.
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

/// The points of a publish to a folder. The claim of a start passes them, too.
pub const FILES: &[Point] = &[
    checkpoint("files-mid-stage", 3),
    checkpoint("files-staged", 3),
    checkpoint("files-decided", 3),
    checkpoint("files-first-renamed", 2),
    checkpoint("files-published", 3),
    // Decided in the folder, and its files do not have their names.
    Point { name: "files-taken", nth: 1, place: Place::Recovery("files-decided", 3) },
    Point { name: "files-published", nth: 1, place: Place::Recovery("files-decided", 3) },
];

/// The points of a publish to a table.
pub const POSTGRES: &[Point] = &[
    checkpoint("postgres-begin", 3),
    checkpoint("postgres-mid-copy", 3),
    checkpoint("postgres-before-commit", 3),
    checkpoint("postgres-after-commit", 3),
    // In the claim of the next start, and in the publish of what was decided.
    Point { name: "postgres-before-commit", nth: 1, place: Place::Recovery(PREPARED.0, PREPARED.1) },
    Point { name: "postgres-after-commit", nth: 2, place: Place::Recovery(PREPARED.0, PREPARED.1) },
];

/// Points of the engine that a folder and a table do not pass: a publish to Kafka, and what only a source on Kafka does.
const OF_KAFKA: &[&str] = &[
    "publish-begin",
    "publish-mid-produce",
    "publish-before-commit",
    "publish-commit-sent",
    "publish-after-commit",
    "group-offset-commit",
];

/// The points of the engine, which every job passes.
pub fn of_the_engine() -> impl Iterator<Item = &'static Point> {
    POINTS.iter().filter(|point| !OF_KAFKA.contains(&point.name))
}
