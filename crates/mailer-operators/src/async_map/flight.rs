//! What is in flight, and in which order answers may leave: pure, no futures in here.
//!
//! Elements get sequence numbers as they come. A watermark is a fence between two of them: it passes when everything before
//! it has left, and nothing behind it leaves before it. Within two fences, the order of leaving is the mode's.

use mailer_core::{KeyHash, Timestamp, Watermark};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// In which order answers leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the elements came.
    Ordered,
    /// As the answers come; never across a watermark.
    Unordered,
    /// Elements of one key as they came, and one of them at a time; keys as their answers come.
    PerKey,
}

/// An element that has not left yet.
#[derive(Debug)]
pub(super) struct Element<T> {
    pub(super) timestamp: Timestamp,
    pub(super) lane: KeyHash,
    pub(super) value: T,
}

enum Slot<T, O> {
    Waiting(Element<T>),
    Running(Element<T>),
    Done(Element<T>, O),
    Gone,
}

pub(super) struct Flight<T, O> {
    order: Order,
    capacity: usize,
    /// The sequence number of the first slot.
    base: u64,
    slots: VecDeque<Slot<T, O>>,
    /// Slots that are not gone, and among them those that run.
    held: usize,
    running: usize,
    /// Sequence numbers of waiting elements, and, per key, of those behind one that runs.
    ready: VecDeque<u64>,
    behind: FxHashMap<KeyHash, VecDeque<u64>>,
    /// Done, in the order of their answers.
    done: VecDeque<u64>,
    /// Each before the element with its sequence number.
    fences: VecDeque<(u64, Watermark)>,
    passed: Watermark,
}

/// What leaves.
#[derive(Debug, PartialEq)]
pub(super) enum Leaving<T, O> {
    Answer { sequence: u64, timestamp: Timestamp, value: T, answer: O },
    Watermark(Watermark),
}

impl<T, O> Flight<T, O> {
    pub(super) fn new(order: Order, capacity: usize) -> Self {
        Self {
            order,
            capacity: capacity.max(1),
            base: 0,
            slots: VecDeque::new(),
            held: 0,
            running: 0,
            ready: VecDeque::new(),
            behind: FxHashMap::default(),
            done: VecDeque::new(),
            fences: VecDeque::new(),
            passed: Watermark::NONE,
        }
    }

    /// Goes on at a sequence number, and behind a watermark that has left, of a checkpoint.
    pub(super) fn resume(&mut self, next: u64, passed: Watermark) {
        self.base = next;
        self.passed = passed;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held == 0 && self.fences.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.held >= self.capacity
    }

    /// How far event time has moved behind the operator.
    pub(super) fn passed(&self) -> Watermark {
        self.passed
    }

    /// The first sequence number that may not have left.
    pub(super) fn first(&self) -> u64 {
        self.base
    }

    pub(super) fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    pub(super) fn push(&mut self, element: Element<T>) -> u64 {
        let sequence = self.next();
        if self.order == Order::PerKey {
            match self.behind.get_mut(&element.lane) {
                Some(behind) => behind.push_back(sequence),
                None => {
                    self.behind.insert(element.lane, VecDeque::new());
                    self.ready.push_back(sequence);
                }
            }
        } else {
            self.ready.push_back(sequence);
        }
        self.slots.push_back(Slot::Waiting(element));
        self.held += 1;
        sequence
    }

    /// The next element that may be asked for, while fewer than the capacity are.
    pub(super) fn start(&mut self) -> Option<(u64, &T)> {
        if self.running >= self.capacity {
            return None;
        }
        let sequence = self.ready.pop_front()?;
        let slot = self.slots.get_mut((sequence - self.base) as usize)?;
        if let Slot::Waiting(element) = std::mem::replace(slot, Slot::Gone) {
            *slot = Slot::Running(element);
            self.running += 1;
        }
        match slot {
            Slot::Running(element) => Some((sequence, &element.value)),
            _ => None,
        }
    }

    /// The answer to an element that runs.
    pub(super) fn finish(&mut self, sequence: u64, answer: O) {
        let Some(slot) = sequence.checked_sub(self.base).and_then(|at| self.slots.get_mut(at as usize)) else { return };
        let element = match std::mem::replace(slot, Slot::Gone) {
            Slot::Running(element) => element,
            answered => return *slot = answered,
        };
        let lane = element.lane;
        *slot = Slot::Done(element, answer);
        self.running -= 1;
        self.done.push_back(sequence);
        if self.order == Order::PerKey {
            match self.behind.get_mut(&lane).and_then(VecDeque::pop_front) {
                Some(next) => self.ready.push_back(next),
                None => drop(self.behind.remove(&lane)),
            }
        }
    }

    pub(super) fn fence(&mut self, watermark: Watermark) {
        let last = self.fences.back().map_or(self.passed, |(_, last)| *last);
        if watermark > last {
            self.fences.push_back((self.next(), watermark));
        }
    }

    /// What may leave next.
    pub(super) fn leave(&mut self) -> Option<Leaving<T, O>> {
        self.trim();
        let fence = self.fences.front().copied();
        if let Some((at, watermark)) = fence
            && at <= self.base
        {
            self.fences.pop_front();
            self.passed = watermark;
            return Some(Leaving::Watermark(watermark));
        }
        let limit = fence.map_or(u64::MAX, |(at, _)| at);
        let sequence = match self.order {
            Order::Ordered => self.base,
            Order::Unordered | Order::PerKey => {
                let place = self.done.iter().position(|sequence| *sequence < limit)?;
                self.done.remove(place)?
            }
        };
        let slot = self.slots.get_mut((sequence - self.base) as usize)?;
        match std::mem::replace(slot, Slot::Gone) {
            Slot::Done(Element { timestamp, value, .. }, answer) => {
                self.held -= 1;
                self.trim();
                Some(Leaving::Answer { sequence, timestamp, value, answer })
            }
            other => {
                *slot = other;
                None
            }
        }
    }

    fn trim(&mut self) {
        while let Some(Slot::Gone) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        if self.order == Order::Ordered {
            self.done.clear();
        }
    }

    /// The element with a sequence number, if it has not left.
    pub(super) fn element(&self, sequence: u64) -> Option<&Element<T>> {
        match self.slots.get(sequence.checked_sub(self.base)? as usize)? {
            Slot::Waiting(element) | Slot::Running(element) | Slot::Done(element, _) => Some(element),
            Slot::Gone => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(lane: u64, value: &'static str) -> Element<&'static str> {
        Element { timestamp: Timestamp(0), lane: KeyHash(lane), value }
    }

    fn flight(order: Order, values: &[(u64, &'static str)]) -> Flight<&'static str, u32> {
        let mut flight = Flight::new(order, 10);
        for (lane, value) in values {
            flight.push(element(*lane, value));
        }
        flight
    }

    fn started(flight: &mut Flight<&'static str, u32>) -> Vec<u64> {
        std::iter::from_fn(|| flight.start().map(|(sequence, _)| sequence)).collect()
    }

    fn left(flight: &mut Flight<&'static str, u32>) -> Vec<String> {
        let show = |leaving: Leaving<&str, u32>| match leaving {
            Leaving::Answer { value, .. } => value.to_string(),
            Leaving::Watermark(Watermark(Timestamp(time))) => format!("w{time}"),
        };
        std::iter::from_fn(|| flight.leave().map(show)).collect()
    }

    #[test]
    fn ordered_answers_wait_for_those_before_them() {
        let mut flight = flight(Order::Ordered, &[(0, "a"), (0, "b"), (0, "c")]);
        assert_eq!(started(&mut flight), [0, 1, 2]);
        flight.finish(1, 0);
        assert_eq!(left(&mut flight), [""; 0]);
        flight.finish(0, 0);
        assert_eq!(left(&mut flight), ["a", "b"]);
        flight.fence(Watermark(Timestamp(5)));
        assert_eq!(left(&mut flight), [""; 0]);
        flight.finish(2, 0);
        assert_eq!(left(&mut flight), ["c", "w5"]);
        assert!(flight.is_empty());
    }

    #[test]
    fn unordered_answers_leave_as_they_come_but_not_across_a_watermark() {
        let mut flight = flight(Order::Unordered, &[(0, "a"), (0, "b")]);
        flight.fence(Watermark(Timestamp(5)));
        flight.fence(Watermark(Timestamp(5)));
        flight.push(element(0, "c"));
        started(&mut flight);
        flight.finish(2, 0);
        flight.finish(1, 0);
        assert_eq!(left(&mut flight), ["b"]);
        assert_eq!(flight.passed(), Watermark::NONE);
        flight.finish(0, 0);
        assert_eq!(left(&mut flight), ["a", "w5", "c"]);
        assert_eq!(flight.passed(), Watermark(Timestamp(5)));
    }

    #[test]
    fn a_key_is_asked_for_one_at_a_time_and_holds_no_other_up() {
        let mut flight = flight(Order::PerKey, &[(1, "a1"), (1, "a2"), (2, "b1"), (1, "a3")]);
        assert_eq!(started(&mut flight), [0, 2]);
        flight.finish(2, 0);
        assert_eq!(left(&mut flight), ["b1"]);
        flight.finish(0, 0);
        assert_eq!((left(&mut flight), started(&mut flight)), (vec!["a1".to_owned()], vec![1]));
        flight.finish(1, 0);
        assert_eq!((left(&mut flight), started(&mut flight)), (vec!["a2".to_owned()], vec![3]));
        flight.finish(3, 0);
        assert_eq!(left(&mut flight), ["a3"]);
        assert!(flight.is_empty() && flight.behind.is_empty());
    }

    #[test]
    fn no_more_run_than_the_capacity_and_a_late_answer_means_nothing() {
        let mut flight = Flight::<_, u32>::new(Order::Unordered, 2);
        for value in ["a", "b", "c"] {
            flight.push(element(0, value));
        }
        assert!(flight.is_full());
        assert_eq!(started(&mut flight), [0, 1]);
        flight.finish(0, 1);
        flight.finish(0, 2);
        assert_eq!(left(&mut flight), ["a"]);
        flight.finish(0, 3);
        assert_eq!(started(&mut flight), [2]);
    }
}
