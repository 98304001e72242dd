//! What was taken and waits for the worker, bounded in bytes.

use mailer_core::{Batch, Record, Timestamp};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// Between the endpoint and the worker.
pub(super) struct Queue<T> {
    capacity: usize,
    waker: Waker,
    state: Mutex<State<T>>,
    room: Notify,
}

struct State<T> {
    /// Records with the bytes of their lines.
    records: VecDeque<(Record<T>, usize)>,
    bytes: usize,
    /// Nothing more is taken.
    closed: bool,
}

/// What came of an offer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offered<T> {
    /// All of it is in the queue.
    Taken,
    /// There is no room: here it is again.
    Full(T),
    /// There will never be any.
    Closed,
}

impl<T> Queue<T> {
    pub(super) fn new(capacity: usize, waker: Waker) -> Self {
        let state = State { records: VecDeque::new(), bytes: 0, closed: false };
        Self { capacity, waker, state: Mutex::new(state), room: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all of a request, if it fits or nothing else waits.
    pub(super) fn offer(&self, at: Timestamp, items: Vec<(T, usize)>) -> Offered<Vec<(T, usize)>> {
        let bytes: usize = items.iter().map(|(_, bytes)| bytes).sum();
        let mut state = self.state();
        if state.closed {
            return Offered::Closed;
        }
        if state.bytes > 0 && state.bytes + bytes > self.capacity {
            return Offered::Full(items);
        }
        state.bytes += bytes;
        state.records.extend(items.into_iter().map(|(item, bytes)| (Record::new(at, item), bytes)));
        drop(state);
        self.waker.wake_by_ref();
        Offered::Taken
    }

    /// Waits until something was taken out since the last time.
    pub(super) async fn room(&self) {
        self.room.notified().await;
    }

    /// Moves records into a batch; how many bytes they had.
    pub(super) fn take(&self, out: &mut Batch<T>, records: usize, most: usize) -> usize {
        let mut state = self.state();
        let mut bytes = 0;
        while out.len() < records
            && bytes < most
            && let Some((record, size)) = state.records.pop_front()
        {
            bytes += size;
            out.push(record);
        }
        state.bytes -= bytes;
        drop(state);
        if bytes > 0 {
            self.room.notify_waiters();
            self.room.notify_one(); // for somebody who is just about to wait
        }
        bytes
    }

    /// Closes it if it is empty.
    pub(super) fn close(&self) -> bool {
        let mut state = self.state();
        state.closed = state.records.is_empty();
        state.closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_whole_or_not_at_all() {
        let queue = Queue::new(10, Waker::noop().clone());
        let at = Timestamp(7);
        assert_eq!(queue.offer(at, vec![("a", 30)]), Offered::Taken, "nothing else waits");
        assert_eq!(queue.offer(at, vec![("b", 1)]), Offered::Full(vec![("b", 1)]));
        let mut out = Batch::new();
        assert_eq!((queue.take(&mut out, 10, 10), out.len()), (30, 1));
        assert_eq!(queue.offer(at, vec![("b", 4), ("c", 4)]), Offered::Taken);
        assert_eq!(queue.offer(at, vec![("d", 4)]), Offered::Full(vec![("d", 4)]));
        assert!(!queue.close(), "something waits");
        out.clear();
        assert_eq!(queue.take(&mut out, 1, 100), 4, "no more records than are wanted");
        assert_eq!(queue.take(&mut out, 10, 100), 4);
        assert!(queue.close());
        assert_eq!(queue.offer(at, vec![("e", 1)]), Offered::Closed);
    }
}
