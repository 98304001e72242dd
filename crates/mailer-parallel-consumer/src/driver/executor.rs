//! Tasks that start handlers, so that the owner task never runs user code.

use super::attempt::attempt;
use super::pace::Pace;
use crate::Control;
use crate::cancel::Cancel;
use crate::dead_letter::DynDeadLetter;
use crate::handler::Work;
use crate::scheduler::{Done, Job};
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
const CHUNK: usize = 512;
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
    answers: mpsc::UnboundedSender<Answer>,
    pace: Pace,
}

impl<W> Shared<W> {
    pub(super) fn new(
        work: W,
        dead_letter: Box<dyn DynDeadLetter>,
        timeout: Option<Duration>,
        control: Control,
        answers: mpsc::UnboundedSender<Answer>,
    ) -> Self {
        Self { work, dead_letter, timeout, control, answers, pace: Pace::default() }
    }

    /// The owner task may have ended; then nobody wants the answer.
    fn answer(&self, answer: Answer) {
        drop(self.answers.send(answer));
    }
}

/// What executors tell the owner task.
pub(super) enum Answer {
    /// A handler that had to wait has ended.
    One(Done),
    /// An executor is through with its chunk: these handlers did not have to wait, the others are tasks now.
    Chunk { executor: usize, done: Vec<Done> },
}

/// All executors of a consumer. Dropped, they end, and so do the handlers that still run.
///
/// Each has one chunk at a time. What becomes ready meanwhile makes the next chunk larger, so that handing over costs
/// little when there is much to do, and nothing waits when there is little. Nor does a job wait behind a handler that
/// blocks its thread, unless it is in the same chunk.
pub(super) struct Executors {
    inboxes: Vec<mpsc::UnboundedSender<Vec<Order>>>,
    idle: Vec<usize>,
    _tasks: JoinSet<()>,
}

impl Executors {
    pub(super) fn start<W: Work>(shared: Arc<Shared<W>>) -> Self {
        let mut tasks = JoinSet::new();
        let mut inboxes = Vec::new();
        for executor in 0..Handle::current().metrics().num_workers().clamp(1, MOST_EXECUTORS) {
            let (sender, inbox) = mpsc::unbounded_channel();
            inboxes.push(sender);
            tasks.spawn(execute(executor, Arc::clone(&shared), inbox));
        }
        Self { idle: (0..inboxes.len()).collect(), inboxes, _tasks: tasks }
    }

    /// Jobs that can be given now.
    pub(super) fn room(&self) -> usize {
        self.idle.len() * CHUNK
    }

    /// An executor is through with its chunk.
    pub(super) fn is_through(&mut self, executor: usize) {
        self.idle.push(executor);
    }

    /// Hands over jobs, as many as there is room for, in equal parts.
    pub(super) fn give(&mut self, orders: impl ExactSizeIterator<Item = Order>) {
        let size = orders.len().div_ceil(self.idle.len().max(1)).max(1);
        let mut orders = orders.peekable();
        while orders.peek().is_some() {
            let Some(executor) = self.idle.pop() else { unreachable!("no more was started than there is room for") };
            // An executor ends only with this value.
            drop(self.inboxes[executor].send(orders.by_ref().take(size).collect()));
        }
    }
}

async fn execute<W: Work>(executor: usize, shared: Arc<Shared<W>>, mut inbox: mpsc::UnboundedReceiver<Vec<Order>>) {
    let mut tasks = JoinSet::new();
    let mut spare = None;
    while let Some(chunk) = inbox.recv().await {
        while tasks.try_join_next().is_some() {} // their answers have been sent
        let run = |order, begin| attempt(Arc::clone(&shared), order, begin);
        let done = start(&shared, chunk, &mut tasks, &mut spare, run);
        shared.answer(Answer::Chunk { executor, done });
    }
}

/// Starts jobs; returns the answers of those that did not have to wait. `spare` is a box that is used again. An attempt
/// that is polled here begins when the one before it ended: asking for the time costs as much as a quick handler.
fn start<W: Work, F: Future<Output = Done> + Send + 'static>(
    shared: &Arc<Shared<W>>,
    orders: Vec<Order>,
    tasks: &mut JoinSet<()>,
    spare: &mut Option<Pin<Box<F>>>,
    attempt: impl Fn(Order, Option<Instant>) -> F,
) -> Vec<Done> {
    let mut answers = Vec::new();
    let mut is_trusted = shared.pace.is_trusted();
    let mut begin = Instant::now();
    for order in orders {
        let was_polled = is_trusted;
        let started = was_polled.then_some(begin);
        let mut future = match spare.take() {
            None => Box::pin(attempt(order, started)),
            Some(mut used) => {
                used.set(attempt(order, started));
                used
            }
        };
        if was_polled {
            if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                let took = Duration::from_nanos(done.took);
                is_trusted = shared.pace.polled(took);
                begin += took;
                answers.push(done);
                *spare = Some(future);
                continue;
            }
            let now = Instant::now();
            is_trusted = shared.pace.polled(now - begin);
            begin = now;
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
    shared.answer(Answer::One(done));
}
