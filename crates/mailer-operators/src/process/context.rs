//! What a process function sees and does besides its state.

use super::timers::{OpenTimers, TimeDomain, TimerService};
use crate::{SideOutputs, SideTag};
use mailer_core::{Batch, KeyHash, Record, Timestamp, Watermark};
use mailer_state::{EncodedKey, StateStore};

/// The times a call goes by.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// What is put out bears it.
    pub(crate) timestamp: Timestamp,
    /// Event time, as far as this call knows it: what expires by event time goes by it.
    pub(super) event: Timestamp,
    pub(crate) watermark: Watermark,
    pub(crate) now: Timestamp,
    /// The timer that fires.
    pub(super) timer: Option<(TimeDomain, Timestamp)>,
}

impl Moment {
    #[inline]
    pub(crate) fn of_record(timestamp: Timestamp, watermark: Watermark, now: Timestamp) -> Self {
        Self { timestamp, event: timestamp, watermark, now, timer: None }
    }

    pub(super) fn of_timer(domain: TimeDomain, time: Timestamp, watermark: Watermark, now: Timestamp) -> Self {
        let event = if domain == TimeDomain::Event { time } else { watermark.0 };
        Self { timestamp: time, event, watermark, now, timer: Some((domain, time)) }
    }
}

/// The key in hand, and what its state needs.
pub struct Scope<'a> {
    pub(super) hash: KeyHash,
    pub(super) key: &'a EncodedKey,
    pub(super) store: &'a mut dyn StateStore,
    pub(super) timers: &'a mut OpenTimers,
    pub(super) moment: Moment,
}

/// The record or timer in hand: its key, its times, and the ways out.
pub struct Context<'a, K, O> {
    pub(super) key: &'a K,
    pub(super) scope: Scope<'a>,
    pub(super) emitted: &'a mut Batch<O>,
    pub(super) sides: &'a mut SideOutputs,
}

impl<'a, K, O> Context<'a, K, O> {
    /// The key, whose state is in hand.
    pub fn key(&self) -> &'a K {
        self.key
    }

    /// Event time of the record; of a timer, the time it was registered for.
    pub fn timestamp(&self) -> Timestamp {
        self.scope.moment.timestamp
    }

    /// No record with an earlier timestamp follows, except late ones.
    pub fn watermark(&self) -> Watermark {
        self.scope.moment.watermark
    }

    /// The record in hand is late: it lies before the watermark.
    pub fn is_late(&self) -> bool {
        self.timestamp() < self.watermark().0
    }

    /// Processing time: the clock when the batch, marker or poll in hand began.
    pub fn now(&self) -> Timestamp {
        self.scope.moment.now
    }

    /// Puts out `value` with the timestamp of the record or timer in hand.
    #[inline]
    pub fn emit(&mut self, value: O) {
        self.emit_at(self.timestamp(), value);
    }

    /// Puts out `value` with another timestamp. One before the watermark is late for what follows.
    #[inline]
    pub fn emit_at(&mut self, timestamp: Timestamp, value: O) {
        self.emitted.push(Record { timestamp, value });
    }

    /// Puts `value` out beside the main output, with the timestamp of the record or timer in hand. Dropped when nobody
    /// reads the tag.
    #[inline]
    pub fn side<S: Send + 'static>(&mut self, tag: &SideTag<S>, value: S) {
        self.sides.push(tag, Record { timestamp: self.scope.moment.timestamp, value });
    }

    /// Timers of the key in hand.
    pub fn timers(&mut self) -> TimerService<'_, 'a> {
        TimerService { scope: &mut self.scope, kind: 0 }
    }
}
