//! One partition in the scheduler, through all its assignments: its number stays, so that the keys of a partition that
//! comes back are the keys that an orphaned handler may still hold.

use super::job::Ref;
use super::slots::{Slot, Slots};
use crate::clock::Nanos;
use crate::ledger::{Ledger, Ranges, Seq};
use crate::offset_map::DEFAULT_MAX_BYTES;
use crate::source::Assignment;
use crate::{Failure, Partition};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// Why a partition is not fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pauses {
    pub(super) user: bool,
    pub(super) buffer: bool,
    pub(super) window: bool,
}

impl Pauses {
    pub(super) fn any(self) -> bool {
        self.user || self.buffer || self.window
    }
}

/// A partition that is on its way out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// After which nothing is waited for.
    pub(super) deadline: Nanos,
    /// The group waits to hear that it is released.
    pub(super) is_revoked: bool,
}

/// What was committed of this assignment.
#[derive(Debug)]
pub(super) struct Committing {
    /// The last one that the broker has.
    pub(super) acknowledged: Option<i64>,
    /// Its offset map.
    pub(super) map: String,
    /// On its way, with its map.
    pub(super) in_flight: Option<(i64, String)>,
    /// No commit is below this.
    pub(super) floor: i64,
    /// Something changed since the last commit was made.
    pub(super) is_dirty: bool,
    /// After a failure: when it may be tried again.
    pub(super) not_before: Nanos,
    /// Bytes that the broker takes as metadata, as far as known.
    pub(super) map_limit: usize,
    /// The broker refused the map: the next commit goes without.
    pub(super) without_map: bool,
}

impl Committing {
    fn new(floor: i64) -> Self {
        Self {
            acknowledged: None,
            map: String::new(),
            in_flight: None,
            floor,
            is_dirty: false,
            not_before: 0,
            map_limit: DEFAULT_MAX_BYTES,
            without_map: false,
        }
    }
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) partition: Partition,
    pub(super) topic_id: [u8; 16],
    /// Counts the assignments; what belongs to an earlier one changes nothing.
    pub(super) epoch: u32,
    pub(super) is_assigned: bool,
    pub(super) ledger: Ledger,
    pub(super) slots: Slots,
    /// What the offset map of an earlier life knew to be complete, from the fetch position on.
    pub(super) restored: Ranges,
    /// Queues whose first record is here and waits for a place.
    pub(super) ready: VecDeque<u64>,
    /// It stands in the ring of partitions.
    pub(super) is_in_ring: bool,
    /// Records of this assignment that are with handlers or dead letters.
    pub(super) running: usize,
    /// Behind the last record that was ever started.
    pub(super) started: Seq,
    pub(super) buffered_records: usize,
    pub(super) buffered_bytes: usize,
    pub(super) pauses: Pauses,
    /// What the source was told last.
    pub(super) is_paused: bool,
    pub(super) drain: Option<Drain>,
    pub(super) commit: Committing,
    pub(super) log_end: Option<i64>,
    pub(super) broker: Option<i32>,
    pub(super) received_bytes: u64,
    /// The next record is the first of this assignment.
    pub(super) is_fresh: bool,
    /// Records whose dead letter waits for its next attempt.
    pub(super) failures: HashMap<Seq, Box<Failure>>,
}

impl Lane {
    /// A partition that was never assigned.
    pub(super) fn new(partition: Partition) -> Self {
        Self {
            partition,
            topic_id: [0; 16],
            epoch: 0,
            is_assigned: false,
            ledger: Ledger::new(0),
            slots: Slots::default(),
            restored: Ranges::default(),
            ready: VecDeque::new(),
            is_in_ring: false,
            running: 0,
            started: 0,
            buffered_records: 0,
            buffered_bytes: 0,
            pauses: Pauses::default(),
            is_paused: false,
            drain: None,
            commit: Committing::new(0),
            log_end: None,
            broker: None,
            received_bytes: 0,
            is_fresh: true,
            failures: HashMap::new(),
        }
    }

    /// Begins an assignment.
    pub(super) fn assign(&mut self, assignment: Assignment, restored: Ranges) {
        let Assignment { partition, topic_id, position, log_end, .. } = assignment;
        let (epoch, user, is_in_ring) = (self.epoch + 1, self.pauses.user, self.is_in_ring);
        *self = Self { epoch, is_assigned: true, topic_id, restored, log_end, is_in_ring, ..Self::new(partition) };
        self.ledger = Ledger::new(position);
        self.commit = Committing::new(position);
        self.pauses.user = user;
    }

    /// Ends the assignment; its records are forgotten.
    pub(super) fn unassign(&mut self) {
        let (epoch, user, is_in_ring) = (self.epoch + 1, self.pauses.user, self.is_in_ring);
        *self = Self { epoch, is_in_ring, ..Self::new(self.partition.clone()) };
        self.pauses.user = user;
    }

    pub(super) fn holds(&self, record: Ref) -> bool {
        self.is_assigned && self.epoch == record.epoch
    }

    /// Whether handlers may be started here.
    pub(super) fn is_startable(&self) -> bool {
        self.is_assigned && !(self.pauses.user && self.drain.is_none()) && !self.ready.is_empty()
    }

    /// Everything that was started has ended, and so has everything before it.
    pub(super) fn is_drained(&self) -> bool {
        self.ledger.first_incomplete().is_none()
    }
}

/// The slot of a record that is known to be there.
pub(super) fn slot_of(lanes: &mut [Lane], record: Ref) -> &mut Slot {
    let slot = lanes[record.lane as usize].slots.get_mut(record.seq);
    slot.expect("a queue names only records that have a slot")
}
