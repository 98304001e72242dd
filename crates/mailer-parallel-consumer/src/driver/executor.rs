//! Tasks that start handlers, so that the owner task never runs user code.

use super::attempt::attempt;
use super::pace::Pace;
use crate::Control;
use crate::cancel::Cancel;
use crate::dead_letter::DynDeadLetter;
use crate::handler::Work;
use crate::scheduler::{Done, Job, Several};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Jobs that are handed over together.
const CHUNK: usize = 256;
/// More executors than this do not start handlers any faster: one owner task feeds them.
const MOST_EXECUTORS: usize = 4;

/// A job, and the flag that is raised when its result is no longer wanted.
pub(super) struct Order {
    pub(super) job: Job,
    pub(super) cancel: Arc<Cancel>,
}

/// What every attempt needs.
pub(super) struct Shared<W> {
    pub(super) work: W,
    pub(super) dead_letter: Box<dyn DynDeadLetter>,
    pub(super) timeout: Option<Duration>,
    pub(super) control: Control,
    answers: mpsc::UnboundedSender<Several<Done>>,
    pace: Pace,
}

impl<W> Shared<W> {
    pub(super) fn new(
        work: W,
        dead_letter: Box<dyn DynDeadLetter>,
        timeout: Option<Duration>,
        control: Control,
        answers: mpsc::UnboundedSender<Several<Done>>,
    ) -> Self {
        Self { work, dead_letter, timeout, control, answers, pace: Pace::default() }
    }

    /// The owner task may have ended; then nobody wants the answer.
    fn answer(&self, done: Several<Done>) {
        drop(self.answers.send(done));
    }
}

/// All executors of a consumer. Dropped, they end, and so do the handlers that still run.
pub(super) struct Executors {
    inboxes: Vec<mpsc::UnboundedSender<Vec<Order>>>,
    next: usize,
    _tasks: JoinSet<()>,
}

impl Executors {
    pub(super) fn start<W: Work>(shared: Arc<Shared<W>>) -> Self {
        let mut tasks = JoinSet::new();
        let mut inboxes = Vec::new();
        for _ in 0..Handle::current().metrics().num_workers().clamp(1, MOST_EXECUTORS) {
            let (sender, inbox) = mpsc::unbounded_channel();
            inboxes.push(sender);
            tasks.spawn(execute(Arc::clone(&shared), inbox));
        }
        Self { inboxes, next: 0, _tasks: tasks }
    }

    /// Hands jobs over, in chunks, to one executor after the other.
    pub(super) fn give(&mut self, orders: impl ExactSizeIterator<Item = Order>) {
        let size = orders.len().div_ceil(self.inboxes.len()).clamp(1, CHUNK);
        let mut orders = orders.peekable();
        while orders.peek().is_some() {
            let chunk: Vec<Order> = orders.by_ref().take(size).collect();
            self.next = (self.next + 1) % self.inboxes.len();
            // An executor ends only with this value.
            drop(self.inboxes[self.next].send(chunk));
        }
    }
}

async fn execute<W: Work>(shared: Arc<Shared<W>>, mut inbox: mpsc::UnboundedReceiver<Vec<Order>>) {
    let mut tasks = JoinSet::new();
    let mut spare = None;
    while let Some(chunk) = inbox.recv().await {
        while tasks.try_join_next().is_some() {} // their answers have been sent
        let answers = start(&shared, chunk, &mut tasks, &mut spare, |order| attempt(Arc::clone(&shared), order));
        if !answers.is_empty() {
            shared.answer(Several::Many(answers));
        }
        tokio::task::yield_now().await; // whoever waits for an answer may run here
    }
}

/// Starts jobs; returns the answers of those that did not have to wait. `spare` is a box that is used again.
fn start<W: Work, F: Future<Output = Done> + Send + 'static>(
    shared: &Arc<Shared<W>>,
    orders: Vec<Order>,
    tasks: &mut JoinSet<()>,
    spare: &mut Option<Pin<Box<F>>>,
    attempt: impl Fn(Order) -> F,
) -> Vec<Done> {
    let mut answers = Vec::new();
    let mut is_trusted = shared.pace.is_trusted();
    for order in orders {
        let mut future = match spare.take() {
            None => Box::pin(attempt(order)),
            Some(mut used) => {
                used.set(attempt(order));
                used
            }
        };
        let was_polled = is_trusted;
        if was_polled {
            let begin = Instant::now();
            if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                is_trusted = shared.pace.polled(Duration::from_nanos(done.took));
                answers.push(done);
                *spare = Some(future);
                continue;
            }
            is_trusted = shared.pace.polled(begin.elapsed());
        }
        // A future that was polled already is polled again at once, and then knows whom to wake.
        tasks.spawn(finish(Arc::clone(shared), future, was_polled));
    }
    answers
}

async fn finish<W: Work, F: Future<Output = Done>>(shared: Arc<Shared<W>>, mut future: Pin<Box<F>>, was_polled: bool) {
    let mut is_first = !was_polled;
    let done = poll_fn(|cx| {
        let begin = std::mem::take(&mut is_first).then(Instant::now);
        let poll = future.as_mut().poll(cx);
        if let Some(begin) = begin {
            shared.pace.polled(begin.elapsed());
        }
        poll
    });
    let done = done.await;
    shared.answer(Several::One(done));
}
