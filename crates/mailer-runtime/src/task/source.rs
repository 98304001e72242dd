//! A stage that begins with a source.

use super::{Progress, Task, TaskCore};
use crate::node::Node;
use crate::report::{Report, SourcePositions};
use crate::shared::SourceCommand;
use mailer_checkpoint::manifest;
use mailer_core::{
    Barrier, BarrierKind, Batch, CheckpointId, Error, Polled, Result, Source, SplitId, StartAt, Watermark, codec,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often a source is asked for splits that appeared since.
const DISCOVERY: Duration = Duration::from_secs(1);

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
    read: Arc<AtomicU64>,
    origin: Option<SplitId>,
    next_discovery: Duration,
    ended: bool,
    /// The last checkpoint, once its barrier has passed.
    last: Option<CheckpointId>,
    finished: bool,
}

/// Place of a source task among the workers and sources.
pub(crate) struct SourcePlace {
    pub(crate) source_name: String,
    pub(crate) slot: usize,
    pub(crate) worker: u16,
    pub(crate) workers: u16,
}

impl<S: Source> SourceTask<S> {
    /// Assigns this worker's splits: at their restored positions, or at the configured start.
    pub(crate) fn open(
        core: TaskCore,
        place: SourcePlace,
        source: S,
        restored: Option<&Restored>,
        root: Box<dyn Node<S::Item>>,
        read: Arc<AtomicU64>,
    ) -> Result<Self> {
        let SourcePlace { source_name, slot, worker, workers } = place;
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
            ended: false,
            last: None,
            finished: false,
        };
        task.assign_first(restored).map_err(|e| task.in_source(e))?;
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
        for split in known.into_iter().filter(|split| split.index % self.workers == self.worker) {
            let start = match restored {
                None => StartAt::Configured,
                Some(restored) => match restored.get(&split.name) {
                    Some(stored) => StartAt::Position(codec::decode(&stored.position)?),
                    None => StartAt::Discovered,
                },
            };
            self.source.assign(&split, start)?;
            self.assigned.insert(split);
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
                self.source.assign(&split, StartAt::Discovered)?;
                self.assigned.insert(split);
            }
        }
        Ok(())
    }

    fn on_command(&mut self, command: SourceCommand) -> Result<()> {
        match command {
            SourceCommand::Barrier(barrier) => self.on_barrier(barrier),
            SourceCommand::Completed(id) => {
                self.finished |= self.last == Some(id);
                self.source.on_completed(id).map_err(|e| self.in_source(e))
            }
        }
    }

    fn on_barrier(&mut self, barrier: Barrier) -> Result<()> {
        let positions = self.positions()?;
        self.root.barrier(barrier, &mut self.core.context)?;
        self.core.hand_in(barrier, Some(positions))?;
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
            Ok(manifest::Split { name: split.name.clone(), index: split.index, position, watermark: Vec::new() })
        };
        let splits = self.assigned.iter().map(split).collect::<Result<_>>()?;
        Ok(SourcePositions { source: self.source_name.clone(), splits })
    }

    fn read(&mut self) -> Result<Progress> {
        if self.ended || self.last.is_some() || !self.core.shared.may_read() {
            self.root.flush_partial(&mut self.core.context)?;
            return Ok(Progress::Waiting);
        }
        self.discover().map_err(|e| self.in_source(e))?;
        match self.source.poll(&mut self.batch).map_err(|e| self.in_source(e))? {
            Polled::Records { split, bytes } => self.on_records(split, bytes),
            Polled::Nothing { .. } => {
                self.root.flush_partial(&mut self.core.context)?;
                Ok(Progress::Waiting)
            }
            Polled::Ended => self.on_end(),
        }
    }

    fn on_records(&mut self, split: SplitId, bytes: usize) -> Result<Progress> {
        self.read.fetch_add(self.batch.len() as u64, Relaxed);
        self.core.context.bytes_per_record = bytes / self.batch.len().max(1);
        self.origin = Some(split);
        self.root.push(&mut self.batch, &mut self.core.context)?;
        self.batch.clear();
        Ok(Progress::Worked)
    }

    /// True end of input: event time is over for this instance. Barriers still pass until the final one.
    fn on_end(&mut self) -> Result<Progress> {
        self.ended = true;
        self.root.watermark(Watermark::END, &mut self.core.context)?;
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

    fn step(&mut self) -> Result<Progress> {
        if !self.root.flush(&mut self.core.context)? {
            return Ok(Progress::Waiting);
        }
        if self.finished {
            return Ok(Progress::Finished);
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
