//! A stretch of time that records are grouped by.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// The half-open interval `[start, end)` of time. Ordered by end, then start: the order in which windows are put out.
///
/// ```
/// use mailer_core::{TimeWindow, Timestamp};
/// let window = TimeWindow::new(5_000, 10_000);
/// assert!(window.contains(Timestamp(5_000)) && !window.contains(Timestamp(10_000)));
/// assert_eq!(window.last(), Timestamp(9_999));
/// assert!(window < TimeWindow::new(4_000, 10_001));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TimeWindow {
    /// The first millisecond in it.
    pub start: Timestamp,
    /// The first millisecond after it.
    pub end: Timestamp,
}

impl TimeWindow {
    /// All of time.
    pub const ALL: TimeWindow = TimeWindow { start: Timestamp::MIN, end: Timestamp::MAX };

    /// From `start` to before `end`, in milliseconds since the epoch.
    pub const fn new(start: i64, end: i64) -> Self {
        Self { start: Timestamp(start), end: Timestamp(end) }
    }

    /// Whether `time` lies in it.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.start <= time && time < self.end
    }

    /// The last millisecond in it: the timestamp of its result.
    pub fn last(&self) -> Timestamp {
        Timestamp(self.end.0.saturating_sub(1))
    }

    /// The smallest window around both.
    #[must_use]
    pub fn cover(&self, other: TimeWindow) -> TimeWindow {
        TimeWindow { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Ord for TimeWindow {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.end, self.start).cmp(&(other.end, other.start))
    }
}

impl PartialOrd for TimeWindow {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
