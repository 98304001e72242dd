//! Carries out what the scheduler decides: the one owner task of a consumer, and the executors that run its handlers.

mod attempt;
mod executor;
mod pace;

use crate::builder::Parts;
use crate::cancel::Cancel;
use crate::clock::{Clock, Nanos};
use crate::control::Command;
use crate::handler::Work;
use crate::scheduler::{Action, End, Job, Scheduler};
use crate::source::Event;
use crate::{Control, Error, Options, Phase, Source, Stopped};
use executor::{Answer, Executors, Order, Shared};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, watch};
use tokio::time::Sleep;

/// Events, results and commands that one turn takes of each kind, so that none keeps the others waiting.
const PER_TURN: usize = 64;

/// Where a consumer's owner task and the rest of the world meet.
pub(crate) struct Wires {
    pub(crate) control: Control,
    pub(crate) inbox: mpsc::UnboundedReceiver<Command>,
    pub(crate) phase: watch::Sender<Phase>,
}

struct Driver<S> {
    scheduler: Scheduler,
    source: S,
    wires: Wires,
    results: mpsc::UnboundedReceiver<Answer>,
    executors: Executors,
    /// By partition number: raised when its handlers' results are no longer wanted, and then replaced.
    cancels: Vec<Arc<Cancel>>,
    clock: Clock,
    timer: Pin<Box<Sleep>>,
    /// When the timer is set to fire.
    armed: Nanos,
    jobs: Vec<Job>,
    turn: Turn,
}

/// What one turn has brought.
#[derive(Default)]
struct Turn {
    commands: Vec<Command>,
    results: Vec<Answer>,
    events: Vec<Event>,
}

pub(crate) async fn run<S: Source, W: Work>(
    source: S,
    options: Options,
    parts: Parts<W>,
    wires: Wires,
) -> Result<Stopped, Error> {
    let Parts { work, dead_letter, trait_names, mut notice } = parts;
    let clock = wires.control.clock;
    let timeout = options.handler_timeout;
    let scheduler = Scheduler::new(options, work.most(), trait_names, clock.now());
    let (answers, results) = mpsc::unbounded_channel();
    let shared = Shared::new(work, dead_letter, timeout, wires.control.clone(), answers);
    let driver = Driver {
        scheduler,
        source,
        wires,
        results,
        executors: Executors::start(Arc::new(shared)),
        cancels: Vec::new(),
        clock,
        timer: Box::pin(tokio::time::sleep_until(clock.instant(0))),
        armed: 0,
        jobs: Vec::new(),
        turn: Turn::default(),
    };
    let End { stopped, error } = driver.drive().await;
    notice.tell(&stopped);
    tracing::info!(%stopped, "the consumer has ended");
    error.map_or(Ok(stopped), Err)
}

impl<S: Source> Driver<S> {
    async fn drive(mut self) -> End {
        loop {
            poll_fn(|cx| self.wait(cx)).await;
            let now = self.clock.now();
            self.take_turn(now);
            self.wires.control.beat.turn.store(now, Ordering::Relaxed);
            if let Some(end) = self.scheduler.end() {
                self.tell_phase();
                return end;
            }
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Ready when anything has come. Every kind is looked at each time.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { turn, wires, results, source, timer, .. } = self;
        let commands = wires.inbox.poll_recv_many(cx, &mut turn.commands, PER_TURN).is_ready();
        let results = results.poll_recv_many(cx, &mut turn.results, PER_TURN).is_ready();
        // Records are taken once a turn: they may fill a buffer, and then their partition is paused before the next.
        while turn.events.len() < PER_TURN && !matches!(turn.events.last(), Some(Event::Records(_) | Event::Closed)) {
            let Poll::Ready(event) = source.poll_next(cx) else { break };
            turn.events.push(event);
        }
        let events = !turn.events.is_empty();
        let time = timer.as_mut().poll(cx).is_ready();
        if commands || results || events || time { Poll::Ready(()) } else { Poll::Pending }
    }

    fn take_turn(&mut self, now: Nanos) {
        self.turn.results.drain(..).for_each(|answer| match answer {
            Answer::One(done) => self.scheduler.done(now, done),
            Answer::Chunk { executor, done } => {
                self.executors.is_through(executor);
                done.into_iter().for_each(|done| self.scheduler.done(now, done));
            }
        });
        self.turn.events.drain(..).for_each(|event| self.scheduler.event(now, event));
        self.turn.commands.drain(..).for_each(|command| self.scheduler.command(now, command));
        if self.scheduler.is_due(now) {
            self.scheduler.tick(now);
            self.wires.control.beat.stalled.store(self.scheduler.stalled() as u64, Ordering::Relaxed);
        }
        self.act();
        self.start(now);
        self.tell_phase();
        self.arm();
    }

    fn act(&mut self) {
        for action in self.scheduler.actions() {
            match action {
                Action::Pause(partition) => self.source.pause(&partition),
                Action::Resume(partition) => self.source.resume(&partition),
                Action::Commit(commit) => self.source.commit(commit),
                Action::Release(partition) => self.source.release(&[partition]),
                Action::Close => self.source.close(),
                Action::Cancel(number) => {
                    if let Some(cancel) = self.cancels.get_mut(number as usize) {
                        std::mem::take(cancel).raise();
                    }
                }
            }
        }
    }

    fn start(&mut self, now: Nanos) {
        self.scheduler.start(now, &mut self.jobs, self.executors.room());
        let orders = self.jobs.drain(..).map(|job| {
            let number = job.refs.as_slice()[0].lane as usize;
            if self.cancels.len() <= number {
                self.cancels.resize_with(number + 1, Arc::default);
            }
            Order { cancel: Arc::clone(&self.cancels[number]), job }
        });
        self.executors.give(orders);
    }

    fn tell_phase(&self) {
        let phase = self.scheduler.phase();
        self.wires.phase.send_if_modified(|told| std::mem::replace(told, phase) != phase);
    }

    /// Sets the timer, unless it fires early enough anyway.
    fn arm(&mut self) {
        let deadline = self.scheduler.deadline();
        if deadline < self.armed || self.timer.is_elapsed() {
            self.armed = deadline;
            self.timer.as_mut().reset(self.clock.instant(deadline));
        }
    }
}
