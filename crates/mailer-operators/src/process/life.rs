//! How long state lives when nobody touches it.
//!
//! An entry that can expire remembers when it was last touched, and has exactly one clean-up timer. The timer is not moved
//! at every touch: when it fires and the entry has been touched since, it is registered anew. So a touch costs nothing, and
//! an expired entry is gone when its time has come.

use super::context::{Moment, Scope};
use super::timers::{Purpose, TimeDomain, later, millis};
use mailer_core::{Error, Result, Timestamp};
use mailer_state::StateId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When the entries of a state expire. An expired entry is never seen again, and is removed from the store.
///
/// By processing time, and from the last write on, unless told otherwise.
///
/// ```
/// use mailer_operators::process::Ttl;
/// use std::time::Duration;
/// let ttl = Ttl::after(Duration::from_secs(600)).from_last_read().by_event_time();
/// # let _ = ttl;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Ttl {
    millis: i64,
    reads: bool,
    domain: TimeDomain,
}

impl Ttl {
    /// An entry expires when it has not been written for so long (at least a millisecond).
    pub fn after(duration: Duration) -> Self {
        Self { millis: millis(duration).max(1), reads: false, domain: TimeDomain::Processing }
    }

    /// Reading an entry keeps it, too.
    #[must_use]
    pub fn from_last_read(self) -> Self {
        Self { reads: true, ..self }
    }

    /// By event time: an entry written at `t` is seen by records before `t + duration`, and removed when the watermark is
    /// there. A late record may miss it.
    #[must_use]
    pub fn by_event_time(self) -> Self {
        Self { domain: TimeDomain::Event, ..self }
    }

    /// A quarter of it.
    pub(super) fn quarter(&self) -> Duration {
        Duration::from_millis(self.millis.unsigned_abs().div_ceil(4))
    }

    #[inline]
    fn clock(&self, moment: Moment) -> Timestamp {
        match self.domain {
            TimeDomain::Event => moment.event,
            TimeDomain::Processing => moment.now,
        }
    }

    /// When something expires that was touched at `time`.
    #[inline]
    pub(super) fn end(&self, time: Timestamp) -> Timestamp {
        later(time, Duration::from_millis(self.millis.unsigned_abs()))
    }
}

/// What an entry that can expire remembers.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Life {
    touched: Timestamp,
    /// The time of its clean-up timer.
    cleanup: Timestamp,
}

impl Life {
    pub(super) fn at(touched: Timestamp, cleanup: Timestamp) -> Self {
        Self { touched, cleanup }
    }
}

/// A stored value. Without a life it never expires, so a TTL can be given to a state, and taken from it, at any start.
#[derive(Serialize, Deserialize)]
pub(super) struct Timed<V> {
    pub(super) life: Option<Life>,
    pub(super) value: V,
}

/// A typed state that is open.
pub(super) struct Open<S> {
    pub(super) state: S,
    pub(super) rule: Rule,
}

/// Which state it is, and its TTL.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    number: u16,
    ttl: Option<Ttl>,
}

impl Rule {
    pub(super) fn new(id: StateId, ttl: Option<Ttl>) -> Self {
        Self { number: id.state, ttl }
    }

    #[inline]
    pub(super) fn kept_by_reads(&self) -> bool {
        self.ttl.is_some_and(|ttl| ttl.reads)
    }

    /// What the clock of this state shows.
    pub(super) fn clock(&self, moment: Moment) -> Timestamp {
        self.ttl.map_or(Timestamp(0), |ttl| ttl.clock(moment))
    }

    #[inline]
    pub(super) fn is_live(&self, life: Option<Life>, moment: Moment) -> bool {
        match (self.ttl, life) {
            (Some(ttl), Some(life)) => ttl.clock(moment) < ttl.end(life.touched),
            _ => true,
        }
    }

    pub(super) fn is_live_since(&self, touched: Timestamp, moment: Moment) -> bool {
        self.is_live(Some(Life::at(touched, touched)), moment)
    }

    /// An entry is written, or read where that counts. Its first touch registers the clean-up.
    #[inline]
    pub(super) fn touch(
        &self,
        life: &mut Option<Life>,
        user: impl FnOnce() -> Result<Box<[u8]>>,
        scope: &mut Scope<'_>,
    ) -> Result<()> {
        let Some(ttl) = self.ttl else { return Ok(()) };
        let touched = ttl.clock(scope.moment);
        match life {
            Some(life) => life.touched = life.touched.max(touched),
            None => {
                let cleanup = ttl.end(touched);
                *life = Some(Life::at(touched, cleanup));
                self.schedule(ttl, cleanup, user()?, scope);
            }
        }
        Ok(())
    }

    /// An entry is removed before its time: its clean-up is not needed.
    pub(super) fn forget(
        &self,
        life: Option<Life>,
        user: impl FnOnce() -> Result<Box<[u8]>>,
        scope: &mut Scope<'_>,
    ) -> Result<()> {
        let (Some(ttl), Some(life)) = (self.ttl, life) else { return Ok(()) };
        let purpose = Purpose::Expire { state: self.number, user: user()? };
        scope.unregister(ttl.domain, life.cleanup, purpose);
        Ok(())
    }

    /// The clean-up of an entry fires. `end` says when what it holds ends, `None` when nothing is left: then, or when the
    /// end has come, the entry is removed. If not, the clean-up fires again at the end.
    pub(super) fn clean<V>(
        &self,
        slot: &mut Option<Timed<V>>,
        user: &[u8],
        scope: &mut Scope<'_>,
        end: impl FnOnce(Ttl, Timestamp, &mut V) -> Option<Timestamp>,
    ) {
        let Some(Timed { life: life @ Some(_), value }) = slot else { return };
        let Some(ttl) = self.ttl else {
            // The state has no TTL any more.
            *life = None;
            return;
        };
        let now = scope.moment.timestamp;
        let touched = life.map_or(now, |life| life.touched);
        match end(ttl, touched, value).filter(|end| *end > now) {
            None => *slot = None,
            Some(cleanup) => {
                *life = Some(Life::at(touched, cleanup));
                self.schedule(ttl, cleanup, user.into(), scope);
            }
        }
    }

    fn schedule(&self, ttl: Ttl, time: Timestamp, user: Box<[u8]>, scope: &mut Scope<'_>) {
        let purpose = Purpose::Expire { state: self.number, user };
        scope.register(ttl.domain, time, purpose);
    }
}

/// The open state, or what to do when there is none.
#[inline]
pub(super) fn opened<S>(open: &mut Option<Open<S>>) -> Result<&mut Open<S>> {
    open.as_mut().ok_or_else(|| Error::invalid_plan("a state is used that was not declared: name it in `states`"))
}

/// Values have no user key.
#[inline]
pub(super) fn no_user() -> Result<Box<[u8]>> {
    Ok(Box::default())
}
