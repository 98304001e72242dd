//! Between the fetching task and the worker: bounded by bytes, never waited for by the worker.

use bytes::Bytes;
use mailer_core::{Error, ErrorKind};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// What one response brought of one partition, and where reading resumes behind it.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Which split of the instance, in order of assignment.
    pub(crate) slot: usize,
    /// Whole record batches, not unpacked yet; none when only the position moves.
    pub(crate) records: Bytes,
    /// Transactions among them that were aborted: producer id and first offset.
    pub(crate) aborted: Vec<(i64, i64)>,
    /// Behind the last batch.
    pub(crate) next: i64,
    /// The leader epoch of the last batch.
    pub(crate) leader_epoch: Option<i32>,
}

impl Chunk {
    /// Moves the position and brings nothing.
    pub(crate) fn jump(slot: usize, next: i64) -> Self {
        Self { slot, records: Bytes::new(), aborted: Vec::new(), next, leader_epoch: None }
    }
}

#[derive(Debug, Default)]
struct State {
    chunks: VecDeque<Chunk>,
    /// Bytes fetched and not released, by slot.
    held: Vec<usize>,
    /// How far each slot may be read, as last told by a broker.
    ends: Vec<Option<i64>>,
    caught_up: bool,
    failure: Option<(ErrorKind, String)>,
    closed: bool,
}

/// The queue of one source instance.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    waker: Waker,
    /// Tells the task that something has changed: room, work, or the end.
    changed: Notify,
}

impl Queue {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { state: Mutex::default(), waker, changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The task's side.

    /// One more slot.
    pub(crate) fn add_slot(&self) {
        let mut state = self.lock();
        state.held.push(0);
        state.ends.push(None);
    }

    pub(crate) fn push(&self, chunk: Chunk) {
        let mut state = self.lock();
        state.held[chunk.slot] += chunk.records.len();
        state.chunks.push_back(chunk);
        drop(state);
        self.waker.wake_by_ref();
    }

    /// Bytes fetched and not released, by slot.
    pub(crate) fn held(&self) -> Vec<usize> {
        self.lock().held.clone()
    }

    pub(crate) fn set_end(&self, slot: usize, end: i64) {
        self.lock().ends[slot] = Some(end);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Says whether everything readable has been pushed.
    pub(crate) fn set_caught_up(&self, caught_up: bool) {
        let changed = std::mem::replace(&mut self.lock().caught_up, caught_up) != caught_up;
        if changed {
            self.waker.wake_by_ref();
        }
    }

    /// The source cannot go on; the worker gets this when it has taken what was read before.
    pub(crate) fn fail(&self, error: &Error) {
        self.lock().failure.get_or_insert_with(|| (error.kind(), error.message().to_owned()));
        self.waker.wake_by_ref();
    }

    /// Waits until the worker has changed something.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    // The worker's side.

    /// The first chunk of a slot that is not paused.
    pub(crate) fn pop(&self, is_paused: impl Fn(usize) -> bool) -> Option<Chunk> {
        let mut state = self.lock();
        let at = state.chunks.iter().position(|chunk| !is_paused(chunk.slot))?;
        state.chunks.remove(at)
    }

    /// Frees the bytes of a chunk that has been handed out.
    pub(crate) fn release(&self, slot: usize, bytes: usize) {
        self.lock().held[slot] -= bytes;
        self.changed.notify_one();
    }

    pub(crate) fn end(&self, slot: usize) -> Option<i64> {
        self.lock().ends.get(slot).copied().flatten()
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().failure.as_ref().map(|(kind, message)| Error::new(*kind, message.clone()))
    }

    pub(crate) fn is_caught_up(&self) -> bool {
        let state = self.lock();
        state.caught_up && state.chunks.is_empty()
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        let queue = Queue::new(Waker::noop().clone());
        queue.add_slot();
        queue
    }

    #[test]
    fn bytes_are_held_until_what_was_handed_out_is_released() {
        let queue = queue();
        queue.push(Chunk { records: Bytes::from_static(&[0; 10]), ..Chunk::jump(0, 1) });
        assert_eq!(queue.held(), [10]);
        let taken = queue.pop(|_| false).unwrap();
        assert_eq!(queue.held(), [10], "records in the worker's hands still count");
        queue.release(0, taken.records.len());
        assert_eq!(queue.held(), [0]);
    }

    #[test]
    fn chunks_of_a_paused_slot_wait_and_the_others_pass() {
        let queue = queue();
        queue.add_slot();
        [(0, 1), (1, 2), (0, 3)].into_iter().for_each(|(slot, next)| queue.push(Chunk::jump(slot, next)));
        let next = |paused: &[usize]| queue.pop(|slot| paused.contains(&slot)).map(|chunk| chunk.next);
        assert_eq!([next(&[0]), next(&[0]), next(&[]), next(&[])], [Some(2), None, Some(1), Some(3)]);
    }

    #[test]
    fn the_first_failure_is_kept() {
        let queue = queue();
        queue.fail(&Error::unavailable("first"));
        queue.fail(&Error::refused("second"));
        assert_eq!(queue.failure().unwrap().message(), "first");
    }

    #[test]
    fn is_caught_up_only_when_the_worker_has_everything() {
        let queue = queue();
        queue.push(Chunk::jump(0, 1));
        queue.set_caught_up(true);
        assert!(!queue.is_caught_up());
        queue.pop(|_| false);
        assert!(queue.is_caught_up());
    }
}
