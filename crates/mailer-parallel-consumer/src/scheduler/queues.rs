//! The queues of keys: lists through the slots of the partitions, so that a queue costs no memory of its own per record.

use super::job::Ref;
use super::lane::{Lane, slot_of};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

/// What a key waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// For a free place.
    Ready,
    /// For its handler, or its dead letter, to end.
    Busy,
    /// For the end of a backoff.
    Waiting,
}

/// The records of one key that are not with a handler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) ends: Option<(Ref, Ref)>,
    pub(super) length: u32,
    pub(super) state: State,
}

impl Queue {
    pub(super) fn head(&self) -> Option<Ref> {
        self.ends.map(|(head, _)| head)
    }

    /// Appends a record.
    fn push_back(&mut self, lanes: &mut [Lane], record: Ref) {
        let head = match self.ends {
            None => record,
            Some((head, tail)) => {
                slot_of(lanes, tail).next = Some(record);
                head
            }
        };
        self.ends = Some((head, record));
        self.length += 1;
    }

    /// Puts a record back in front.
    pub(super) fn push_front(&mut self, lanes: &mut [Lane], record: Ref) {
        slot_of(lanes, record).next = self.head();
        self.ends = Some((record, self.ends.map_or(record, |(_, tail)| tail)));
        self.length += 1;
    }

    pub(super) fn pop_front(&mut self, lanes: &mut [Lane]) -> Option<Ref> {
        let (head, tail) = self.ends?;
        let next = slot_of(lanes, head).next.take();
        self.ends = next.map(|next| (next, tail));
        self.length -= 1;
        Some(head)
    }
}

/// All queues, by their number, which is a hash already.
#[derive(Debug, Default)]
pub(super) struct Queues(HashMap<u64, Queue, BuildHasherDefault<AsIs>>);

impl Queues {
    /// Appends a record; returns how many were before it, and whether its queue has become ready by it.
    pub(super) fn push(&mut self, lanes: &mut [Lane], number: u64, record: Ref) -> (u32, bool) {
        match self.0.entry(number) {
            Entry::Vacant(place) => {
                place.insert(Queue { ends: Some((record, record)), length: 1, state: State::Ready });
                (0, true)
            }
            Entry::Occupied(mut queue) => {
                let before = queue.get().length;
                queue.get_mut().push_back(lanes, record);
                (before, false)
            }
        }
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Queue> {
        self.0.get_mut(&number)
    }

    /// A job of this queue has ended: it is ready for the next (then the partition of its head is returned), or gone.
    pub(super) fn free(&mut self, number: u64) -> Option<Ref> {
        let Entry::Occupied(mut queue) = self.0.entry(number) else { return None };
        match queue.get().head() {
            None => {
                queue.remove();
                None
            }
            Some(head) => {
                queue.get_mut().state = State::Ready;
                Some(head)
            }
        }
    }

    /// Takes records out of a queue. Returns the new head if the queue is ready under another one than before.
    pub(super) fn retain(&mut self, lanes: &mut [Lane], number: u64, keep: impl Fn(Ref) -> bool) -> Option<Ref> {
        let queue = self.0.get_mut(&number)?;
        let before = queue.head();
        let mut kept = Queue { ends: None, length: 0, state: queue.state };
        while let Some(record) = queue.pop_front(lanes) {
            if keep(record) {
                kept.push_back(lanes, record);
            }
        }
        *queue = kept;
        let (state, head) = (kept.state, kept.head());
        if head != before && state == State::Waiting {
            return self.free(number); // the record that waited has gone
        }
        if head.is_none() && state == State::Ready {
            self.0.remove(&number);
        }
        head.filter(|_| head != before && state == State::Ready)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Hands on a number that is spread already.
#[derive(Debug, Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are keys here")
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
