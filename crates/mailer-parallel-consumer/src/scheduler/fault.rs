//! Faults that tests plant in the scheduler, to see that a checker finds each of them. Without tests there are none.

use super::Scheduler;

/// What is done wrong.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Commit behind the last fetched record.
    CommitFetched,
    /// Let a commit go back.
    CommitBack,
    /// Claim the whole window in the offset map.
    ClaimAll,
    /// Hand out a key while its handler runs.
    SecondHandler,
    /// After a failed attempt, go on with the next record of the key first.
    RetryLast,
    /// Believe results of earlier assignments.
    OldEpoch,
    /// Complete a record whose dead letter failed.
    DeadLetterDone,
    /// Hand out one job more than allowed.
    OverLimit,
    /// Forget the rate limit.
    NoRate,
    /// Do not wake a key after its handler.
    LostWakeup,
    /// Drain every partition when one is revoked.
    DrainAll,
    /// Start nothing while a commit is under way.
    CommitBlocks,
    /// Never pause a partition.
    NoPause,
    /// Graceful stop commits at once, without waiting for handlers.
    HastyStop,
    /// Forget a panicked record.
    PanicCompletes,
    /// Count a completion twice.
    CountTwice,
    /// Take what a marker or compaction left out as fetched records.
    GapsComplete,
    /// Tell of the end twice.
    EndTwice,
    /// Start nothing of a partition while something of it runs.
    KeyBlocks,
}

/// Each fault is asked for by name, so that code without tests contains none of them.
macro_rules! faults {
    ($($name:ident: $fault:ident),* $(,)?) => {
        impl Scheduler {
            $(#[cfg(test)]
            pub(super) fn $name(&self) -> bool { self.fault == Some(Fault::$fault) }
            #[cfg(not(test))]
            #[inline(always)]
            pub(super) const fn $name(&self) -> bool { false })*

            #[cfg(test)]
            pub(crate) fn plant(&mut self, fault: Fault) { self.fault = Some(fault); }
        }
    };
}

faults! {
    is_planted_commit_fetched: CommitFetched,
    is_planted_commit_back: CommitBack,
    is_planted_claim_all: ClaimAll,
    is_planted_second_handler: SecondHandler,
    is_planted_retry_last: RetryLast,
    is_planted_old_epoch: OldEpoch,
    is_planted_dead_letter_done: DeadLetterDone,
    is_planted_over_limit: OverLimit,
    is_planted_no_rate: NoRate,
    is_planted_lost_wakeup: LostWakeup,
    is_planted_drain_all: DrainAll,
    is_planted_commit_blocks: CommitBlocks,
    is_planted_no_pause: NoPause,
    is_planted_hasty_stop: HastyStop,
    is_planted_panic_completes: PanicCompletes,
    is_planted_count_twice: CountTwice,
    is_planted_gaps_complete: GapsComplete,
    is_planted_end_twice: EndTwice,
    is_planted_key_blocks: KeyBlocks,
}

impl Scheduler {
    pub(super) fn commit_blocks(&self) -> bool {
        self.is_planted_commit_blocks() && self.lanes.iter().any(|lane| lane.commit.in_flight.is_some())
    }
}
