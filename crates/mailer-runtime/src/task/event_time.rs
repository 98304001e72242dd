//! Event time of one source task: a clock per split, their minimum, who is idle, who is too far ahead.
//!
//! No I/O and no clock of its own: it is told what was read and what time it is, and says what to send.
//!
//! Idle time counts only while a split is polled, caught up and nothing downstream is blocked. The task tells every
//! interruption, and no single look counts for more than a fraction of the timeout: a thread that was stuck for a minute
//! has not polled for a minute.

use mailer_core::{Batch, Result, SplitId, SplitState, Timestamp, Watermark, codec};
use mailer_operators::{MakeSplitClock, Pacing, SplitClock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A silence needs so many looks at least before it is idleness.
const LOOKS: u32 = 8;

/// A task that is idle says so so often.
const TELL_IDLE: Duration = Duration::from_secs(1);

/// What a source task sends into its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Watermark(Watermark),
    Idle,
}

/// Event time of the splits of one task.
pub(crate) struct EventTime<T> {
    clocks: Arc<dyn MakeSplitClock<T>>,
    pacing: Pacing,
    splits: BTreeMap<SplitId, Split<T>>,
    /// What was last sent; it never goes back.
    sent: Watermark,
    /// A split was taken over as a checkpoint knew it.
    restored: bool,
    idle: bool,
    /// When a task that is idle says so again.
    next_idle: Duration,
    next_look: Duration,
    last_look: Option<Duration>,
}

struct Split<T> {
    clock: Box<dyn SplitClock<T>>,
    watermark: Watermark,
    /// Silent so long while it was polled and caught up.
    silent: Duration,
    idle: bool,
    ended: bool,
    paused: bool,
    /// Records came since the last look.
    spoke: bool,
}

/// The state of a split's event time in a manifest.
#[derive(Serialize, Deserialize)]
struct Saved {
    watermark: Timestamp,
    /// What the whole task had sent: a restored task begins there.
    sent: Timestamp,
    clock: Vec<u8>,
}

/// A split whose reading must stop, or may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) split: SplitId,
    pub(crate) paused: bool,
}

/// A split as status shows it.
#[derive(Clone, Debug)]
pub(crate) struct SplitTime {
    pub(crate) split: SplitId,
    pub(crate) watermark: Watermark,
    pub(crate) idle: bool,
    pub(crate) paused: bool,
}

impl<T> EventTime<T> {
    pub(crate) fn new(clocks: Arc<dyn MakeSplitClock<T>>, pacing: Pacing) -> Self {
        Self {
            clocks,
            pacing,
            splits: BTreeMap::new(),
            sent: Watermark::NONE,
            restored: false,
            idle: false,
            next_idle: Duration::ZERO,
            next_look: Duration::ZERO,
            last_look: None,
        }
    }

    pub(crate) fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// Takes a split over; `saved` is what [`EventTime::save`] wrote of it, or nothing.
    pub(crate) fn add(&mut self, split: &SplitId, saved: &[u8]) -> Result<()> {
        let mut new = Split {
            clock: self.clocks.make(),
            watermark: Watermark::NONE,
            silent: Duration::ZERO,
            idle: false,
            ended: false,
            paused: false,
            spoke: false,
        };
        if !saved.is_empty() {
            let saved: Saved = codec::decode(saved)?;
            new.clock.restore(&saved.clock)?;
            new.watermark = Watermark(saved.watermark);
            // Splits may come from several tasks that had sent different marks: only the least is true of all.
            let sent = Watermark(saved.sent);
            self.sent = if self.restored { self.sent.min(sent) } else { sent };
            self.restored = true;
        }
        self.splits.insert(split.clone(), new);
        Ok(())
    }

    pub(crate) fn save(&self, split: &SplitId) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        if let Some(known) = self.splits.get(split) {
            let mut clock = Vec::new();
            known.clock.save(&mut clock);
            codec::encode(&Saved { watermark: known.watermark.0, sent: self.sent.0, clock }, &mut out)?;
        }
        Ok(out)
    }

    /// What a restored task sends before its first record.
    pub(crate) fn restored(&self) -> Option<Watermark> {
        (self.sent > Watermark::NONE).then_some(self.sent)
    }

    pub(crate) fn on_batch(&mut self, split: &SplitId, batch: &mut Batch<T>) {
        let Some(split) = self.splits.get_mut(split) else { return };
        split.clock.on_batch(batch);
        split.watermark = split.watermark.max(split.clock.current());
        split.silent = Duration::ZERO;
        split.spoke = true;
        split.idle = false;
    }

    /// The task could not poll, or could not send: the time until the next look counts for nobody.
    pub(crate) fn interrupted(&mut self) {
        self.last_look = None;
    }

    /// Whether it is time to look; `nothing`: the source has nothing to read now, so that nothing is gained by waiting.
    pub(crate) fn is_due(&self, now: Duration, nothing: bool) -> bool {
        nothing || now >= self.next_look
    }

    /// Looks at all splits and says what to send, if anything. `state` is what the source says of a split.
    pub(crate) fn look(&mut self, now: Duration, state: impl Fn(&SplitId) -> SplitState) -> Option<Mark> {
        self.next_look = now + self.pacing.emit_every;
        let passed = self.last_look.map_or(Duration::ZERO, |last| now.saturating_sub(last));
        self.last_look = Some(now);
        for (id, split) in &mut self.splits {
            split.look(state(id), passed, self.pacing.idle_after);
        }
        self.mark(now)
    }

    /// Every split has come at least so far, whatever its records say.
    pub(crate) fn promise(&mut self, now: Duration, watermark: Watermark) -> Option<Mark> {
        for split in self.splits.values_mut() {
            split.watermark = split.watermark.max(watermark);
        }
        self.mark(now)
    }

    fn mark(&mut self, now: Duration) -> Option<Mark> {
        let active = || self.splits.values().filter(|split| !split.idle && !split.ended);
        let Some(least) = active().map(|split| split.watermark).min() else {
            return self.idle(now);
        };
        let woke = std::mem::replace(&mut self.idle, false);
        if least > self.sent {
            self.sent = least;
            return Some(Mark::Watermark(least));
        }
        // After having been idle, the gates downstream must count this input again.
        (woke && self.sent > Watermark::NONE).then_some(Mark::Watermark(self.sent))
    }

    /// Nobody holds anything back; what the silent ones have promised still counts. Told again and again, see the input
    /// gate. A task whose splits have all ended is not idle, it is about to end: idle, it would be overtaken by the end of
    /// another while what it has sent is still on its way through windows and lookups.
    fn idle(&mut self, now: Duration) -> Option<Mark> {
        let over = !self.splits.is_empty() && self.splits.values().all(|split| split.ended);
        let told = self.idle && now < self.next_idle;
        if over || told {
            return None;
        }
        (self.idle, self.next_idle) = (true, now + TELL_IDLE);
        Some(Mark::Idle)
    }

    /// The least watermark of the splits that count, for alignment; the largest there is when none does.
    pub(crate) fn slowest(&self) -> Watermark {
        let active = self.splits.values().filter(|split| !split.idle && !split.ended);
        active.map(|split| split.watermark).min().unwrap_or(Watermark::END)
    }

    /// Which splits must stop or may go on when none may be ahead of `slowest` by more than the group allows.
    pub(crate) fn align(&mut self, slowest: Watermark) -> Vec<Pause> {
        let Some(alignment) = &self.pacing.alignment else { return Vec::new() };
        let drift = i64::try_from(alignment.max_drift.as_millis()).unwrap_or(i64::MAX);
        let limit = Watermark(Timestamp(slowest.0.0.saturating_add(drift)));
        let mut changes = Vec::new();
        for (id, split) in &mut self.splits {
            let paused = split.watermark > limit;
            if std::mem::replace(&mut split.paused, paused) != paused {
                changes.push(Pause { split: id.clone(), paused });
            }
        }
        changes
    }

    pub(crate) fn status(&self) -> Vec<SplitTime> {
        let split = |(id, split): (&SplitId, &Split<T>)| SplitTime {
            split: id.clone(),
            watermark: split.watermark,
            idle: split.idle,
            paused: split.paused,
        };
        self.splits.iter().map(split).collect()
    }
}

impl<T> Split<T> {
    fn look(&mut self, state: SplitState, passed: Duration, idle_after: Option<Duration>) {
        self.ended = state == SplitState::Ended;
        let spoke = std::mem::take(&mut self.spoke);
        if spoke || self.paused || state != SplitState::CaughtUp {
            self.silent = Duration::ZERO;
            return;
        }
        let Some(idle_after) = idle_after else { return };
        self.silent += passed.min(idle_after / LOOKS);
        self.idle |= self.silent >= idle_after;
    }
}

#[cfg(test)]
#[path = "event_time_tests.rs"]
mod tests;
