//! Keeps the timeline of checkpoints, and says in the log what one that does not finish waits for.

use super::{Executor, Publishing};
use crate::job::timeline::{CheckpointPhase, Volume};
use mailer_checkpoint::manifest::Manifest;
use mailer_core::{CheckpointId, Error};
use std::time::Duration;
use tracing::Span;

/// How often an unfinished checkpoint is looked at.
const EVERY: Duration = Duration::from_millis(100);
/// A phase that takes this long is worth a warning; the next comes after twice the time.
const LONG: Duration = Duration::from_secs(10);

/// When to look, and when to warn.
#[derive(Debug)]
pub(super) struct Patience {
    next: Duration,
    /// The checkpoint and phase warned of, and the time after which the next warning is due.
    warned: Option<(CheckpointId, CheckpointPhase, Duration)>,
}

impl Default for Patience {
    fn default() -> Self {
        Self { next: Duration::ZERO, warned: None }
    }
}

impl Patience {
    /// Whether a warning is due.
    fn is_long(&mut self, id: CheckpointId, phase: CheckpointPhase, took: Duration) -> bool {
        let due = match self.warned {
            Some((warned, of, due)) if (warned, of) == (id, phase) => due,
            _ => LONG,
        };
        if took < due {
            return false;
        }
        self.warned = Some((id, phase, due * 2));
        true
    }
}

impl Executor {
    /// In which the work of a checkpoint is done.
    pub(super) fn span(&self, id: CheckpointId) -> Span {
        self.spans.get(&id).cloned().unwrap_or_else(Span::none)
    }

    pub(super) fn begin_checkpoint(&mut self, id: CheckpointId) {
        let Some(kind) = self.coordinator.aligning_kind().filter(|_| self.durable.is_some()) else { return };
        let (wall, now) = (self.shared.clock.wall(), self.shared.clock.monotonic());
        let span = tracing::info_span!("checkpoint", id = id.0, ?kind);
        span.in_scope(|| tracing::debug!("the barrier is sent"));
        self.spans.insert(id, span);
        self.control.status.timeline(|timeline| timeline.begin(id, kind, wall, now));
    }

    pub(super) fn enter_phase(&self, id: CheckpointId, phase: CheckpointPhase) {
        let now = self.shared.clock.monotonic();
        self.span(id).in_scope(|| tracing::debug!(%phase, "the checkpoint goes on"));
        self.control.status.timeline(|timeline| timeline.enter(id, phase, now));
    }

    pub(super) fn note_volume(&self, id: CheckpointId, manifest: &Manifest) {
        let volume = Volume {
            state_bytes: manifest.state_files.iter().map(|file| file.length).sum(),
            output_bytes: manifest.segments.iter().map(|segment| segment.file.length).sum(),
            output_records: manifest.segments.iter().map(|segment| segment.records).sum(),
        };
        self.control.status.timeline(|timeline| timeline.note_volume(id, volume));
    }

    pub(super) fn end_checkpoint(&mut self, id: CheckpointId, failure: Option<&Error>) {
        self.spans.remove(&id);
        let now = self.shared.clock.monotonic();
        match failure {
            None => self.control.status.timeline(|timeline| timeline.complete(id, now)),
            Some(error) => {
                tracing::warn!(checkpoint = id.0, %error, "checkpoint given up; what it held goes into the next one");
                self.control.status.timeline(|timeline| timeline.fail(id, &error.to_string(), now));
                self.control.status.note_failed_checkpoint(id, error);
            }
        }
    }

    /// Puts down how far the checkpoints under way are, and what they wait for.
    pub(super) fn watch_checkpoints(&mut self) {
        let now = self.shared.clock.monotonic();
        if now < self.patience.next || self.spans.is_empty() {
            return;
        }
        self.patience.next = now + EVERY;
        let targets = self.publishing.as_ref().map(Publishing::open_targets).unwrap_or_default();
        let publishing = self.coordinator.publishing();
        let splits = self.control.status.splits();
        let crew = &self.crew;
        let slow = self.control.status.timeline(|timeline| {
            timeline.tick(now, |id, phase| crew.waits(id, phase, (publishing, &targets), &splits)).cloned()
        });
        let Some(slow) = slow else { return };
        if let Some((phase, took)) = slow.phases.last().copied()
            && self.patience.is_long(slow.id, phase, took)
        {
            let waits_for = slow.waits_for.join(", ");
            tracing::warn!(
                checkpoint = slow.id.0, %phase, seconds = took.as_secs(), waits_for,
                "a checkpoint does not finish: look at what it waits for; the job goes on meanwhile"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_come_after_ten_seconds_and_then_ever_more_rarely() {
        let mut patience = Patience::default();
        let mut warned = |seconds, phase| patience.is_long(CheckpointId(1), phase, Duration::from_secs(seconds));
        let heard: Vec<_> = (0..60).filter(|second| warned(*second, CheckpointPhase::Aligning)).collect();
        assert_eq!(heard, [10, 20, 40]);
        assert!(!warned(5, CheckpointPhase::Snapshot) && warned(10, CheckpointPhase::Snapshot));
    }
}
