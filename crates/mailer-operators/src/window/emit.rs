//! When a window is put out, and as what.

use super::WindowFunction;
use crate::{Collector, Label};
use mailer_core::{Record, Result, TimeWindow, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Which results of a window are put out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// One result per key and window, when it can no longer change: at the end of the window, plus the allowed lateness.
    /// Event time behind the operator is held back by that lateness, so the result is on time for what follows.
    #[default]
    Final,
    /// The result at the end of the window, and others before and after it. Each is the whole result so far, not a
    /// difference; [`Windowed::revision`] numbers them. Late ones have the timestamp of their window, so for what
    /// follows they may be late as well.
    ///
    /// A session that grows is another window: its earlier result keeps its earlier bounds. With sliding windows each
    /// record costs as much as it has windows.
    Updates {
        /// Before the end: what has changed, at every multiple of this much processing time.
        every: Option<Duration>,
        /// Before the end: after so many new records of a key.
        records: Option<u64>,
    },
}

/// Why a result was put out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Firing {
    /// Before the end of the window.
    Early,
    /// At its end: with [`Emit::Final`] the only one, and final.
    OnTime,
    /// After its end, because of a record within the allowed lateness.
    Late,
}

/// A result with its key and its window. As a record its timestamp is the last millisecond of the window, `end - 1`; of a
/// global window, which has no end, the highest timestamp among its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windowed<K, T> {
    /// The key.
    pub key: K,
    /// The bounds of the window.
    pub window: TimeWindow,
    /// The result.
    pub value: T,
    /// Why now.
    pub firing: Firing,
    /// Results of this key and window before this one.
    pub revision: u32,
}

impl<K, T> Windowed<K, T> {
    /// A window's only result: what [`Emit::Final`] puts out.
    pub fn new(key: K, window: TimeWindow, value: T) -> Self {
        Self { key, window, value, firing: Firing::OnTime, revision: 0 }
    }
}

/// What has been put out of a key and window, and what is new since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Updates {
    revision: u32,
    pending: u64,
    /// Processing time when the first pending record came.
    since: i64,
}

impl Updates {
    /// A record came.
    pub(crate) fn record(&mut self, now: Timestamp) {
        if self.pending == 0 {
            self.since = now.0;
        }
        self.pending += 1;
    }

    /// Another window turned out to be the same.
    pub(crate) fn merge(&mut self, other: Updates) {
        if other.pending > 0 {
            self.since = if self.pending > 0 { self.since.min(other.since) } else { other.since };
        }
        (self.revision, self.pending) = (self.revision.max(other.revision), self.pending + other.pending);
    }

    /// A result is put out: its number.
    pub(crate) fn next_revision(&mut self) -> u32 {
        self.pending = 0;
        self.revision += 1;
        self.revision - 1
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }
}

/// When results come early: the settings in numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Early {
    /// Milliseconds.
    pub(crate) every: Option<i64>,
    pub(crate) records: Option<u64>,
}

impl Early {
    pub(crate) fn by_count(&self, updates: &Updates) -> bool {
        self.records.is_some_and(|records| updates.pending >= records)
    }

    /// Whether a multiple of the interval lies between the first pending record and now.
    pub(crate) fn by_time(&self, updates: &Updates, now: Timestamp) -> bool {
        let interval = |every: i64| updates.since.div_euclid(every) < now.0.div_euclid(every);
        updates.is_pending() && self.every.is_some_and(interval)
    }
}

/// One result, but for its key and value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fired {
    pub(crate) window: TimeWindow,
    pub(crate) firing: Firing,
    pub(crate) revision: u32,
    pub(crate) timestamp: Timestamp,
}

impl Fired {
    pub(crate) fn new(window: TimeWindow, firing: Firing, revision: u32) -> Self {
        Self { window, firing, revision, timestamp: window.last() }
    }

    /// Computes the results and puts them out. They may be lazy: each is asked for under the label.
    #[inline]
    pub(crate) fn put_out<K: Clone, V, F: WindowFunction<K, V>>(
        self,
        label: &Label,
        function: &mut F,
        key: &K,
        state: F::State,
        out: &mut impl Collector<Windowed<K, F::Out>>,
    ) -> Result<()> {
        let Fired { window, firing, revision, timestamp } = self;
        let mut results = label.run(|| function.results(key, window, state).into_iter());
        while let Some(value) = label.run(|| results.next()) {
            out.collect(Record { timestamp, value: Windowed { key: key.clone(), window, value, firing, revision } })?;
        }
        Ok(())
    }
}
