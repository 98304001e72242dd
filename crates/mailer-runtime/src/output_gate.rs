//! The output gate: the leaf of a stage that routes records to the workers of the next one.
//!
//! Records are buffered per target and sent when a batch is full, before every marker, and when the task runs idle. What
//! a ring refuses is held back in order; while anything is held the task takes no further input. That is the whole of
//! backpressure.

use crate::edge::{Parcel, Sender};
use crate::node::{Node, TaskContext};
use mailer_core::{
    Barrier, Batch, Clock, Either, Element, Keyed, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, Record, Result, Watermark,
};
use std::collections::VecDeque;
use std::mem::size_of;
use std::time::Duration;

/// Puts records into the buffers of their targets.
pub(crate) trait Route<T>: Send {
    fn route(&mut self, batch: &mut Batch<T>, bytes_each: usize, targets: &mut [Target<T>]);
}

pub(crate) struct OutputGate<T, R> {
    targets: Vec<Target<T>>,
    route: R,
}

pub(crate) struct Target<T> {
    sender: Sender<T>,
    buffer: Batch<T>,
    bytes: usize,
    held: VecDeque<Parcel<T>>,
    /// Up to when the time of `held` is put down.
    blocked: Option<Duration>,
}

impl<T: Send, R: Route<T>> OutputGate<T, R> {
    pub(crate) fn new(senders: Vec<Sender<T>>, route: R) -> Self {
        let target = |mut sender: Sender<T>| {
            let (buffer, held) = (sender.buffer(), VecDeque::new());
            Target { buffer, sender, bytes: 0, held, blocked: None }
        };
        Self { targets: senders.into_iter().map(target).collect(), route }
    }

    fn send_all(&mut self, marker: impl Fn() -> Element<T>) {
        for target in &mut self.targets {
            target.close_batch();
            target.send(Parcel::marker(marker()));
        }
    }
}

impl<T> Target<T> {
    #[inline]
    fn push(&mut self, record: mailer_core::Record<T>, bytes: usize) {
        self.buffer.push(record);
        self.bytes += bytes;
        if self.buffer.len() >= MAX_BATCH_RECORDS || self.bytes >= MAX_BATCH_BYTES {
            self.close_batch();
        }
    }

    fn close_batch(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let next = self.sender.buffer();
        let parcel = Parcel { element: Element::Batch(std::mem::replace(&mut self.buffer, next)), bytes: self.bytes };
        self.bytes = 0;
        self.send(parcel);
    }

    fn send(&mut self, parcel: Parcel<T>) {
        if self.held.is_empty() {
            if let Err(parcel) = self.sender.try_send(parcel) {
                self.held.push_back(parcel);
            }
        } else {
            self.held.push_back(parcel);
        }
    }

    /// Sends what is held back; `true` when nothing is left. The clock is asked only while something is held.
    fn flush(&mut self, clock: &dyn Clock) -> bool {
        if self.held.is_empty() {
            return true;
        }
        let is_clear = self.send_held();
        let now = clock.monotonic();
        if let Some(since) = self.blocked {
            self.sender.note_blocked(now.saturating_sub(since));
        }
        self.blocked = (!is_clear).then_some(now);
        is_clear
    }

    fn send_held(&mut self) -> bool {
        while let Some(parcel) = self.held.pop_front() {
            if let Err(parcel) = self.sender.try_send(parcel) {
                self.held.push_front(parcel);
                return false;
            }
        }
        true
    }
}

impl<T: Send, R: Route<T>> Node<T> for OutputGate<T, R> {
    fn push(&mut self, batch: &mut Batch<T>, cx: &mut TaskContext) -> Result<()> {
        let bytes_each = cx.bytes_per_record.max(size_of::<mailer_core::Record<T>>());
        self.route.route(batch, bytes_each, &mut self.targets);
        Ok(())
    }

    fn flush(&mut self, cx: &mut TaskContext) -> Result<bool> {
        let mut clear = true;
        for target in &mut self.targets {
            clear &= target.flush(cx.clock.as_ref());
        }
        Ok(clear)
    }

    fn flush_partial(&mut self, _cx: &mut TaskContext) -> Result<()> {
        self.targets.iter_mut().for_each(Target::close_batch);
        Ok(())
    }

    fn watermark(&mut self, watermark: Watermark, _cx: &mut TaskContext) -> Result<()> {
        self.send_all(|| Element::Watermark(watermark));
        Ok(())
    }

    fn idle(&mut self, _cx: &mut TaskContext) -> Result<()> {
        self.send_all(|| Element::Idle);
        Ok(())
    }

    fn barrier(&mut self, barrier: Barrier, _cx: &mut TaskContext) -> Result<()> {
        self.send_all(|| Element::Barrier(barrier));
        Ok(())
    }

    fn end(&mut self, _cx: &mut TaskContext) -> Result<()> {
        self.send_all(|| Element::End);
        Ok(())
    }
}

/// By key group. `workers[group]` is the owner.
pub(crate) struct ByKeyGroup {
    groups: u16,
    workers: Vec<u16>,
}

impl ByKeyGroup {
    pub(crate) fn new(groups: u16, workers: u16) -> Self {
        let owner = |group| mailer_core::KeyGroup(group).worker(groups, workers);
        Self { groups, workers: (0..groups).map(owner).collect() }
    }
}

impl<K: Send, V: Send> Route<Keyed<K, V>> for ByKeyGroup {
    fn route(&mut self, batch: &mut Batch<Keyed<K, V>>, bytes_each: usize, targets: &mut [Target<Keyed<K, V>>]) {
        for record in batch.drain(..) {
            let group = record.value.hash.group(self.groups);
            let worker = self.workers[usize::from(group.0)];
            targets[usize::from(worker)].push(record, bytes_each);
        }
    }
}

/// Keyed records by key group, the others to every worker.
pub(crate) struct KeyedOrAll(ByKeyGroup);

impl KeyedOrAll {
    pub(crate) fn new(groups: u16, workers: u16) -> Self {
        Self(ByKeyGroup::new(groups, workers))
    }
}

impl<K: Send, V: Send, B: Clone + Send> Route<Either<Keyed<K, V>, B>> for KeyedOrAll {
    fn route(
        &mut self,
        batch: &mut Batch<Either<Keyed<K, V>, B>>,
        bytes_each: usize,
        targets: &mut [Target<Either<Keyed<K, V>, B>>],
    ) {
        for Record { timestamp, value } in batch.drain(..) {
            match value {
                Either::Left(keyed) => {
                    let worker = self.0.workers[usize::from(keyed.hash.group(self.0.groups).0)];
                    targets[usize::from(worker)].push(Record { timestamp, value: Either::Left(keyed) }, bytes_each);
                }
                Either::Right(all) => {
                    for target in &mut *targets {
                        target.push(Record { timestamp, value: Either::Right(all.clone()) }, bytes_each);
                    }
                }
            }
        }
    }
}

/// Batch by batch in turn; with one target, forward.
pub(crate) struct InTurn {
    pub(crate) next: usize,
}

impl<T: Send> Route<T> for InTurn {
    fn route(&mut self, batch: &mut Batch<T>, bytes_each: usize, targets: &mut [Target<T>]) {
        let target = &mut targets[self.next];
        for record in batch.drain(..) {
            target.push(record, bytes_each);
        }
        self.next = (self.next + 1) % targets.len();
    }
}
