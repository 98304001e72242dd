//! What was written and not yet taken by the receiver: gathered on the worker, posted by one task, in order.

use super::post::Post;
use crate::io::Io;
use bytes::Bytes;
use mailer_core::{Error, ErrorKind, Flush, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::watch;
use tokio::sync::{Notify, futures::Notified};

/// Lines.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    pub(super) records: u64,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Chunk>,
    /// Of what waits, and of the request under way.
    bytes: usize,
    written: u64,
    delivered: u64,
    /// The worker was refused room, and waits to be woken.
    blocked: bool,
    failure: Option<(ErrorKind, String)>,
}

impl State {
    fn check(&self) -> Result<()> {
        match &self.failure {
            Some((kind, message)) => Err(Error::new(*kind, message.clone())),
            None => Ok(()),
        }
    }
}

/// What worker, task and flushes share.
struct Shared {
    state: Mutex<State>,
    progress: Condvar,
    more: Notify,
    waker: Waker,
    /// Keeps the task alive while a flush waits for it.
    _io: Arc<Io>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn more(&self) -> Notified<'_> {
        self.more.notified()
    }

    fn delivered(&self, chunk: &Chunk) {
        let mut state = self.state();
        state.bytes -= chunk.bytes.len();
        state.delivered += chunk.records;
        let wake = std::mem::take(&mut state.blocked);
        drop(state);
        self.progress.notify_all();
        if wake {
            self.waker.wake_by_ref();
        }
    }

    fn failed(&self, error: &Error) {
        self.state().failure.get_or_insert_with(|| (error.kind(), error.message().to_owned()));
        self.progress.notify_all();
        self.waker.wake_by_ref();
    }

    /// Every request has an outcome in time, so this ends.
    fn wait(&self, target: u64) -> Result<()> {
        let waiting = |state: &mut State| state.delivered < target && state.failure.is_none();
        self.progress.wait_while(self.state(), waiting).unwrap_or_else(PoisonError::into_inner).check()
    }
}

/// The worker's end.
pub(super) struct Lane {
    shared: Arc<Shared>,
    /// Gone with the worker's sink and its flushes: then nobody waits for a receiver that does not answer.
    alive: Arc<watch::Sender<()>>,
}

impl Lane {
    pub(super) fn start(io: Arc<Io>, post: Post, batch: usize, waker: Waker) -> Self {
        let state = Mutex::default();
        let shared = Arc::new(Shared { state, progress: Condvar::new(), more: Notify::new(), waker, _io: io.clone() });
        let (alive, gone) = watch::channel(());
        io.spawn(deliver(shared.clone(), post, batch, gone));
        Self { shared, alive: Arc::new(alive) }
    }

    /// Bytes that may be written now; 0 is followed by a wake-up. A failed delivery shows here.
    pub(super) fn room(&self, budget: usize) -> Result<usize> {
        let mut state = self.shared.state();
        state.check()?;
        let room = budget.saturating_sub(state.bytes);
        state.blocked = room == 0;
        Ok(room)
    }

    pub(super) fn send(&self, chunk: Chunk) {
        if chunk.records == 0 {
            return;
        }
        let mut state = self.shared.state();
        state.bytes += chunk.bytes.len();
        state.written += chunk.records;
        state.waiting.push_back(chunk);
        drop(state);
        self.shared.more.notify_one();
    }

    /// Whether all is well; `left` when the worker keeps records for which there was no room.
    pub(super) fn check(&self, left: bool) -> Result<()> {
        let mut state = self.shared.state();
        state.check()?;
        if left && state.bytes == 0 {
            // It was delivered meanwhile.
            self.shared.waker.wake_by_ref();
        }
        // What is left is offered again when something is delivered.
        state.blocked |= left;
        Ok(())
    }

    pub(super) fn flush(&self) -> Result<Flush> {
        let state = self.shared.state();
        state.check()?;
        let target = state.written;
        if state.delivered >= target {
            return Ok(Flush::Done);
        }
        drop(state);
        // At the end of input the sink is gone before its last flush is done.
        let (shared, alive) = (self.shared.clone(), self.alive.clone());
        let job = move || {
            let delivered = shared.wait(target);
            drop(alive);
            delivered
        };
        Ok(Flush::Pending(Box::new(job)))
    }
}

/// One request after the other, until the worker's sink and its flushes are gone.
async fn deliver(shared: Arc<Shared>, post: Post, batch: usize, mut gone: watch::Receiver<()>) {
    loop {
        let more = shared.more();
        let Some(mut chunk) = next(&mut shared.state().waiting, batch) else {
            tokio::select! {
                () = more => continue,
                _ = gone.changed() => return,
            }
        };
        let body = Bytes::from(std::mem::take(&mut chunk.bytes));
        let delivered = tokio::select! {
            delivered = post.deliver(body.clone()) => delivered,
            _ = gone.changed() => Err(Error::unavailable("the job was stopped before its output was delivered")),
        };
        match delivered {
            Ok(()) => shared.delivered(&Chunk { bytes: body.into(), ..chunk }),
            Err(error) => return shared.failed(&error),
        }
    }
}

/// As many chunks as make a batch: at least one, if there is one.
fn next(waiting: &mut VecDeque<Chunk>, batch: usize) -> Option<Chunk> {
    let mut first = waiting.pop_front()?;
    while let Some(chunk) = waiting.front()
        && first.bytes.len() + chunk.bytes.len() <= batch
    {
        first.bytes.extend_from_slice(&chunk.bytes);
        first.records += chunk.records;
        waiting.pop_front();
    }
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together_up_to_a_batch() {
        let chunk = |size| Chunk { bytes: vec![b'x'; size], records: 1 };
        let mut waiting: VecDeque<_> = [30, 50, 30, 200, 1, 1].into_iter().map(chunk).collect();
        let mut batches = Vec::new();
        while let Some(batch) = next(&mut waiting, 100) {
            batches.push((batch.bytes.len(), batch.records));
        }
        assert_eq!(batches, [(80, 2), (30, 1), (200, 1), (2, 2)]);
    }
}
