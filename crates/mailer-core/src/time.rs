//! Event time: milliseconds since the Unix epoch, UTC.

use serde::{Deserialize, Serialize};

/// A point in event time, in milliseconds since 1970-01-01T00:00:00Z; may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Before every record.
    pub const MIN: Timestamp = Timestamp(i64::MIN);
    /// After every record: the watermark at true end of input.
    pub const MAX: Timestamp = Timestamp(i64::MAX);
}

/// The promise that no record with a timestamp `< t` follows. A record at `t` itself is on time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Watermark(pub Timestamp);

impl Watermark {
    /// Nothing has been promised yet.
    pub const NONE: Watermark = Watermark(Timestamp::MIN);
    /// The input has truly ended.
    pub const END: Watermark = Watermark(Timestamp::MAX);
}
