//! A stage that begins with a source.

use super::event_time::{EventTime, Mark, Pause};
use super::{Progress, Task, TaskCore};
use crate::alignment::Member;
use crate::job::status::{SourceMeter, SplitStatus, StageMeter};
use crate::node::Node;
use crate::report::{Report, SourcePositions};
use crate::shared::SourceCommand;
use mailer_checkpoint::manifest;
use mailer_core::{
    Barrier, BarrierKind, Batch, CheckpointId, Error, Polled, Result, Source, SplitId, SplitState, StartAt, Watermark,
    codec,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often a source is asked for splits that appeared since.
const DISCOVERY: Duration = Duration::from_secs(1);
/// How often the status of the splits is renewed.
const STATUS: Duration = Duration::from_millis(200);

/// Positions of one source out of a manifest, by split name.
pub(crate) type Restored = FxHashMap<String, manifest::Split>;

/// Positions of every source out of a manifest. A source the manifest does not know starts as configured.
pub(crate) struct RestoredSources(FxHashMap<String, Restored>);

impl RestoredSources {
    pub(crate) fn of_manifest(manifest: &manifest::Manifest) -> Self {
        let by_name = |split: &manifest::Split| (split.name.clone(), split.clone());
        let positions = |source: &manifest::Source| source.splits.iter().map(by_name).collect();
        Self(manifest.sources.iter().map(|source| (source.name.clone(), positions(source))).collect())
    }

    pub(crate) fn of(&self, source: &str) -> Option<&Restored> {
        self.0.get(source)
    }
}

pub(crate) struct SourceTask<S: Source> {
    core: TaskCore,
    /// The author's name of the source.
    source_name: String,
    /// Which source task of the job this is.
    slot: usize,
    source: S,
    worker: u32,
    workers: u32,
    assigned: BTreeSet<SplitId>,
    batch: Batch<S::Item>,
    root: Box<dyn Node<S::Item>>,
    read: StageMeter,
    origin: Option<SplitId>,
    next_discovery: Duration,
    /// `None`: no watermarks but the one at the end.
    event_time: Option<EventTime<S::Item>>,
    aligned: Option<Member>,
    /// To be sent before anything else is read.
    mark: Option<Mark>,
    meter: Arc<SourceMeter>,
    next_status: Duration,
    ends_when_caught_up: bool,
    ended: bool,
    /// The last checkpoint, once its barrier has passed.
    last: Option<CheckpointId>,
    finished: bool,
}

/// Place of a source task among the workers and sources, and what watches it.
pub(crate) struct SourcePlace<T> {
    pub(crate) source_name: String,
    pub(crate) slot: usize,
    pub(crate) worker: u16,
    pub(crate) workers: u16,
    pub(crate) event_time: Option<EventTime<T>>,
    pub(crate) meter: Arc<SourceMeter>,
}

impl<S: Source> SourceTask<S> {
    /// Assigns this worker's splits: at their restored positions, or at the configured start.
    pub(crate) fn open(
        core: TaskCore,
        place: SourcePlace<S::Item>,
        source: S,
        restored: Option<&Restored>,
        root: Box<dyn Node<S::Item>>,
        read: StageMeter,
    ) -> Result<Self> {
        let SourcePlace { source_name, slot, worker, workers, event_time, meter } = place;
        let alignment = event_time.as_ref().and_then(|time| time.pacing().alignment.as_ref());
        let aligned = alignment.map(|alignment| core.shared.alignment.join(&alignment.group));
        let mut task = Self {
            core,
            source_name,
            slot,
            source,
            worker: worker.into(),
            workers: workers.into(),
            assigned: BTreeSet::new(),
            batch: Batch::new(),
            root,
            read,
            origin: None,
            next_discovery: Duration::ZERO,
            event_time,
            aligned,
            mark: None,
            meter,
            next_status: Duration::ZERO,
            ends_when_caught_up: false,
            ended: false,
            last: None,
            finished: false,
        };
        task.assign_first(restored).map_err(|e| task.in_source(e))?;
        task.mark = task.event_time.as_ref().and_then(EventTime::restored).map(Mark::Watermark);
        Ok(task)
    }

    fn in_source(&self, error: Error) -> Error {
        error.context(format_args!("source \"{}\"", self.source_name))
    }

    fn assign_first(&mut self, restored: Option<&Restored>) -> Result<()> {
        let known = self.source.splits()?;
        if let Some(restored) = restored {
            refuse_missing(&known, restored)?;
        }
        let (worker, workers) = (self.worker, self.workers);
        for split in known.into_iter().filter(|split| split.index % workers == worker) {
            let stored = restored.and_then(|restored| restored.get(&split.name));
            let start = match (restored, stored) {
                (None, _) => StartAt::Configured,
                (_, Some(stored)) => StartAt::Position(codec::decode(&stored.position)?),
                (_, None) => StartAt::Discovered,
            };
            let watermark = stored.map_or(&[][..], |stored| &stored.watermark);
            let watermark = if self.core.shared.mutations.forget_watermarks { &[] } else { watermark };
            self.take(split, start, watermark)?;
        }
        self.next_discovery = self.core.shared.clock.monotonic() + DISCOVERY;
        Ok(())
    }

    fn discover(&mut self) -> Result<()> {
        let now = self.core.shared.clock.monotonic();
        if now < self.next_discovery {
            return Ok(());
        }
        self.next_discovery = now + DISCOVERY;
        for split in self.source.splits()? {
            if split.index % self.workers == self.worker && !self.assigned.contains(&split) {
                self.take(split, StartAt::Discovered, &[])?;
            }
        }
        Ok(())
    }

    /// Takes a split over, its event time where it was.
    fn take(&mut self, split: SplitId, start: StartAt<S::Position>, watermark: &[u8]) -> Result<()> {
        self.source.assign(&split, start)?;
        if let Some(time) = &mut self.event_time {
            time.add(&split, watermark)?;
        }
        // Asked once: what cannot be paused must not be promised.
        if self.aligned.is_some() && !self.source.pause(&split, false) {
            return Err(Error::invalid_plan(
                "its watermarks are to be aligned, but it cannot pause a split: leave `align` out, or use another source",
            ));
        }
        self.assigned.insert(split);
        Ok(())
    }

    fn on_command(&mut self, command: SourceCommand) -> Result<()> {
        match command {
            SourceCommand::Barrier(barrier) => self.on_barrier(barrier),
            SourceCommand::Completed(id) => {
                self.finished |= self.last == Some(id);
                self.source.on_completed(id).map_err(|e| self.in_source(e))
            }
            SourceCommand::Watermark(watermark) => {
                self.mark = match &mut self.event_time {
                    Some(time) => time.promise(self.core.shared.clock.monotonic(), watermark),
                    None => Some(Mark::Watermark(watermark)),
                };
                Ok(())
            }
            SourceCommand::EndWhenCaughtUp => {
                self.ends_when_caught_up = true;
                Ok(())
            }
        }
    }

    fn on_barrier(&mut self, barrier: Barrier) -> Result<()> {
        let positions = self.positions()?;
        self.root.barrier(barrier, &mut self.core.context)?;
        self.core.hand_in(barrier, Some(positions), Watermark::NONE)?;
        if barrier.kind == BarrierKind::Final {
            self.root.end(&mut self.core.context)?;
            self.last = Some(barrier.checkpoint);
            // With checkpoints it stays until the last one is completed: the source is told of that one, too.
            self.finished = !self.core.durable;
        }
        Ok(())
    }

    fn positions(&self) -> Result<SourcePositions> {
        let split = |split: &SplitId| {
            let mut position = Vec::new();
            codec::encode(&self.source.position(split), &mut position)?;
            let watermark = self.event_time.as_ref().map_or(Ok(Vec::new()), |time| time.save(split))?;
            Ok(manifest::Split { name: split.name.clone(), index: split.index, position, watermark })
        };
        let splits = self.assigned.iter().map(split).collect::<Result<_>>()?;
        Ok(SourcePositions { source: self.source_name.clone(), splits })
    }

    fn read(&mut self) -> Result<Progress> {
        if self.ended || self.last.is_some() || !self.core.shared.may_read() {
            self.interrupted();
            self.root.flush_partial(&mut self.core.context)?;
            // Over the budget it could read, and must not: what was read has nowhere to go.
            let blocked = !self.ended && self.core.shared.staged.is_over_budget();
            return Ok(if blocked { Progress::Blocked } else { Progress::Waiting });
        }
        self.discover().map_err(|e| self.in_source(e))?;
        match self.source.poll(&mut self.batch).map_err(|e| self.in_source(e))? {
            Polled::Records { split, bytes } => self.on_records(split, bytes),
            Polled::Nothing { caught_up: true } if self.ends_when_caught_up => self.on_end(),
            Polled::Nothing { caught_up } => self.on_nothing(caught_up),
            Polled::Ended => self.on_end(),
        }
    }

    fn on_records(&mut self, split: SplitId, bytes: usize) -> Result<Progress> {
        self.read.count(self.batch.len());
        self.core.context.bytes_per_record = bytes / self.batch.len().max(1);
        if let Some(time) = &mut self.event_time {
            time.on_batch(&split, &mut self.batch);
        }
        self.origin = Some(split);
        self.root.push(&mut self.batch, &mut self.core.context)?;
        self.batch.clear();
        self.look(false, SplitState::Reading);
        Ok(Progress::Worked)
    }

    fn on_nothing(&mut self, caught_up: bool) -> Result<Progress> {
        self.look(true, if caught_up { SplitState::CaughtUp } else { SplitState::Reading });
        self.root.flush_partial(&mut self.core.context)?;
        Ok(if self.mark.is_some() { Progress::Worked } else { Progress::Waiting })
    }

    /// Sees how far event time has moved; `unless_told` is the state of a split of which the source says nothing.
    fn look(&mut self, nothing: bool, unless_told: SplitState) {
        let now = self.core.shared.clock.monotonic();
        let Some(time) = &mut self.event_time else { return self.renew_status(now) };
        if time.is_due(now, nothing) {
            let source = &self.source;
            self.mark = time.look(now, |split| source.split_state(split).unwrap_or(unless_told));
            if let Some(member) = &self.aligned {
                member.tell(time.slowest());
                for Pause { split, paused } in time.align(member.slowest()) {
                    self.source.pause(&split, paused);
                }
            }
        }
        self.renew_status(now);
    }

    fn interrupted(&mut self) {
        if let Some(time) = &mut self.event_time {
            time.interrupted();
        }
    }

    fn renew_status(&mut self, now: Duration) {
        if now < self.next_status {
            return;
        }
        self.next_status = now + STATUS;
        let times = self.event_time.as_ref().map(EventTime::status).unwrap_or_default();
        let status = |split: &SplitId| {
            let time = times.iter().find(|time| time.split == *split);
            SplitStatus {
                split: split.name.clone(),
                worker: self.worker as u16,
                watermark: time.map(|time| time.watermark).filter(|watermark| *watermark > Watermark::NONE),
                idle: time.is_some_and(|time| time.idle),
                paused: time.is_some_and(|time| time.paused),
                lag: self.source.lag(split),
                position: self.source.offset(split),
            }
        };
        self.meter.set(self.assigned.iter().map(status).collect());
    }

    fn send(&mut self, mark: Mark) -> Result<Progress> {
        match mark {
            Mark::Watermark(watermark) => {
                self.read.note(watermark);
                self.root.watermark(watermark, &mut self.core.context)?;
            }
            Mark::Idle => self.root.idle(&mut self.core.context)?,
        }
        Ok(Progress::Worked)
    }

    /// True end of input: event time is over for this instance. Barriers still pass until the final one.
    fn on_end(&mut self) -> Result<Progress> {
        self.ended = true;
        self.read.note(Watermark::END);
        self.root.watermark(Watermark::END, &mut self.core.context)?;
        self.aligned.iter().for_each(|member| member.tell(Watermark::END));
        self.next_status = Duration::ZERO;
        self.renew_status(self.core.shared.clock.monotonic());
        self.core.shared.report(Report::SourceEnded);
        Ok(Progress::Worked)
    }
}

impl<S: Source> Task for SourceTask<S> {
    fn name(&self) -> &str {
        &self.core.name
    }

    /// The split and, as the position behind the batch, how far it had been read.
    fn origin(&self) -> String {
        match &self.origin {
            Some(split) => format!("split {split}, position behind the batch {:?}", self.source.position(split)),
            None => "before its first batch".into(),
        }
    }

    fn meter(&self) -> &StageMeter {
        &self.read
    }

    fn step(&mut self) -> Result<Progress> {
        self.core.context.now = self.core.shared.clock.wall();
        if !self.root.flush(&mut self.core.context)? {
            self.interrupted();
            return Ok(Progress::Blocked);
        }
        if self.finished {
            return Ok(Progress::Finished);
        }
        if let Some(mark) = self.mark.take() {
            return self.send(mark);
        }
        if let Some(command) = self.core.shared.clone().mailbox(self.slot).take() {
            self.on_command(command)?;
            return Ok(Progress::Worked);
        }
        self.read()
    }
}

/// A split of the checkpoint that is gone would be lost silently.
fn refuse_missing(known: &[SplitId], restored: &Restored) -> Result<()> {
    let mut missing: Vec<_> = restored.keys().filter(|name| !known.iter().any(|split| &split.name == *name)).collect();
    missing.sort();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "the checkpoint holds positions of splits that are gone: {missing:?}; restore them, or start a new lineage"
    )))
}
