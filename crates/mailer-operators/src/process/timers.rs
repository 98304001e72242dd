//! The timers of a process function: the user's, and those that remove expired state.

use super::context::{Moment, Scope};
use crate::OpenOperator;
use mailer_core::{Result, Timestamp, Watermark};
use mailer_state::{Due, EncodedKey, EncodedTimers, StateId, StateStore};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Names of the states that hold timers; their ids are their places.
pub(super) const NAMES: [&str; 2] = ["event timers", "processing timers"];

/// For every timer there was, so many may be registered that are due at once. More is taken for a loop.
const ROUNDS: usize = 10_000;

/// The clock a timer goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeDomain {
    /// The watermark: the timer fires when every earlier record has been seen.
    Event,
    /// The clock on the wall.
    Processing,
}

/// A timer that fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The time it was registered for; the clock may be later.
    pub time: Timestamp,
    /// The author's kind, 0 unless [`TimerService::kind`] said otherwise.
    pub kind: u32,
    /// Its clock.
    pub domain: TimeDomain,
}

/// What a timer is for. The user's come first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Purpose {
    User(u32),
    /// Look whether an entry has expired. `user` is the encoded user key of a map.
    Expire {
        state: u16,
        user: Box<[u8]>,
    },
}

pub(super) struct OpenTimers {
    event: EncodedTimers<Purpose>,
    processing: EncodedTimers<Purpose>,
    /// One was registered whose time had passed already.
    overdue: bool,
    /// Timers registered by timers of this round, and due at once.
    looped: usize,
}

impl OpenTimers {
    pub(super) fn open(operator: u16, context: &mut dyn OpenOperator) -> Result<Self> {
        let (groups, owned) = (context.key_groups(), context.owned_groups());
        let mut open = |state| EncodedTimers::open(StateId { operator, state }, groups, owned.clone(), context.state());
        Ok(Self { event: open(0)?, processing: open(1)?, overdue: false, looped: 0 })
    }

    fn of(&mut self, domain: TimeDomain) -> &mut EncodedTimers<Purpose> {
        match domain {
            TimeDomain::Event => &mut self.event,
            TimeDomain::Processing => &mut self.processing,
        }
    }

    #[inline]
    pub(super) fn is_overdue(&self) -> bool {
        self.overdue
    }

    /// Begins to fire timers; returns how many loops are still taken for honest work.
    pub(super) fn begin_round(&mut self) -> usize {
        self.looped = 0;
        (self.event.len() + self.processing.len()).saturating_add(1).saturating_mul(ROUNDS)
    }

    pub(super) fn looped(&self) -> usize {
        self.looped
    }

    /// The next timer: event time first.
    #[inline]
    pub(super) fn pop_due(
        &mut self,
        watermark: Timestamp,
        now: Timestamp,
    ) -> Option<(TimeDomain, Due<EncodedKey, Purpose>)> {
        if let Some(due) = self.event.pop_due(watermark) {
            return Some((TimeDomain::Event, due));
        }
        let due = self.processing.pop_due(now);
        self.overdue &= due.is_some();
        due.map(|due| (TimeDomain::Processing, due))
    }

    pub(super) fn write_back(&mut self, store: &mut dyn StateStore) -> Result<()> {
        self.event.write_back(store)?;
        self.processing.write_back(store)
    }
}

impl Scope<'_> {
    /// Registers a timer of the key in hand.
    pub(super) fn register(&mut self, domain: TimeDomain, time: Timestamp, purpose: Purpose) {
        let clock = match domain {
            TimeDomain::Event => self.moment.watermark.0,
            TimeDomain::Processing => self.moment.now,
        };
        self.timers.overdue |= time <= clock;
        self.timers.of(domain).register(time, self.hash, self.key.clone(), purpose);
    }

    /// Takes a timer of the key in hand back.
    pub(super) fn unregister(&mut self, domain: TimeDomain, time: Timestamp, purpose: Purpose) {
        self.timers.of(domain).delete(time, self.hash, self.key.clone(), purpose);
    }
}

/// Registers and deletes timers of the key in hand. The same timer twice is one.
pub struct TimerService<'a, 'b> {
    pub(super) scope: &'a mut Scope<'b>,
    pub(super) kind: u32,
}

impl TimerService<'_, '_> {
    /// For timers of a kind: what [`Timer::kind`] says when they fire.
    #[must_use]
    pub fn kind(self, kind: u32) -> Self {
        Self { kind, ..self }
    }

    /// Fires when the watermark reaches `time`.
    pub fn event(&mut self, time: Timestamp) {
        self.register(TimeDomain::Event, time);
    }

    /// Fires when the watermark is so much later than the record or timer in hand.
    pub fn event_after(&mut self, delay: Duration) {
        self.event(later(self.scope.moment.timestamp, delay));
    }

    /// Fires when the clock reaches `time`.
    pub fn processing(&mut self, time: Timestamp) {
        self.register(TimeDomain::Processing, time);
    }

    /// Fires when so much time has passed on the clock.
    pub fn processing_after(&mut self, delay: Duration) {
        self.processing(later(self.scope.moment.now, delay));
    }

    /// Takes an event-time timer back; one that is not there is no error.
    pub fn delete_event(&mut self, time: Timestamp) {
        self.delete(TimeDomain::Event, time);
    }

    /// Takes a processing-time timer back; one that is not there is no error.
    pub fn delete_processing(&mut self, time: Timestamp) {
        self.delete(TimeDomain::Processing, time);
    }

    fn register(&mut self, domain: TimeDomain, time: Timestamp) {
        let Moment { timer, watermark, .. } = self.scope.moment;
        let again = timer.is_some_and(|(fired, at)| fired == domain && time <= at);
        let over = timer.is_some() && watermark == Watermark::END;
        self.scope.timers.looped += usize::from(again || over);
        self.scope.register(domain, time, Purpose::User(self.kind));
    }

    fn delete(&mut self, domain: TimeDomain, time: Timestamp) {
        self.scope.unregister(domain, time, Purpose::User(self.kind));
    }
}

/// The far future is not an overflow.
pub(super) fn later(time: Timestamp, delay: Duration) -> Timestamp {
    Timestamp(time.0.saturating_add(millis(delay)))
}

/// At most as many as there are.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
