//! Acts for the coordinator: takes reports in, asks the state machine, and does what it says.
//!
//! Everything that waits is handed to [`crate::beside::Beside`]; what it reports comes back through the same channel. A
//! report that arrives after the run has ended reaches nobody: the channel belongs to one run of one owner.

mod completion;
mod crew;
mod manifests;
mod progress;

pub(crate) use crew::{AssignedSplit, Crew};
use manifests::Handed;
pub(crate) use manifests::Template;
use progress::Patience;

use crate::bottleneck::Watch;
use crate::coordinator::{Action, Coordinator, Event, PartError, PublishFigures, Ticket};
use crate::job::control::JobControl;
use crate::job::event::JobEvent;
use crate::job::timeline::CheckpointPhase;
use crate::recovery::OpenTarget;
use crate::report::{PartDone, PartFailed, PartKind, Reached, Report, SourcePositions};
use crate::shared::{JobShared, SourceCommand};
use crate::standing::Standstill;
use crate::task::Place;
use mailer_checkpoint::CheckpointRoot;
use mailer_checkpoint::manifest::{Kind, Manifest};
use mailer_core::{Barrier, CheckpointId, Error, Result, Segment};
use mailer_state::{OpenBackend, SnapshotPart, StateSnapshot};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tracing::Span;

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

/// How often it is looked where the time goes, and metrics are brought up to date.
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
    crew: Crew,
    tasks_running: usize,
    last_is_completed: bool,
    ended: Option<Result<Ended>>,
    watch: Watch,
    standstill: Standstill,
    next_look: Duration,
    patience: Patience,
    /// One for each checkpoint under way; the work of its phases is done in it.
    spans: BTreeMap<CheckpointId, Span>,
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
    /// Targets that have not answered yet, by place and name.
    waiting: BTreeMap<usize, String>,
    figures: PublishFigures,
    started: Duration,
    /// The manifest has been handed to the disk.
    decided: bool,
}

impl Publishing {
    fn open_targets(&self) -> Vec<String> {
        self.waiting.values().cloned().collect()
    }
}

impl Executor {
    pub(crate) fn new(
        coordinator: Coordinator,
        reports: mpsc::Receiver<Report>,
        shared: Arc<JobShared>,
        control: Arc<JobControl>,
        durable: Option<Durable>,
        crew: Crew,
    ) -> Self {
        let tasks_running = crew.len();
        Self {
            coordinator,
            reports,
            shared,
            control,
            durable,
            collected: BTreeMap::new(),
            segments: Vec::new(),
            publishing: None,
            crew,
            tasks_running,
            last_is_completed: false,
            ended: None,
            watch: Watch::default(),
            standstill: Standstill::default(),
            next_look: Duration::ZERO,
            patience: Patience::default(),
            spans: BTreeMap::new(),
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
        self.watch_checkpoints();
        self.look();
        if self.last_is_completed && self.tasks_running == 0 && self.ended.is_none() {
            self.ended = Some(Ok(Ended::Finished));
        }
        self.ended.take()
    }

    /// Once a second: what is slow, what stands still, and the metrics.
    fn look(&mut self) {
        let now = self.shared.clock.monotonic();
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        let mut status = self.control.status.snapshot();
        status.bottleneck = self.watch.look(now, &status);
        status.standing = self.standstill.look(now, &status);
        self.control.status.note_look(status.bottleneck.clone(), status.standing.clone());
        self.control.export(&status);
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
            Report::Part { id, place, kind, result } => self.on_part(id, place, kind, result),
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

    fn on_snapshot(
        &mut self,
        id: CheckpointId,
        positions: Option<SourcePositions>,
        reached: Reached,
        parts: Vec<PartKind>,
    ) {
        let now = self.shared.clock.monotonic();
        let collected = self.collected.entry(id).or_insert_with(|| Collected { started: now, ..Collected::default() });
        collected.tasks += 1;
        collected.handed.positions.extend(positions);
        collected.handed.reached.insert(reached.place, reached.watermark);
        if collected.tasks == 1 {
            fail::fail_point!("snapshot-first");
        }
        let is_last = collected.tasks == self.crew.len();
        if is_last {
            fail::fail_point!("snapshot-last");
        }
        self.crew.on_snapshot(id, reached.place, &parts);
        if is_last {
            self.enter_phase(id, CheckpointPhase::Snapshot);
        }
        self.feed(Event::Snapshot { id, parts: parts.len() });
    }

    fn on_part(&mut self, id: CheckpointId, place: Place, kind: PartKind, result: Result<PartDone, PartFailed>) {
        self.crew.on_part(id, place, kind);
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
        if result.is_ok() {
            self.enter_phase(id, CheckpointPhase::Linked);
        }
        self.feed(Event::Linked { id, result });
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Inject(barrier) => self.inject(barrier),
            Action::Cancel(id, error) => self.cancel(id, &error),
            Action::Link(id) => {
                self.enter_phase(id, CheckpointPhase::Linking);
                self.link(id);
            }
            Action::Prepare { id, kind } => {
                self.enter_phase(id, CheckpointPhase::Preparing);
                self.prepare(id, kind);
            }
            Action::Publish(id) => {
                self.enter_phase(id, CheckpointPhase::Publishing);
                self.publish(id);
            }
            Action::Complete(id) => {
                self.enter_phase(id, CheckpointPhase::Completing);
                self.complete(id);
            }
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
        self.begin_checkpoint(barrier.checkpoint);
        self.shared.command_sources(SourceCommand::Barrier(barrier));
        fail::fail_point!("barrier-inject-after");
    }

    fn cancel(&mut self, id: CheckpointId, error: &Error) {
        self.shared.cancel(id);
        self.collected.retain(|collected, _| *collected > id);
        if self.shared.mutations.forget_segments {
            self.segments.clear();
        }
        self.crew.forget(id);
        self.end_checkpoint(id, Some(error));
    }

    fn link(&mut self, id: CheckpointId) {
        let Some(durable) = &self.durable else { return };
        let parts = self.collected.get_mut(&id).map(|c| std::mem::take(&mut c.parts)).unwrap_or_default();
        let (state, shared, span) = (durable.state.clone(), self.shared.clone(), self.span(id));
        self.shared.spawn_beside(Box::new(move || {
            let _span = span.entered();
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
        self.crew.forget(id);
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
            waiting: BTreeMap::new(),
            figures: PublishFigures::default(),
            started: collected.started,
            decided: false,
        };
        self.note_volume(id, &publishing.manifest);
        self.publishing = Some(publishing);
        if self.shared.mutations.publish_early { self.start_publish(id) } else { self.decide(id) }
    }

    /// Makes the manifest durable.
    fn decide(&mut self, id: CheckpointId) {
        let (Some(durable), Some(publishing)) = (&self.durable, &mut self.publishing) else { return };
        publishing.decided = true;
        let (manifest, root, shared) = (publishing.manifest.clone(), durable.root.clone(), self.shared.clone());
        let span = self.span(id);
        self.shared.spawn_beside(Box::new(move || {
            let _span = span.entered();
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
