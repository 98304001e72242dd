//! An edge: the bounded queue between two tasks, and the only buffer there is.
//!
//! One ring per pair of workers, single producer and single consumer, bounded in elements **and** in bytes. A full ring
//! refuses; the sender's task holds the element back and waits. Drained batches travel back in a second ring, so that a
//! steady pipeline allocates no batch.

use crate::tally::Tally;
use mailer_core::{Batch, Element, MAX_BATCH_RECORDS};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// Batches kept for their return to the sender.
const RECYCLED: usize = 8;

/// An element with the bytes it counts for.
#[derive(Debug)]
pub(crate) struct Parcel<T> {
    pub(crate) element: Element<T>,
    pub(crate) bytes: usize,
}

impl<T> Parcel<T> {
    /// A marker: takes a place in the ring, no bytes.
    pub(crate) fn marker(element: Element<T>) -> Self {
        Self { element, bytes: 0 }
    }
}

/// How full one ring is, and what went through it. Each end counts for itself, so no instruction is locked for it; each
/// has cache lines of its own.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    sent: Sent,
    taken: Taken,
}

/// Written by the sender.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Sent {
    batches: Tally,
    bytes: Tally,
    records: Tally,
    refused: Tally,
    blocked: Tally,
}

/// Written by the receiver.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Taken {
    batches: Tally,
    bytes: Tally,
}

/// What is in the ring. What was taken is read first: whoever looks from a third thread never sees less than nothing.
fn between(taken: &Tally, sent: &Tally) -> usize {
    let taken = taken.get();
    sent.get().saturating_sub(taken) as usize
}

impl Meter {
    /// An element is offered to the ring: counted before it can be received, so that nobody sees more taken than sent.
    pub(crate) fn offer(&self, bytes: usize) {
        self.sent.bytes.add(bytes as u64);
        self.sent.batches.add(1);
    }

    /// The ring has it.
    pub(crate) fn accept(&self, records: usize) {
        self.sent.records.add(records as u64);
    }

    /// The ring was full after all.
    fn give_back(&self, bytes: usize) {
        self.sent.bytes.take_back(bytes as u64);
        self.sent.batches.take_back(1);
        self.sent.refused.add(1);
    }

    /// The receiver has taken an element out.
    pub(crate) fn take(&self, bytes: usize) {
        self.taken.bytes.add(bytes as u64);
        self.taken.batches.add(1);
    }

    /// Elements queued.
    pub(crate) fn batches(&self) -> usize {
        between(&self.taken.batches, &self.sent.batches)
    }

    /// Bytes queued.
    pub(crate) fn bytes(&self) -> usize {
        between(&self.taken.bytes, &self.sent.bytes)
    }

    /// Records that were taken in.
    pub(crate) fn records(&self) -> u64 {
        self.sent.records.get()
    }

    /// How often the sender was refused.
    pub(crate) fn refused(&self) -> u64 {
        self.sent.refused.get()
    }

    /// How long the sender has held something back.
    pub(crate) fn blocked(&self) -> Duration {
        self.sent.blocked.time()
    }
}

/// The bounds of one ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) batches: usize,
    pub(crate) bytes: usize,
}

/// The sending end.
pub(crate) struct Sender<T> {
    ring: rtrb::Producer<Parcel<T>>,
    returned: rtrb::Consumer<Batch<T>>,
    meter: Arc<Meter>,
    limit: usize,
    receiver: Waker,
}

/// The receiving end.
pub(crate) struct Receiver<T> {
    ring: rtrb::Consumer<Parcel<T>>,
    spent: rtrb::Producer<Batch<T>>,
    meter: Arc<Meter>,
    sender: Waker,
}

/// Opens a ring. The wakers are those of the two threads at its ends.
pub(crate) fn ring<T>(
    capacity: Capacity,
    meter: Arc<Meter>,
    sender: Waker,
    receiver: Waker,
) -> (Sender<T>, Receiver<T>) {
    let (producer, consumer) = rtrb::RingBuffer::new(capacity.batches);
    let (spent, returned) = rtrb::RingBuffer::new(RECYCLED);
    (
        Sender { ring: producer, returned, meter: meter.clone(), limit: capacity.bytes, receiver },
        Receiver { ring: consumer, spent, meter, sender },
    )
}

impl<T> Sender<T> {
    /// Sends, or gives the element back when the ring is full. One element always fits into an empty ring, whatever its
    /// size: a record larger than the limit must still pass.
    pub(crate) fn try_send(&mut self, parcel: Parcel<T>) -> Result<(), Parcel<T>> {
        let waiting = self.meter.bytes();
        if parcel.bytes > 0 && waiting > 0 && waiting + parcel.bytes > self.limit {
            self.meter.sent.refused.add(1);
            return Err(parcel);
        }
        let bytes = parcel.bytes;
        let records = match &parcel.element {
            Element::Batch(batch) => batch.len(),
            _ => 0,
        };
        self.meter.offer(bytes);
        match self.ring.push(parcel) {
            Ok(()) => {
                self.meter.accept(records);
                self.receiver.wake_by_ref();
                Ok(())
            }
            Err(rtrb::PushError::Full(parcel)) => {
                self.meter.give_back(bytes);
                Err(parcel)
            }
        }
    }

    /// Something has been held back for so much longer.
    pub(crate) fn note_blocked(&self, time: Duration) {
        self.meter.sent.blocked.add_time(time);
    }

    /// An empty batch: one that came back, or a new one.
    pub(crate) fn buffer(&mut self) -> Batch<T> {
        self.returned.pop().unwrap_or_else(|_| Batch::with_capacity(MAX_BATCH_RECORDS))
    }
}

impl<T> Receiver<T> {
    pub(crate) fn try_receive(&mut self) -> Option<Parcel<T>> {
        let parcel = self.ring.pop().ok()?;
        self.meter.take(parcel.bytes);
        self.sender.wake_by_ref();
        Some(parcel)
    }

    /// Sends a drained batch back; when the return ring is full it is dropped.
    pub(crate) fn recycle(&mut self, batch: Batch<T>) {
        debug_assert!(batch.is_empty(), "a batch is recycled after it was drained");
        let _full = self.spent.push(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mailer_core::{Record, Timestamp};

    fn pair(batches: usize, bytes: usize) -> (Sender<u32>, Receiver<u32>, Arc<Meter>) {
        let meter = Arc::new(Meter::default());
        let (sender, receiver) =
            ring(Capacity { batches, bytes }, meter.clone(), Waker::noop().clone(), Waker::noop().clone());
        (sender, receiver, meter)
    }

    fn batch(bytes: usize) -> Parcel<u32> {
        Parcel { element: Element::Batch(vec![Record::new(Timestamp(0), 1)]), bytes }
    }

    #[test]
    fn is_bounded_in_elements() {
        let (mut sender, mut receiver, meter) = pair(2, 1_000);
        assert!(sender.try_send(batch(1)).is_ok() && sender.try_send(batch(1)).is_ok());
        assert!(sender.try_send(batch(1)).is_err());
        assert_eq!(meter.refused(), 1);
        assert!(receiver.try_receive().is_some());
        assert!(sender.try_send(batch(1)).is_ok());
    }

    #[test]
    fn is_bounded_in_bytes_but_lets_one_large_batch_pass() {
        let (mut sender, mut receiver, meter) = pair(16, 100);
        assert!(sender.try_send(batch(5_000)).is_ok(), "an empty ring takes anything");
        assert!(sender.try_send(batch(1)).is_err());
        assert!(sender.try_send(Parcel::marker(Element::Idle)).is_ok(), "markers count no bytes");
        assert_eq!(meter.bytes(), 5_000);
        receiver.try_receive();
        assert_eq!(meter.bytes(), 0);
    }

    #[test]
    fn drained_batches_come_back() {
        let (mut sender, mut receiver, _) = pair(2, 100);
        let mut used = Batch::with_capacity(7);
        used.clear();
        receiver.recycle(used);
        assert_eq!(sender.buffer().capacity(), 7);
    }
}
