//! The pipeline as built: typed nodes and links behind erased handles, beside the planner's plain data.
//!
//! Types are known where the author writes the pipeline and where a worker runs it; in between, the assembly moves
//! `Box<dyn Any>`. A wrong type there is a bug of this module, reported as one and never a panic.

mod links;
mod nodes;

pub(crate) use links::{AnyLink, BroadcastLink, EdgeShape, HashLink, OpenEdge, PlainLink, SideLink};
pub(crate) use nodes::{ChainPart, PlainSinkPart, SourcePart, StagedSinkPart};

use crate::job::status::{RunCounters, StageMeter};
use crate::node::SideReader;
use crate::recovery::TargetSetup;
use crate::shared::JobShared;
use crate::task::{Task, TaskCore};
use mailer_checkpoint::manifest::Operator;
use mailer_core::{BlobStore, Error, KeyGroup, OwnerEpoch, Result, WorkerContext, group_range};
use mailer_operators::{Counter, MakeSplitClock, OpenOperator, Pacing, Spawner};
use mailer_planner::{Link, LogicalPlan, Node as PlanNode};
use mailer_state::{StateStore, layout};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Waker;

/// Something whose type the two ends of a link know.
pub(crate) type Erased = Box<dyn Any + Send>;

/// How the splits of a source tell event time.
pub(crate) type SourceTime<T> = (Arc<dyn MakeSplitClock<T>>, Pacing);

#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) plan: LogicalPlan,
    pub(crate) parts: Vec<Box<dyn Part>>,
    pub(crate) links: Vec<Box<dyn AnyLink>>,
}

impl Graph {
    pub(crate) fn add(&mut self, node: PlanNode, part: Box<dyn Part>) -> usize {
        self.plan.nodes.push(node);
        self.parts.push(part);
        self.parts.len() - 1
    }

    pub(crate) fn link(&mut self, from: usize, to: usize, link: Box<dyn AnyLink>) {
        self.plan.links.push(Link { from, to, routing: link.routing(), side: link.is_side() });
        self.links.push(link);
    }
}

/// What a node can build: itself inside a stage, and the task of a stage that begins with it.
pub(crate) trait Part: Send {
    /// A `Box<dyn Node<In>>` in front of `readers`. A source gives its readers combined. Operators are opened with `store`.
    fn node(&self, cx: &BuildContext<'_>, store: &mut dyn StateStore, readers: Readers) -> Result<Erased>;

    /// The task of a stage headed by this node. `inputs` are the receivers of this worker, a `Vec<Receiver<In>>` each.
    fn task(&self, cx: &BuildContext<'_>, core: TaskCore, inputs: Vec<Erased>, node: Erased) -> Result<Box<dyn Task>>;

    /// Remembers how to copy a record: a `fn(&Out) -> Out`, where the author made branches.
    fn set_copy(&mut self, _copy: Erased) {}

    /// The target of an exactly-once sink and how to open it.
    fn target<'a>(&'a self, _job: &'a str, _sink: &str) -> Option<TargetSetup<'a>> {
        None
    }

    /// Has the splits of a source tell event time: a [`SourceTime`] of the source's items. `false` for what is no source.
    fn set_watermarks(&mut self, _time: Erased) -> bool {
        false
    }

    /// Names of the states of each stateful operator.
    fn stateful(&self) -> Vec<(String, Vec<&'static str>)> {
        Vec::new()
    }
}

/// What stands behind a node in its stage.
pub(crate) struct Readers {
    /// Each a `Box<dyn Node<Out>>`.
    pub(crate) main: Vec<Erased>,
    pub(crate) sides: Vec<Box<dyn SideReader>>,
}

/// What a part is told when one worker of it is built.
pub(crate) struct BuildContext<'a> {
    pub(crate) job: &'a str,
    /// The node's name in the plan.
    pub(crate) name: &'a str,
    pub(crate) stage: usize,
    pub(crate) worker: u16,
    pub(crate) workers: u16,
    pub(crate) epoch: OwnerEpoch,
    pub(crate) key_groups: u16,
    pub(crate) operators: &'a [Operator],
    pub(crate) blobs: Option<Arc<dyn BlobStore>>,
    pub(crate) shared: &'a Arc<JobShared>,
    pub(crate) counters: &'a RunCounters,
    /// Source tasks built so far: the slot of the next one.
    pub(crate) source_slot: usize,
    pub(crate) restored: Option<&'a crate::task::RestoredSources>,
}

/// What an operator is opened with.
struct Opening<'a> {
    cx: &'a BuildContext<'a>,
    store: &'a mut dyn StateStore,
}

impl BuildContext<'_> {
    pub(crate) fn worker_context(&self) -> WorkerContext {
        WorkerContext {
            job: self.job.to_owned(),
            name: self.name.to_owned(),
            worker: self.worker,
            workers: self.workers,
            epoch: self.epoch,
            waker: self.shared.waker(self.worker),
            clock: self.shared.clock.clone(),
        }
    }
}

impl BuildContext<'_> {
    /// Counts what the stage takes in.
    pub(crate) fn stage_meter(&self) -> Result<StageMeter> {
        let meter = self.counters.stages.get(self.stage).map(|stage| stage.worker(self.worker));
        meter.ok_or_else(|| Error::internal(format!("stage {} has no meter", self.stage)))
    }

    /// Counts the records the sink accepts.
    pub(crate) fn sink_counter(&self) -> Result<Arc<AtomicU64>> {
        let counter =
            self.counters.sinks.iter().find(|(name, _)| name == self.name).map(|(_, counter)| counter.clone());
        counter.ok_or_else(|| Error::internal(format!("sink \"{}\" has no counter", self.name)))
    }
}

impl OpenOperator for Opening<'_> {
    fn operator_id(&self, name: &str) -> Result<u16> {
        let operator = self.cx.operators.iter().find(|operator| operator.name == name);
        let id = operator.and_then(|operator| u16::try_from(operator.id).ok());
        id.ok_or_else(|| Error::internal(format!("operator \"{name}\" has no id in this run")))
    }

    fn key_groups(&self) -> u16 {
        self.cx.key_groups
    }

    fn owned_groups(&self) -> Range<u16> {
        group_range(self.cx.worker, self.cx.workers, self.cx.key_groups)
    }

    fn unkeyed_group(&self) -> KeyGroup {
        KeyGroup(layout::FIRST_UNKEYED_GROUP + self.cx.worker)
    }

    fn state(&mut self) -> &mut dyn StateStore {
        self.store
    }

    fn counter(&mut self, operator: &str, what: &'static str) -> Counter {
        self.cx.counters.operator(operator, what)
    }

    fn waker(&self) -> Waker {
        self.cx.shared.waker(self.cx.worker)
    }

    fn spawner(&self) -> Result<Arc<dyn Spawner>> {
        self.cx.shared.spawner()
    }
}

/// Takes an erased value back as what it is.
pub(crate) fn restore<T: 'static>(erased: Erased) -> Result<T> {
    match erased.downcast::<T>() {
        Ok(value) => Ok(*value),
        Err(_) => Err(Error::internal(format!("assembly expected a {}", std::any::type_name::<T>()))),
    }
}

/// Groups the exactly-once sinks of a graph by target: one publisher, one transaction per checkpoint.
pub(crate) fn targets<'a>(graph: &'a Graph, job: &'a str) -> Vec<TargetSetup<'a>> {
    let mut targets: Vec<TargetSetup<'a>> = Vec::new();
    for (node, part) in graph.plan.nodes.iter().zip(&graph.parts) {
        let Some(setup) = part.target(job, &node.name) else { continue };
        match targets.iter_mut().find(|known| known.name == setup.name) {
            Some(known) => known.sinks.extend(setup.sinks),
            None => targets.push(setup),
        }
    }
    targets
}
