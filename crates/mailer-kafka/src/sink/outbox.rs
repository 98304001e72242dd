//! Batches between their first sending and their acknowledgement: which may be sent now, and again. Pure.
//!
//! A partition's batches are numbered when they come and sent in that order, several at once. When one fails for now, nothing
//! behind it is sent until all that were on their way have been answered; then it and its followers are sent again under
//! the same numbers, and a broker that has one already says so. Source: KIP-98, idempotent producer.

use crate::batch::{SealedBatch, Stamp};
use crate::client::{Identity, sequence_after};
use crate::gather::Parted;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Batches of one partition on their way: what idempotence allows.
const IN_FLIGHT: usize = 5;

/// What became of a batch that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is in the log.
    Written,
    /// Not now.
    Again,
    /// The broker does not know our numbers: they begin again under another identity.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Sent,
    Failed,
    Done,
}

struct Entry {
    batch: SealedBatch,
    sequence: i32,
    state: State,
    since: Duration,
}

/// The way a batch takes: a connection of ours. Batches on one way arrive in their order; on two ways they may not.
pub(crate) type Way = u64;

#[derive(Default)]
struct Lane {
    next: i32,
    entries: VecDeque<Entry>,
    /// The way of those that are sent.
    way: Way,
    /// The partition has a batch of ours under this identity. Before, only one is sent: a broker that knows nothing of us takes
    /// any first number, also that of a batch behind one that it refused, as it does while it takes over a new partition.
    known: bool,
}

/// Batches of all partitions of a topic.
pub(crate) struct Outbox {
    identity: Identity,
    lanes: BTreeMap<i32, Lane>,
    bytes: usize,
    /// Nothing is sent until everything has come back and there is another identity.
    renewing: bool,
}

/// A batch to be sent, stamped.
pub(crate) struct Sending {
    pub(crate) partition: i32,
    pub(crate) sequence: i32,
    pub(crate) batch: SealedBatch,
}

impl Outbox {
    pub(crate) fn new(identity: Identity) -> Self {
        Self { identity, lanes: BTreeMap::new(), bytes: 0, renewing: false }
    }

    /// Takes a batch over; `now` is when.
    pub(crate) fn push(&mut self, Parted { partition, batch }: Parted, now: Duration) {
        let lane = self.lanes.entry(partition).or_default();
        self.bytes += batch.bytes();
        let sequence = lane.next;
        lane.next = sequence_after(sequence, batch.records());
        lane.entries.push_back(Entry { batch, sequence, state: State::Waiting, since: now });
    }

    /// Bytes not acknowledged.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.values().all(|lane| lane.entries.is_empty())
    }

    /// Whether nothing of a partition waits or is on its way: a batch that is not full need not wait for company.
    pub(crate) fn is_idle(&self, partition: i32) -> bool {
        self.lanes.get(&partition).is_none_or(|lane| lane.entries.is_empty())
    }

    /// Partitions with a batch that may be sent now.
    pub(crate) fn ready(&self) -> Vec<i32> {
        if self.renewing {
            return Vec::new();
        }
        let ready = self.lanes.iter().filter(|(_, lane)| lane.sendable().is_some());
        ready.map(|(partition, _)| *partition).collect()
    }

    /// The next batch of a partition; `None` also while others of it are on another way: a broker that knows nothing of us
    /// takes any first number, so what overtakes would be written first.
    pub(crate) fn send(&mut self, partition: i32, way: Way) -> Option<Sending> {
        let lane = self.lanes.get_mut(&partition)?;
        let at = lane.sendable()?;
        if lane.way != way && lane.entries.iter().any(|entry| entry.state == State::Sent) {
            return None;
        }
        lane.way = way;
        let entry = &mut lane.entries[at];
        entry.state = State::Sent;
        let (producer_id, epoch, sequence) = (self.identity.id, self.identity.epoch, entry.sequence);
        entry.batch.stamp(Stamp { producer_id, epoch, sequence, transactional: false });
        Some(Sending { partition, sequence, batch: entry.batch.clone() })
    }

    /// What became of a batch; answers may be heard in any order. Returns the records that are acknowledged by it.
    pub(crate) fn answered(&mut self, partition: i32, sequence: i32, outcome: Outcome) -> u64 {
        let Some(lane) = self.lanes.get_mut(&partition) else { return 0 };
        let before = lane.entries.iter().take_while(|entry| entry.sequence != sequence);
        let is_next = before.into_iter().all(|entry| entry.state == State::Done);
        let sent = lane.entries.iter_mut().find(|entry| entry.sequence == sequence && entry.state == State::Sent);
        if let Some(entry) = sent {
            entry.state = if outcome == Outcome::Written { State::Done } else { State::Failed };
            lane.known |= outcome == Outcome::Written;
        }
        // Behind a batch that failed, or whose answer is not heard yet, numbers are unknown because that one is missing.
        self.renewing |= outcome == Outcome::Unknown && is_next;
        let (records, bytes) = lane.release();
        self.bytes -= bytes;
        records
    }

    /// Whether another identity is needed, and nothing is on its way any more.
    pub(crate) fn wants_identity(&self) -> bool {
        let on_the_way = |lane: &Lane| lane.entries.iter().any(|entry| entry.state == State::Sent);
        self.renewing && !self.lanes.values().any(on_the_way)
    }

    /// Goes on under another identity: every partition is numbered anew, in the same order.
    pub(crate) fn renew(&mut self, identity: Identity) {
        (self.identity, self.renewing) = (identity, false);
        for lane in self.lanes.values_mut() {
            (lane.next, lane.known) = (0, false);
            for entry in &mut lane.entries {
                (entry.sequence, entry.state) = (lane.next, State::Waiting);
                lane.next = sequence_after(lane.next, entry.batch.records());
            }
        }
    }

    /// When the oldest batch came.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        self.lanes.values().filter_map(|lane| lane.entries.front()).map(|entry| entry.since).min()
    }
}

impl Entry {
    fn is_failed(&self) -> bool {
        self.state == State::Failed
    }
}

impl Lane {
    fn sendable(&self) -> Option<usize> {
        let sent = self.entries.iter().filter(|entry| entry.state == State::Sent).count();
        let limit = if self.known { IN_FLIGHT } else { 1 };
        if sent >= limit || self.entries.iter().any(Entry::is_failed) {
            return None;
        }
        self.entries.iter().position(|entry| entry.state == State::Waiting)
    }

    /// Lets go of what is acknowledged up to the first that is not; when nothing is on its way, what failed waits again, with
    /// everything behind it.
    fn release(&mut self) -> (u64, usize) {
        let (mut records, mut bytes) = (0, 0);
        while self.entries.front().is_some_and(|entry| entry.state == State::Done) {
            let Some(entry) = self.entries.pop_front() else { break };
            records += u64::from(entry.batch.records());
            bytes += entry.batch.bytes();
        }
        if !self.entries.iter().any(|entry| entry.state == State::Sent) {
            let failed = self.entries.iter_mut().filter(|entry| entry.is_failed());
            failed.for_each(|entry| entry.state = State::Waiting);
        }
        (records, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchBuilder, Codec, Settings};

    const FIRST: Identity = Identity { id: 7, epoch: 0 };

    fn outbox(records: &[(i32, usize)]) -> Outbox {
        let mut outbox = Outbox::new(FIRST);
        for (partition, count) in records {
            let mut builder = BatchBuilder::new(Settings { codec: Codec::None, max_bytes: 10_000 });
            (0..*count).for_each(|_| builder.append(0, None, Some(b"x"), &[]).unwrap());
            outbox.push(Parted { partition: *partition, batch: builder.seal().unwrap().unwrap() }, Duration::ZERO);
            outbox.lanes.get_mut(partition).unwrap().known = true;
        }
        outbox
    }

    fn send_all(outbox: &mut Outbox) -> Vec<(i32, i32)> {
        let mut sent = Vec::new();
        loop {
            let ready = outbox.ready();
            if ready.is_empty() {
                return sent;
            }
            let sending: Vec<_> = ready.into_iter().filter_map(|partition| outbox.send(partition, 1)).collect();
            sent.extend(sending.iter().map(|sending| (sending.partition, sending.sequence)));
        }
    }

    #[test]
    fn batches_go_in_order_and_five_at_once() {
        let mut outbox = outbox(&[(0, 2), (0, 3), (0, 1), (0, 1), (0, 1), (0, 1), (1, 4)]);
        assert_eq!(send_all(&mut outbox), [(0, 0), (1, 0), (0, 2), (0, 5), (0, 6), (0, 7)]);
        assert_eq!(outbox.answered(0, 2, Outcome::Written), 0, "the one before it is not answered");
        assert_eq!(outbox.answered(0, 0, Outcome::Written), 5);
        assert_eq!(send_all(&mut outbox), [(0, 8)]);
        assert!(!outbox.is_idle(0) && outbox.is_idle(9) && !outbox.is_empty());
    }

    #[test]
    fn what_fails_is_sent_again_with_all_that_follow_when_the_rest_has_come_back() {
        let mut outbox = outbox(&[(0, 1), (0, 1), (0, 1)]);
        assert_eq!(send_all(&mut outbox).len(), 3);
        outbox.answered(0, 0, Outcome::Again);
        outbox.answered(0, 1, Outcome::Unknown);
        assert_eq!(send_all(&mut outbox), [], "the third is on its way");
        assert!(!outbox.wants_identity(), "the second was out of order behind the first");
        outbox.answered(0, 2, Outcome::Written);
        assert_eq!(send_all(&mut outbox), [(0, 0), (0, 1)]);
        assert_eq!(outbox.answered(0, 0, Outcome::Written), 1);
        assert_eq!(outbox.answered(0, 1, Outcome::Written), 2);
        assert!(outbox.is_empty() && outbox.bytes() == 0);
    }

    /// A new identity would write again what the broker has.
    #[test]
    fn an_answer_heard_before_that_of_the_batch_in_front_says_nothing_of_our_numbers() {
        let mut outbox = outbox(&[(0, 1), (0, 1)]);
        send_all(&mut outbox);
        outbox.answered(0, 1, Outcome::Unknown);
        outbox.answered(0, 0, Outcome::Again);
        assert!(!outbox.wants_identity());
        assert_eq!(send_all(&mut outbox), [(0, 0), (0, 1)]);
    }

    #[test]
    fn a_partition_gets_to_know_us_by_one_batch() {
        let mut outbox = outbox(&[(0, 1), (0, 1), (0, 1)]);
        outbox.renew(Identity { id: 8, epoch: 0 });
        assert_eq!(send_all(&mut outbox), [(0, 0)]);
        outbox.answered(0, 0, Outcome::Again);
        assert_eq!(send_all(&mut outbox), [(0, 0)], "what follows would be taken for the first");
        outbox.answered(0, 0, Outcome::Written);
        assert_eq!(send_all(&mut outbox), [(0, 1), (0, 2)]);
    }

    #[test]
    fn nothing_overtakes_on_another_way() {
        let mut outbox = outbox(&[(0, 1), (0, 1)]);
        assert!(outbox.send(0, 1).is_some());
        assert!(outbox.send(0, 2).is_none(), "the first may be behind it there");
        outbox.answered(0, 0, Outcome::Again);
        assert_eq!(outbox.send(0, 2).map(|sending| sending.sequence), Some(0));
        assert_eq!(outbox.send(0, 2).map(|sending| sending.sequence), Some(1));
    }

    #[test]
    fn numbers_the_broker_does_not_know_begin_again_under_another_identity() {
        let mut outbox = outbox(&[(0, 2), (0, 1), (1, 1)]);
        send_all(&mut outbox);
        outbox.answered(0, 0, Outcome::Written);
        outbox.answered(0, 2, Outcome::Unknown);
        assert!(!outbox.wants_identity(), "the other partition's batch is on its way");
        outbox.answered(1, 0, Outcome::Again);
        assert!(outbox.wants_identity() && outbox.ready().is_empty());
        outbox.renew(Identity { id: 8, epoch: 0 });
        assert_eq!(send_all(&mut outbox), [(0, 0), (1, 0)]);
    }
}
