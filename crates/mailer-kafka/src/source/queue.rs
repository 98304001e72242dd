//! Between the fetching task and the worker: bounded by bytes, never waited for by the worker.

use crate::record::KafkaRecord;
use mailer_core::{Error, ErrorKind};
use std::collections::VecDeque;
use std::collections::vec_deque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// Records of one partition, in order, and where reading resumes behind them.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Which split of the instance, in order of assignment.
    pub(crate) slot: usize,
    pub(crate) records: vec_deque::IntoIter<KafkaRecord>,
    pub(crate) bytes: usize,
    /// At least the last record's offset + 1; more where control or aborted records follow. Also sent without records.
    pub(crate) next: i64,
}

#[derive(Debug)]
struct State {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    caught_up: bool,
    failure: Option<(ErrorKind, String)>,
    closed: bool,
}

/// The queue of one source instance.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    budget: usize,
    waker: Waker,
    /// Tells the task that something has changed: room, work, or the end.
    changed: Notify,
}

impl Queue {
    pub(crate) fn new(budget: usize, waker: Waker) -> Self {
        let state = State { chunks: VecDeque::new(), bytes: 0, caught_up: false, failure: None, closed: false };
        Self { state: Mutex::new(state), budget, waker, changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The task's side.

    pub(crate) fn push(&self, chunk: Chunk) {
        let mut state = self.lock();
        state.bytes += chunk.bytes;
        state.chunks.push_back(chunk);
        drop(state);
        self.waker.wake_by_ref();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().bytes >= self.budget
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

    pub(crate) fn pop(&self) -> Option<Chunk> {
        self.lock().chunks.pop_front()
    }

    /// Frees the budget of a chunk that has been handed out.
    pub(crate) fn release(&self, bytes: usize) {
        self.lock().bytes -= bytes;
        self.changed.notify_one();
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

    fn chunk(bytes: usize) -> Chunk {
        Chunk { slot: 0, records: VecDeque::new().into_iter(), bytes, next: 1 }
    }

    #[test]
    fn is_full_until_what_was_handed_out_is_released() {
        let queue = Queue::new(10, Waker::noop().clone());
        queue.push(chunk(10));
        assert!(queue.is_full());
        let taken = queue.pop().unwrap();
        assert!(queue.is_full(), "records in the worker's hands still count");
        queue.release(taken.bytes);
        assert!(!queue.is_full());
    }

    #[test]
    fn the_first_failure_is_kept() {
        let queue = Queue::new(10, Waker::noop().clone());
        queue.fail(&Error::unavailable("first"));
        queue.fail(&Error::refused("second"));
        assert_eq!(queue.failure().unwrap().message(), "first");
    }

    #[test]
    fn is_caught_up_only_when_the_worker_has_everything() {
        let queue = Queue::new(10, Waker::noop().clone());
        queue.push(chunk(1));
        queue.set_caught_up(true);
        assert!(!queue.is_caught_up());
        queue.pop();
        assert!(queue.is_caught_up());
    }
}
