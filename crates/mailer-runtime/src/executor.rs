//! Acts for the coordinator: takes reports in, asks the state machine, and does what it says.
//!
//! Everything that waits is handed to [`crate::beside::Beside`]; what it reports comes back through the same channel. A
//! report that arrives after the run has ended reaches nobody: the channel belongs to one run of one owner.

mod completion;
mod manifests;

use manifests::Handed;
pub(crate) use manifests::Template;

use crate::bottleneck::Watch;
use crate::coordinator::{Action, Coordinator, Event, PartError, PublishFigures, Ticket};
use crate::job::control::JobControl;
use crate::job::event::JobEvent;
use crate::recovery::OpenTarget;
use crate::report::{PartDone, PartFailed, Reached, Report, SourcePositions};
use crate::shared::{JobShared, SourceCommand};
use mailer_checkpoint::CheckpointRoot;
use mailer_checkpoint::manifest::{Kind, Manifest};
use mailer_core::{Barrier, CheckpointId, Error, Result, Segment};
use mailer_state::{OpenBackend, SnapshotPart, StateSnapshot};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How a run ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Everything read, published and completed.
    Finished,
    /// Stopped at once, on request.
    Stopped,
    /// The seeded driver killed it.
    Crashed,
}

/// How often it is looked where the time goes.
const LOOK: Duration = Duration::from_secs(1);

/// Draws the nonces of checkpoints.
pub(crate) type Chance = Box<dyn FnMut() -> u64 + Send>;

pub(crate) struct Durable {
    pub(crate) root: Arc<dyn CheckpointRoot>,
    pub(crate) state: Arc<dyn OpenBackend>,
    pub(crate) targets: Vec<OpenTarget>,
    pub(crate) template: Template,
    pub(crate) keep_completed: usize,
    pub(crate) chance: Chance,
}

pub(crate) struct Executor {
    coordinator: Coordinator,
    reports: mpsc::Receiver<Report>,
    shared: Arc<JobShared>,
    control: Arc<JobControl>,
    durable: Option<Durable>,
    /// Snapshots of checkpoints not yet prepared.
    collected: BTreeMap<CheckpointId, Collected>,
    /// Sealed and in no prepared manifest yet; a failed checkpoint leaves its segments here for the next one.
    segments: Vec<Segment>,
    publishing: Option<Publishing>,
    tasks: usize,
    tasks_running: usize,
    last_is_completed: bool,
    ended: Option<Result<Ended>>,
    watch: Watch,
    next_look: Duration,
}

#[derive(Default)]
struct Collected {
    tasks: usize,
    handed: Handed,
    parts: Vec<SnapshotPart>,
    started: Duration,
}

struct Publishing {
    manifest: Manifest,
    /// Targets that have not answered yet.
    waiting: usize,
    figures: PublishFigures,
    started: Duration,
    /// The manifest has been handed to the disk.
    decided: bool,
}

impl Executor {
    pub(crate) fn new(
        coordinator: Coordinator,
        reports: mpsc::Receiver<Report>,
        shared: Arc<JobShared>,
        control: Arc<JobControl>,
        durable: Option<Durable>,
        tasks: usize,
    ) -> Self {
        Self {
            coordinator,
            reports,
            shared,
            control,
            durable,
            collected: BTreeMap::new(),
            segments: Vec::new(),
            publishing: None,
            tasks,
            tasks_running: tasks,
            last_is_completed: false,
            ended: None,
            watch: Watch::default(),
            next_look: Duration::ZERO,
        }
    }

    /// Lets the sources go, or takes the first checkpoint.
    pub(crate) fn start(&mut self, fresh: bool) {
        self.feed(Event::Start { fresh });
    }

    /// Handles what has been reported, waiting for a first report at most `wait`. `Some` when the run is over.
    pub(crate) fn step(&mut self, wait: Duration) -> Option<Result<Ended>> {
        let first = if wait.is_zero() { self.reports.try_recv().ok() } else { self.reports.recv_timeout(wait).ok() };
        let mut next = first;
        while let Some(report) = next {
            self.absorb(report);
            next = self.reports.try_recv().ok();
        }
        self.feed(Event::Tick { staged: self.shared.staged.bytes() });
        self.control.status.note_phase(self.coordinator.phase(), self.coordinator.publishing());
        self.look_for_bottleneck();
        if self.last_is_completed && self.tasks_running == 0 && self.ended.is_none() {
            self.ended = Some(Ok(Ended::Finished));
        }
        self.ended.take()
    }

    fn look_for_bottleneck(&mut self) {
        let now = self.shared.clock.monotonic();
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        let bottleneck = self.watch.look(now, &self.control.status.snapshot());
        self.control.status.note_bottleneck(bottleneck);
    }

    fn feed(&mut self, event: Event) {
        let now = self.shared.clock.monotonic();
        for action in self.coordinator.on(event, now) {
            self.act(action);
        }
    }

    fn absorb(&mut self, report: Report) {
        match report {
            Report::Snapshot { id, positions, reached, parts } => self.on_snapshot(id, positions, reached, parts),
            Report::Part { id, result } => self.on_part(id, result),
            Report::SourceEnded => self.feed(Event::SourceEnded),
            Report::TaskFinished => self.tasks_running -= 1,
            Report::Linked { id, result } => self.on_linked(id, result),
            Report::Prepared { id, result } => self.feed(Event::Prepared { id, result }),
            Report::Published { id, target, result } => self.on_published(id, target, result),
            Report::Completed { id, result } => self.on_completed(id, result),
            Report::Trigger { kind, ticket } => self.feed(Event::Trigger { kind, ticket }),
            Report::Stop { kind } => self.feed(Event::Stop { kind }),
            Report::StopNow => self.end(Ok(Ended::Stopped)),
            Report::Failed(error) => self.end(Err(error)),
        }
    }

    /// The first reason counts: what follows a failure is its consequence.
    fn end(&mut self, outcome: Result<Ended>) {
        self.ended.get_or_insert(outcome);
    }

    fn on_snapshot(&mut self, id: CheckpointId, positions: Option<SourcePositions>, reached: Reached, parts: usize) {
        let now = self.shared.clock.monotonic();
        let collected = self.collected.entry(id).or_insert_with(|| Collected { started: now, ..Collected::default() });
        collected.tasks += 1;
        collected.handed.positions.extend(positions);
        collected.handed.reached.insert(reached.place, reached.watermark);
        if collected.tasks == 1 {
            fail::fail_point!("snapshot-first");
        }
        if collected.tasks == self.tasks {
            fail::fail_point!("snapshot-last");
        }
        self.feed(Event::Snapshot { id, parts });
    }

    fn on_part(&mut self, id: CheckpointId, result: Result<PartDone, PartFailed>) {
        let result = match result {
            Ok(done) => {
                self.keep_part(id, done);
                Ok(())
            }
            Err(PartFailed { error, lost }) => Err(PartError { error, lost }),
        };
        self.feed(Event::Part { id, result });
    }

    fn keep_part(&mut self, id: CheckpointId, done: PartDone) {
        match done {
            PartDone::Flushed => {}
            PartDone::Sealed(segments) => self.segments.extend(segments),
            // The part of a cancelled checkpoint is dropped: its changes are in the next part of the same store.
            PartDone::State(part) => {
                if let Some(collected) = self.collected.get_mut(&id) {
                    collected.parts.push(part);
                }
            }
        }
    }

    fn on_linked(&mut self, id: CheckpointId, result: Result<StateSnapshot>) {
        let result = result.map(|state| {
            if let Some(collected) = self.collected.get_mut(&id) {
                collected.handed.state = state;
            }
        });
        self.feed(Event::Linked { id, result });
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Inject(barrier) => self.inject(barrier),
            Action::Cancel(id) => self.cancel(id),
            Action::Link(id) => self.link(id),
            Action::Prepare { id, kind } => self.prepare(id, kind),
            Action::Publish(id) => self.publish(id),
            Action::Complete(id) => self.complete(id),
            Action::Announce { id, tickets } => self.announce(id, &tickets),
            Action::Refuse { tickets, reason } => self.refuse(&tickets, &reason),
            Action::Release => self.release(),
            Action::StopReading => self.shared.drain(),
            Action::Skipped => self.control.status.count_skipped(),
            Action::Fail(error) => self.end(Err(error)),
            Action::Finish => self.last_is_completed = true,
        }
    }

    fn release(&mut self) {
        self.shared.release_sources();
        self.control.emit(JobEvent::Running);
    }

    fn inject(&mut self, barrier: Barrier) {
        fail::fail_point!("barrier-inject-before");
        self.shared.command_sources(SourceCommand::Barrier(barrier));
        fail::fail_point!("barrier-inject-after");
    }

    fn cancel(&mut self, id: CheckpointId) {
        self.shared.cancel(id);
        self.collected.retain(|collected, _| *collected > id);
        if self.shared.mutations.forget_segments {
            self.segments.clear();
        }
        self.control.status.count_failed();
    }

    fn link(&mut self, id: CheckpointId) {
        let Some(durable) = &self.durable else { return };
        let parts = self.collected.get_mut(&id).map(|c| std::mem::take(&mut c.parts)).unwrap_or_default();
        let (state, shared) = (durable.state.clone(), self.shared.clone());
        self.shared.spawn_beside(Box::new(move || {
            let result = state.link(id, parts);
            shared.report(Report::Linked { id, result });
        }));
    }

    fn prepare(&mut self, id: CheckpointId, kind: Kind) {
        let Some(collected) = self.collected.remove(&id) else {
            return self.end(Err(Error::internal(format!("checkpoint {id} is prepared without its snapshots"))));
        };
        // Tasks may have reported an earlier one after it was given up.
        self.collected.retain(|other, _| *other > id);
        let Some(durable) = &mut self.durable else { return };
        let segments = std::mem::take(&mut self.segments);
        let nonce = (durable.chance)();
        let created = self.shared.clock.wall();
        let manifest = durable.template.manifest(
            (id, kind, nonce, created),
            durable.root.epoch(),
            collected.handed,
            &durable.targets,
            segments,
        );
        let publishing = Publishing {
            manifest,
            waiting: 0,
            figures: PublishFigures::default(),
            started: collected.started,
            decided: false,
        };
        self.publishing = Some(publishing);
        if self.shared.mutations.publish_early { self.start_publish(id) } else { self.decide(id) }
    }

    /// Makes the manifest durable.
    fn decide(&mut self, id: CheckpointId) {
        let (Some(durable), Some(publishing)) = (&self.durable, &mut self.publishing) else { return };
        publishing.decided = true;
        let (manifest, root, shared) = (publishing.manifest.clone(), durable.root.clone(), self.shared.clone());
        self.shared.spawn_beside(Box::new(move || {
            let result = root.prepare(&manifest);
            shared.report(Report::Prepared { id, result });
        }));
    }

    fn announce(&mut self, id: CheckpointId, tickets: &[Ticket]) {
        for ticket in tickets {
            self.control.answer(*ticket, Ok(id));
        }
        self.shared.command_sources(SourceCommand::Completed(id));
    }

    fn refuse(&self, tickets: &[Ticket], reason: &str) {
        for ticket in tickets {
            self.control.answer(*ticket, Err(Error::unavailable(reason.to_owned())));
        }
    }
}
