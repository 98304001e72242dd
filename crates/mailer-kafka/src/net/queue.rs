//! The correlation queue of a connection: which requests wait for which answers, and until when.
//!
//! A broker answers the requests of a connection in their order, so the queue is first in, first out, and an answer with any
//! other number means that the two sides no longer agree: everything after it would be read wrongly.

use super::frame::Frame;
use super::lost::Lost;
use crate::client::Failure;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

/// What a caller waits on: the response's frame without its length.
pub(super) type Pending = oneshot::Receiver<Result<Bytes, Failure>>;

/// A request that is about to take its place.
pub(super) struct Request {
    pub(super) name: &'static str,
    pub(super) frame: Frame,
    /// How long its answer may take.
    pub(super) limit: Duration,
    /// Its place among the requests in flight, given back with the answer; a login has none.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

struct Waiting {
    id: i32,
    name: &'static str,
    limit: Duration,
    deadline: Instant,
    answer: oneshot::Sender<Result<Bytes, Failure>>,
    _place: Option<OwnedSemaphorePermit>,
}

struct State {
    next_id: i32,
    waiting: VecDeque<Waiting>,
    /// `None` once closed.
    outgoing: Option<mpsc::UnboundedSender<Vec<Bytes>>>,
    closed: Option<Lost>,
    last_used: Instant,
}

/// The queue, between those who ask and the task that reads and writes.
pub(super) struct Queue {
    peer: String,
    state: Mutex<State>,
    changed: Notify,
}

impl Queue {
    /// `outgoing` takes frames in their order; the places in flight bound how many.
    pub(super) fn new(peer: String, outgoing: mpsc::UnboundedSender<Vec<Bytes>>) -> Self {
        let outgoing = Some(outgoing);
        let state = State { next_id: 0, waiting: VecDeque::new(), outgoing, closed: None, last_used: Instant::now() };
        Self { peer, state: Mutex::new(state), changed: Notify::new() }
    }

    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().closed.is_none()
    }

    /// Numbers a request, hands it to the writer, and gives it a place in the queue: all at once, so that both orders agree.
    pub(super) fn push(&self, request: Request) -> Result<Pending, Failure> {
        let mut state = self.lock();
        let id = state.next_id;
        let sent = state.outgoing.as_ref().is_some_and(|outgoing| outgoing.send(request.frame.numbered(id)).is_ok());
        if !sent {
            let lost = state.closed.clone().unwrap_or_else(|| Lost::new("the connection is closed"));
            return Err(lost.failure(request.name, &self.peer));
        }
        let (answer, pending) = oneshot::channel();
        let now = Instant::now();
        let Request { name, limit, place, .. } = request;
        state.waiting.push_back(Waiting { id, name, limit, deadline: now + limit, answer, _place: place });
        state.next_id = id.wrapping_add(1) & i32::MAX;
        state.last_used = now;
        drop(state);
        self.changed.notify_one();
        Ok(pending)
    }

    /// Hands an answer to who waits for it. An error means the connection is of no use any more.
    pub(super) fn answered(&self, frame: Bytes) -> Result<(), Lost> {
        let number = frame.first_chunk().map(|bytes| i32::from_be_bytes(*bytes));
        let mut state = self.lock();
        match state.waiting.pop_front() {
            Some(first) if Some(first.id) == number => {
                state.last_used = Instant::now();
                if state.waiting.is_empty() {
                    self.changed.notify_one();
                }
                let _ = first.answer.send(Ok(frame));
                Ok(())
            }
            Some(first) => {
                let reason = format!("an answer to request {number:?} came where {} was due", first.id);
                state.waiting.push_front(first);
                Err(Lost::new(reason))
            }
            None => Err(Lost::new("an answer came that nobody had asked for")),
        }
    }

    /// Fails everything that waits, and everything that is asked later.
    pub(super) fn close(&self, lost: Lost) {
        let mut state = self.lock();
        state.outgoing = None;
        for waiting in std::mem::take(&mut state.waiting) {
            let _ = waiting.answer.send(Err(lost.failure(waiting.name, &self.peer)));
        }
        state.closed.get_or_insert(lost);
    }

    /// Why it was closed, if it was.
    pub(super) fn lost(&self) -> Option<Lost> {
        self.lock().closed.clone()
    }

    /// Comes back with the reason to close once a request has waited for too long, or nothing was asked for `max_idle`.
    pub(super) async fn overdue(&self, max_idle: Duration) -> Lost {
        loop {
            let (due, reason) = self.next_deadline(max_idle);
            if due <= Instant::now() {
                return Lost::new(reason);
            }
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    fn next_deadline(&self, max_idle: Duration) -> (Instant, String) {
        let state = self.lock();
        match state.waiting.iter().min_by_key(|waiting| waiting.deadline) {
            Some(first) => (first.deadline, format!("{} was not answered within {:?}", first.name, first.limit)),
            None => (state.last_used + max_idle, "it was idle (`connections.max.idle.ms`)".into()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Cause;
    use kafka_protocol::messages::MetadataRequest;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    const LIMIT: Duration = Duration::from_secs(30);

    struct Bench {
        queue: Queue,
        places: Arc<Semaphore>,
        frames: mpsc::UnboundedReceiver<Vec<Bytes>>,
    }

    fn bench() -> Bench {
        let (outgoing, frames) = mpsc::unbounded_channel();
        Bench { queue: Queue::new("broker 1 (b:1)".into(), outgoing), places: Arc::new(Semaphore::new(9)), frames }
    }

    impl Bench {
        fn ask(&self, limit: Duration) -> Result<Pending, Failure> {
            let frame = Frame::of("me", 12, &MetadataRequest::default()).unwrap();
            let place = Some(Arc::clone(&self.places).try_acquire_owned().unwrap());
            self.queue.push(Request { name: "Metadata", frame, limit, place })
        }
    }

    fn answer(number: i32) -> Bytes {
        Bytes::from([number.to_be_bytes(), *b"data"].concat())
    }

    #[tokio::test(start_paused = true)]
    async fn answers_find_who_asked_and_give_places_back() {
        let mut bench = bench();
        let (first, second) = (bench.ask(LIMIT).unwrap(), bench.ask(LIMIT).unwrap());
        assert_eq!(bench.places.available_permits(), 7);
        assert_eq!(bench.frames.recv().await.unwrap().concat()[8..12], [0, 0, 0, 0]);
        assert_eq!(bench.frames.recv().await.unwrap().concat()[8..12], [0, 0, 0, 1]);
        bench.queue.answered(answer(0)).unwrap();
        bench.queue.answered(answer(1)).unwrap();
        assert_eq!(first.await.unwrap().unwrap(), answer(0));
        assert_eq!(second.await.unwrap().unwrap(), answer(1));
        assert_eq!(bench.places.available_permits(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_out_of_order_is_none() {
        let bench = bench();
        let _pending = (bench.ask(LIMIT), bench.ask(LIMIT));
        assert!(bench.queue.answered(answer(1)).unwrap_err().reason.contains("where 0 was due"));
        assert!(bench.queue.answered(Bytes::from_static(&[0])).unwrap_err().reason.contains("where 0 was due"));
        bench.queue.answered(answer(0)).unwrap();
        bench.queue.answered(answer(1)).unwrap();
        assert!(bench.queue.answered(answer(2)).unwrap_err().reason.contains("nobody had asked"));
    }

    #[tokio::test(start_paused = true)]
    async fn closing_fails_what_waits_and_what_comes_later() {
        let bench = bench();
        let pending = bench.ask(LIMIT).unwrap();
        assert!(bench.queue.is_open());
        bench.queue.close(Lost::new("it broke"));
        let failure = pending.await.unwrap().unwrap_err();
        assert_eq!(
            (failure.cause, failure.message.as_str()),
            (Cause::Retriable, "Metadata to broker 1 (b:1): it broke")
        );
        bench.queue.close(Lost::new("a second reason"));
        assert!(bench.ask(LIMIT).unwrap_err().message.contains("it broke"));
        assert_eq!(bench.places.available_permits(), 9);
        assert!(!bench.queue.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn time_runs_out_for_the_first_deadline() {
        let bench = bench();
        let started = Instant::now();
        let _pending = (bench.ask(LIMIT).unwrap(), bench.ask(LIMIT / 3).unwrap());
        let lost = bench.queue.overdue(LIMIT * 9).await;
        assert_eq!(started.elapsed().as_secs(), 10);
        assert!(lost.reason.contains("Metadata was not answered within 10s"), "{}", lost.reason);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_ends_and_a_used_one_does_not() {
        let bench = bench();
        let started = Instant::now();
        let use_it = async {
            for number in 0..5 {
                tokio::time::sleep(LIMIT / 2).await;
                let _pending = bench.ask(LIMIT).unwrap();
                bench.queue.answered(answer(number)).unwrap();
            }
        };
        let (lost, ()) = tokio::join!(bench.queue.overdue(LIMIT), use_it);
        assert!(lost.reason.contains("idle"), "{}", lost.reason);
        assert_eq!(started.elapsed().as_secs(), 5 * 15 + 30);
    }
}
