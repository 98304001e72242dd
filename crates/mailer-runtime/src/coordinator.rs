//! The checkpoint coordinator: a pure state machine. Events in, actions out; no I/O, no clock, no thread.
//!
//! The life of a checkpoint, in the words the log and the status use too:
//!
//! - **idle**: nothing is aligned. A trigger (interval, staging budget, request, end of input, drain) starts the next id.
//! - **aligning**: its barrier travels. Waits for the report of every task and for every part of every report.
//! - **linking**: the state backend makes one snapshot of all parts.
//! - **linked**: waits for the checkpoint before it to be completed: manifest N+1 follows COMPLETED(N).
//! - **preparing**: the manifest is being made durable. From here on only forward.
//! - **publishing**, beside the next one's alignment: targets make the output visible, then `completed` is written.

use mailer_checkpoint::manifest::Kind;
use mailer_core::{Barrier, BarrierKind, CheckpointId, Error, ErrorKind};
use std::time::Duration;

/// When checkpoints are taken and what happens when one fails.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `None`: by request and at the end only.
    pub(crate) interval: Option<Duration>,
    /// Least time between the completion of one and the trigger of the next.
    pub(crate) min_pause: Duration,
    /// Longest alignment and snapshot.
    pub(crate) timeout: Duration,
    /// Failed checkpoints in a row before the job fails.
    pub(crate) tolerable_failures: u32,
    /// Whether checkpoints are written at all; without it only the final barrier runs, to flush the sinks.
    pub(crate) durable: bool,
    /// Staged bytes that ask for a barrier before the interval is over.
    pub(crate) staging_trigger: usize,
    /// Longest a publish may take at a target, where there is one.
    pub(crate) publish_deadline: Option<Duration>,
}

/// What has happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// The tasks stand. `fresh`: a source starts that no checkpoint knows, so one comes before the first record.
    Start { fresh: bool },
    /// Time has passed; `staged` bytes wait for the next barrier.
    Tick { staged: usize },
    /// A person or the program asks for a checkpoint.
    Trigger { kind: Kind, ticket: Ticket },
    /// Stop reading and take the last checkpoint.
    Stop { kind: Kind },
    /// A source has truly ended.
    SourceEnded,
    /// A task has passed the barrier; `parts` jobs of it are still running.
    Snapshot { id: CheckpointId, parts: usize },
    /// One of them is done.
    Part { id: CheckpointId, result: Result<(), PartError> },
    /// The state backend has made its snapshot.
    Linked { id: CheckpointId, result: Result<(), Error> },
    /// The manifest is durable, or the outcome is unknown.
    Prepared { id: CheckpointId, result: Result<(), Error> },
    /// All targets show it: `bytes` in `took`.
    Published { id: CheckpointId, result: Result<PublishFigures, Error> },
    /// It is marked completed.
    Completed { id: CheckpointId, result: Result<(), Error> },
}

/// How much was published, and in what time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PublishFigures {
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
}

/// Why a part failed.
#[derive(Debug)]
pub(crate) struct PartError {
    pub(crate) error: Error,
    /// What the part held is gone (a seal that could not be written): no later checkpoint can make up for it.
    pub(crate) lost: bool,
}

/// Names the request a checkpoint answers.
pub(crate) type Ticket = u64;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Action {
    Inject(Barrier),
    /// The barriers of this id and of all before it are to be dropped at the gates: it was given up for this reason.
    Cancel(CheckpointId, Error),
    Link(CheckpointId),
    Prepare {
        id: CheckpointId,
        kind: Kind,
    },
    Publish(CheckpointId),
    Complete(CheckpointId),
    /// Completed: tell sources and whoever asked.
    Announce {
        id: CheckpointId,
        tickets: Vec<Ticket>,
    },
    /// A requested checkpoint will not come.
    Refuse {
        tickets: Vec<Ticket>,
        reason: String,
    },
    /// Sources may read.
    Release,
    /// Sources stop reading; barriers still pass.
    StopReading,
    /// An interval went by while a checkpoint was still under way.
    Skipped,
    Fail(Error),
    /// The last checkpoint is completed.
    Finish,
}

#[derive(Debug)]
struct Current {
    id: CheckpointId,
    kind: Kind,
    is_last: bool,
    since: Duration,
    tasks_missing: usize,
    tickets: Vec<Ticket>,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Aligning(Current),
    Linking(Current),
    Linked(Current),
    Preparing(Current),
    /// The last checkpoint is decided or the job has failed: nothing is triggered any more.
    Over,
}

#[derive(Debug)]
pub(crate) struct Coordinator {
    settings: Settings,
    tasks: usize,
    sources_reading: usize,
    phase: Phase,
    publishing: Option<Current>,
    next_id: CheckpointId,
    /// Parts handed over and not reported, of all ids: a cancelled checkpoint's segments belong to the next manifest.
    parts_open: usize,
    wanted: Option<(Kind, Vec<Ticket>)>,
    stop: Option<Kind>,
    failures: u32,
    last_trigger: Duration,
    last_completed: Duration,
    publish_rate: Option<f64>,
    failed: bool,
}

impl Coordinator {
    /// For `tasks` tasks, `sources` of them sources; the first checkpoint gets the id `next_id`.
    pub(crate) fn new(settings: Settings, tasks: usize, sources: usize, next_id: CheckpointId, now: Duration) -> Self {
        Self {
            settings,
            tasks,
            sources_reading: sources,
            phase: Phase::Idle,
            publishing: None,
            next_id,
            parts_open: 0,
            wanted: None,
            stop: None,
            failures: 0,
            last_trigger: now,
            last_completed: now,
            publish_rate: None,
            failed: false,
        }
    }

    /// The phase, for status and log.
    pub(crate) fn phase(&self) -> &'static str {
        match self.phase {
            Phase::Idle => "idle",
            Phase::Aligning(_) => "aligning",
            Phase::Linking(_) => "linking",
            Phase::Linked(_) => "linked",
            Phase::Preparing(_) => "preparing",
            Phase::Over => "over",
        }
    }

    /// Why the checkpoint whose barrier travels was taken.
    pub(crate) fn aligning_kind(&self) -> Option<Kind> {
        match &self.phase {
            Phase::Aligning(current) => Some(current.kind),
            _ => None,
        }
    }

    /// The checkpoint whose publish is under way.
    pub(crate) fn publishing(&self) -> Option<CheckpointId> {
        self.publishing.as_ref().map(|current| current.id)
    }

    /// The one transition function.
    pub(crate) fn on(&mut self, event: Event, now: Duration) -> Vec<Action> {
        if self.failed {
            return Vec::new();
        }
        let mut actions = Vec::new();
        match event {
            Event::Start { fresh } => self.start(fresh, now, &mut actions),
            Event::Tick { staged } => self.tick(staged, now, &mut actions),
            Event::Trigger { kind, ticket } => self.request(kind, ticket, &mut actions),
            Event::Stop { kind } => {
                self.stop = Some(kind);
                actions.push(Action::StopReading);
            }
            Event::SourceEnded => self.sources_reading = self.sources_reading.saturating_sub(1),
            Event::Snapshot { id, parts } => self.on_snapshot(id, parts),
            Event::Part { id, result } => self.on_part(id, result, &mut actions),
            Event::Linked { id, result } => self.on_linked(id, result, &mut actions),
            Event::Prepared { id, result } => self.on_prepared(id, result, &mut actions),
            Event::Published { id, result } => self.on_published(id, result, &mut actions),
            Event::Completed { id, result } => self.on_completed(id, result, now, &mut actions),
        }
        if !self.failed {
            self.advance(now, &mut actions);
        }
        actions
    }

    fn start(&mut self, fresh: bool, now: Duration, actions: &mut Vec<Action>) {
        if fresh && self.settings.durable {
            self.inject(Kind::Initial, false, Vec::new(), now, actions);
        } else {
            actions.push(Action::Release);
        }
    }

    fn tick(&mut self, staged: usize, now: Duration, actions: &mut Vec<Action>) {
        if self.timed_out(now) {
            let limit = self.settings.timeout;
            let error = Error::unavailable(format!("not finished within the checkpoint timeout of {limit:?}"));
            self.checkpoint_failed(error, actions);
        }
        if !self.settings.durable || self.failed {
            return;
        }
        let interval_over = self.settings.interval.is_some_and(|interval| now >= self.last_trigger + interval);
        let too_much_staged = staged >= self.settings.staging_trigger || self.publish_would_be_long(staged);
        if !interval_over && !too_much_staged {
            return;
        }
        if matches!(self.phase, Phase::Idle) {
            if now >= self.last_completed + self.settings.min_pause && self.publishing.is_none() || too_much_staged {
                self.want(Kind::Periodic, None);
            }
        } else if interval_over && !matches!(self.phase, Phase::Over) {
            self.last_trigger = now;
            actions.push(Action::Skipped);
        }
    }

    /// Half the time a target allows, at the rate measured so far.
    fn publish_would_be_long(&self, staged: usize) -> bool {
        match (self.publish_rate, self.settings.publish_deadline) {
            (Some(rate), Some(deadline)) => staged as f64 / rate > deadline.as_secs_f64() / 2.0,
            _ => false,
        }
    }

    fn timed_out(&self, now: Duration) -> bool {
        match &self.phase {
            // The last one has no second try, and waiting for a slow sink loses nothing.
            Phase::Aligning(current) => !current.is_last && now > current.since + self.settings.timeout,
            _ => false,
        }
    }

    fn request(&mut self, kind: Kind, ticket: Ticket, actions: &mut Vec<Action>) {
        let reason = match self.phase {
            _ if !self.settings.durable => "the job runs without checkpoints; add `.checkpointing(...)` to its Env",
            Phase::Over => "the job is finishing",
            _ => return self.want(kind, Some(ticket)),
        };
        actions.push(Action::Refuse { tickets: vec![ticket], reason: reason.into() });
    }

    fn want(&mut self, kind: Kind, ticket: Option<Ticket>) {
        let (wanted, tickets) = self.wanted.get_or_insert((kind, Vec::new()));
        if kind == Kind::Savepoint {
            *wanted = kind;
        }
        tickets.extend(ticket);
    }

    /// Starts what is due: the last checkpoint before any other.
    fn advance(&mut self, now: Duration, actions: &mut Vec<Action>) {
        self.advance_alignment(actions);
        if !matches!(self.phase, Phase::Idle) || self.failed {
            return;
        }
        if let Some(kind) = self.stop.or((self.sources_reading == 0).then_some(Kind::Final)) {
            // Who asked for a savepoint meanwhile gets one: the last checkpoint is kept.
            let (wanted, tickets) = self.wanted.take().unwrap_or((kind, Vec::new()));
            let kind = if wanted == Kind::Savepoint { wanted } else { kind };
            self.inject(kind, true, tickets, now, actions);
        } else if let Some((kind, tickets)) = self.wanted.take() {
            self.inject(kind, false, tickets, now, actions);
        }
        self.advance_alignment(actions);
    }

    fn inject(&mut self, kind: Kind, is_last: bool, tickets: Vec<Ticket>, now: Duration, actions: &mut Vec<Action>) {
        let id = self.next_id;
        self.next_id = id.next();
        self.last_trigger = now;
        let barrier_kind = if is_last { BarrierKind::Final } else { BarrierKind::Checkpoint };
        actions.push(Action::Inject(Barrier { checkpoint: id, kind: barrier_kind }));
        self.phase = Phase::Aligning(Current { id, kind, is_last, since: now, tasks_missing: self.tasks, tickets });
    }

    fn on_snapshot(&mut self, id: CheckpointId, parts: usize) {
        self.parts_open += parts;
        if let Phase::Aligning(current) = &mut self.phase
            && current.id == id
        {
            current.tasks_missing -= 1;
        }
    }

    fn on_part(&mut self, id: CheckpointId, result: Result<(), PartError>, actions: &mut Vec<Action>) {
        self.parts_open -= 1;
        match result {
            Ok(()) => {}
            Err(PartError { error, lost: true }) => self.fail(error, actions),
            Err(PartError { error, lost: false }) => {
                if matches!(&self.phase, Phase::Aligning(current) if current.id == id) {
                    self.checkpoint_failed(error, actions);
                }
            }
        }
    }

    fn advance_alignment(&mut self, actions: &mut Vec<Action>) {
        let ready = matches!(&self.phase, Phase::Aligning(c) if c.tasks_missing == 0) && self.parts_open == 0;
        if !ready {
            return;
        }
        let Phase::Aligning(current) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        if self.settings.durable {
            actions.push(Action::Link(current.id));
            self.phase = Phase::Linking(current);
        } else if current.is_last {
            self.phase = Phase::Over;
            actions.push(Action::Finish);
        }
    }

    fn on_linked(&mut self, id: CheckpointId, result: Result<(), Error>, actions: &mut Vec<Action>) {
        let Phase::Linking(current) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        debug_assert_eq!(current.id, id, "one checkpoint is linked at a time");
        if let Err(error) = result {
            self.phase = Phase::Linking(current);
            return self.checkpoint_failed(error, actions);
        }
        if self.publishing.is_some() {
            self.phase = Phase::Linked(current);
        } else {
            self.prepare(current, actions);
        }
    }

    fn prepare(&mut self, current: Current, actions: &mut Vec<Action>) {
        actions.push(Action::Prepare { id: current.id, kind: current.kind });
        self.phase = Phase::Preparing(current);
    }

    fn on_prepared(&mut self, id: CheckpointId, result: Result<(), Error>, actions: &mut Vec<Action>) {
        let Phase::Preparing(current) = std::mem::replace(&mut self.phase, Phase::Idle) else { return };
        if let Err(error) = result {
            // The rename may have happened: only recovery can tell.
            return self.fail(error.context(format_args!("manifest of checkpoint {id}, outcome unknown")), actions);
        }
        if current.is_last {
            self.phase = Phase::Over;
        }
        self.publishing = Some(current);
        actions.push(Action::Publish(id));
    }

    fn on_published(&mut self, id: CheckpointId, result: Result<PublishFigures, Error>, actions: &mut Vec<Action>) {
        match result {
            Ok(figures) => {
                self.learn_rate(figures);
                actions.push(Action::Complete(id));
            }
            Err(error) => self.fail(error.context(format_args!("publish of checkpoint {id}")), actions),
        }
    }

    fn learn_rate(&mut self, PublishFigures { bytes, took }: PublishFigures) {
        // Small publishes measure the round trip, not the rate.
        if bytes >= 1 << 20 && !took.is_zero() {
            self.publish_rate = Some(bytes as f64 / took.as_secs_f64());
        }
    }

    fn on_completed(&mut self, id: CheckpointId, result: Result<(), Error>, now: Duration, actions: &mut Vec<Action>) {
        if let Err(error) = result {
            return self.fail(error.context(format_args!("completion of checkpoint {id}")), actions);
        }
        let Some(current) = self.publishing.take() else { return };
        self.failures = 0;
        self.last_completed = now;
        actions.push(Action::Announce { id, tickets: current.tickets });
        if current.kind == Kind::Initial {
            actions.push(Action::Release);
        }
        if current.is_last {
            actions.push(Action::Finish);
        }
        if matches!(self.phase, Phase::Linked(_))
            && let Phase::Linked(waiting) = std::mem::replace(&mut self.phase, Phase::Idle)
        {
            self.prepare(waiting, actions);
        }
    }

    /// The checkpoint under way is given up; what it held goes into the next one.
    fn checkpoint_failed(&mut self, error: Error, actions: &mut Vec<Action>) {
        let (Phase::Aligning(current) | Phase::Linking(current)) = std::mem::replace(&mut self.phase, Phase::Idle)
        else {
            return;
        };
        let Current { id, kind, is_last, tickets, .. } = current;
        self.failures += 1;
        actions.push(Action::Cancel(id, Error::new(error.kind(), error.to_string())));
        actions.push(Action::Refuse { tickets, reason: format!("checkpoint {id} failed: {error}") });
        let fatal = is_last || kind == Kind::Initial || error.kind() == ErrorKind::Fenced;
        if fatal || self.failures > self.settings.tolerable_failures {
            self.fail(error.context(format_args!("checkpoint {id}")), actions);
        }
    }

    fn fail(&mut self, error: Error, actions: &mut Vec<Action>) {
        self.failed = true;
        self.phase = Phase::Over;
        actions.push(Action::Fail(error));
    }
}

#[cfg(test)]
#[path = "coordinator_tests.rs"]
mod tests;
