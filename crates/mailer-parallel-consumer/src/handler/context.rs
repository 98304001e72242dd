//! What a handler is told beside its record.

use crate::cancel::Cancel;
use crate::{Control, Traits};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// One attempt: its number, how long the record has waited, when it must end, and the way back to the consumer.
pub struct Context<'a> {
    pub(crate) attempt: u32,
    pub(crate) first_seen: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancel: &'a Arc<Cancel>,
    pub(crate) control: &'a Control,
    pub(crate) marks: AtomicU64,
}

impl Context<'_> {
    /// The number of this attempt, from 1. For a batch, that of its first record.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When this consumer got the record from the broker; the same for every attempt.
    pub fn first_seen(&self) -> std::time::Instant {
        self.first_seen.into_std()
    }

    /// How long ago that was.
    pub fn age(&self) -> Duration {
        self.first_seen.elapsed()
    }

    /// When the handler timeout ends this attempt.
    pub fn deadline(&self) -> Option<std::time::Instant> {
        self.deadline.map(Instant::into_std)
    }

    /// Whether the result is no longer wanted: the partition has gone, the consumer was aborted, the time is over.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_raised() || self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Waits until the partition has gone or the consumer was aborted. (A timeout drops the future instead.)
    pub async fn cancelled(&self) {
        self.cancel.raised().await;
    }

    /// Counts this record under application trait bits; the framework's bits are left out.
    pub fn mark(&self, traits: Traits) {
        self.marks.fetch_or(traits.of_application().0, Ordering::Relaxed);
    }

    /// The consumer itself: to stop or abort it from inside a handler.
    pub fn control(&self) -> &Control {
        self.control
    }

    pub(crate) fn traits(&self) -> Traits {
        Traits(self.marks.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("attempt", &self.attempt)
            .field("traits", &self.traits())
            .finish_non_exhaustive()
    }
}
