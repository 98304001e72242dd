//! What every window operator has: its settings, its time, and what becomes of late records.

use super::Emit;
use super::assigner::Assigner;
use super::emit::{Early, Updates};
use super::millis::millis;
use crate::{Collector, Counter, Label, OpenOperator, SideTag};
use mailer_core::{Keyed, Record, Timestamp, Watermark};
use std::time::Duration;

/// Which time windows are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// That of the records; watermarks say how far it is.
    Event,
    /// That of the clock, which never goes back here.
    Processing,
}

/// What the author asked for.
pub struct Settings<V> {
    pub(crate) time: Time,
    pub(crate) lateness: Duration,
    pub(crate) late: Option<SideTag<V>>,
    pub(crate) emit: Emit,
}

impl<V> Clone for Settings<V> {
    fn clone(&self) -> Self {
        Self { late: self.late.clone(), ..*self }
    }
}

impl<V> Default for Settings<V> {
    fn default() -> Self {
        Self { time: Time::Event, lateness: Duration::ZERO, late: None, emit: Emit::Final }
    }
}

/// Settings in numbers, and time as it passes. A window is *closed*, its result due, when it ends at or before `limit`;
/// it can no longer change, and is *gone*, when it ends at or before `gone`.
pub struct Frame<V> {
    pub(crate) label: Label,
    pub(crate) time: Time,
    pub(crate) early: Early,
    pub(crate) updates: bool,
    /// Settings that cannot work.
    pub(crate) problems: Vec<String>,
    late: Option<SideTag<V>>,
    late_count: Counter,
    /// How far `gone` and `limit` are behind the watermark.
    gone_after: i64,
    closed_after: i64,
    watermark: i64,
    pub(crate) gone: i64,
    pub(crate) limit: i64,
    next_tick: Option<i64>,
}

/// A clone is for another worker: it has the settings, and time has not begun.
impl<V> Clone for Frame<V> {
    fn clone(&self) -> Self {
        Self {
            label: self.label.clone(),
            problems: self.problems.clone(),
            late: self.late.clone(),
            late_count: Counter::default(),
            watermark: i64::MIN,
            gone: i64::MIN,
            limit: i64::MIN,
            next_tick: None,
            ..*self
        }
    }
}

impl<V> Frame<V> {
    pub(super) fn new(label: Label, settings: Settings<V>, assigner: &impl Assigner) -> Self {
        let (mut problems, closing) = (assigner.problems(&settings), assigner.closing());
        let lateness = match settings.lateness {
            Duration::ZERO => 0,
            lateness => millis("the allowed lateness", lateness, &mut problems),
        };
        let mut early = Early::default();
        let updates = settings.emit != Emit::Final;
        if let Emit::Updates { every, records } = settings.emit {
            early = Early::new(every, records, &mut problems);
        }
        let early = assigner.trigger().unwrap_or(early);
        let gone_after = lateness.saturating_add(closing);
        let (time, late, closed_after) = (settings.time, settings.late, if updates { closing } else { gone_after });
        Self {
            label,
            time,
            early,
            updates,
            problems,
            late,
            late_count: Counter::default(),
            gone_after,
            closed_after,
            watermark: i64::MIN,
            gone: i64::MIN,
            limit: i64::MIN,
            next_tick: None,
        }
    }

    pub(super) fn open(&mut self, context: &mut dyn OpenOperator) {
        self.late_count = context.counter(self.label.name.as_deref().unwrap_or_default(), "late");
    }

    /// The time a record belongs to.
    #[inline]
    pub(crate) fn time_of(&self, event: Timestamp, now: Timestamp) -> Timestamp {
        match self.time {
            Time::Event => event,
            Time::Processing => Timestamp(now.0.max(self.watermark)),
        }
    }

    /// Time is now `to`, or was already.
    pub(super) fn advance(&mut self, to: i64) {
        self.watermark = self.watermark.max(to);
        let before = |after| if self.watermark == i64::MAX { i64::MAX } else { self.watermark.saturating_sub(after) };
        (self.gone, self.limit) = (before(self.gone_after), before(self.closed_after));
    }

    /// How far time is.
    #[inline]
    pub(crate) fn watermark(&self) -> i64 {
        self.watermark
    }

    /// How far event time is for what follows: results still to come are not late.
    pub(super) fn passed(&self) -> Watermark {
        Watermark(Timestamp(self.limit))
    }

    /// The watermark that closes a window with this end.
    pub(crate) fn closes_at(&self, end: Timestamp) -> i64 {
        if end == Timestamp::MIN { i64::MIN } else { end.0.saturating_add(self.closed_after) }
    }

    /// The watermark at which a window with this end is gone.
    pub(crate) fn gone_at(&self, end: Timestamp) -> i64 {
        end.0.saturating_add(self.gone_after)
    }

    /// Early results by processing time are looked for once per interval, and once after every start.
    #[inline]
    pub(super) fn tick(&mut self, now: Timestamp) -> bool {
        let Some(every) = self.early.every else { return false };
        let due = self.next_tick.is_none_or(|next| now.0 >= next);
        if due {
            self.next_tick = Some(now.0.div_euclid(every).saturating_add(1).saturating_mul(every));
        }
        due
    }

    pub(crate) fn is_early(&self, updates: &Updates) -> bool {
        self.early.by_count(updates)
    }

    /// A record that no window can take.
    #[cold]
    pub(crate) fn late<K, T>(&self, record: Record<Keyed<K, V>>, out: &mut impl Collector<T>)
    where
        V: Send + 'static,
    {
        self.late_count.add(1);
        if let Some(tag) = &self.late {
            out.side(tag, Record { timestamp: record.timestamp, value: record.value.value });
        }
    }
}
