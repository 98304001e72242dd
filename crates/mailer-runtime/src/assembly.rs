//! From plan to tasks: opens the edges, then builds every stage of every worker from its leaves to its head.

use crate::attempt::{Origin, Plan};
use crate::edge::Capacity;
use crate::graph::{BuildContext, EdgeShape, Erased, OpenEdge, Readers};
use crate::job::counters::{EdgeCounters, RunCounters, StageCounters};
use crate::shared::JobShared;
use crate::task::{Place, RestoredSources, Task, TaskCore};
use mailer_core::{Error, Result, Timestamp, Watermark, group_range};
use mailer_planner::{NodeKind, Routing, Stage};
use std::sync::{Arc, Mutex};

/// A task and the worker that steps it.
pub(crate) struct Placed {
    pub(crate) worker: u16,
    pub(crate) task: Box<dyn Task>,
}

pub(crate) struct Assembled {
    pub(crate) tasks: Vec<Placed>,
    pub(crate) counters: RunCounters,
}

pub(crate) fn assemble(plan: &Plan, origin: &Origin, shared: &Arc<JobShared>) -> Result<Assembled> {
    let edges = open_edges(plan, shared);
    let counters = counters(plan, origin, &edges, shared);
    let restored = origin.manifest().map(RestoredSources::of_manifest);
    let mut assembly = Assembly { plan, origin, shared, counters: &counters, edges, restored, source_slot: 0 };
    let mut tasks = Vec::new();
    for stage in &plan.physical.stages {
        for worker in 0..stage.parallelism {
            tasks.push(Placed { worker, task: assembly.task(stage, worker)? });
        }
    }
    Ok(Assembled { tasks, counters })
}

fn open_edges(plan: &Plan, shared: &JobShared) -> Vec<OpenEdge> {
    let open = |edge: &mailer_planner::Edge| {
        let stages = &plan.physical.stages;
        plan.graph.links[edge.link].open(&EdgeShape {
            from_workers: stages[edge.from_stage].parallelism,
            to_workers: stages[edge.to_stage].parallelism,
            one_to_one: edge.routing == Routing::Forward,
            capacity: capacity(edge),
            shared,
        })
    };
    plan.physical.edges.iter().map(open).collect()
}

fn capacity(edge: &mailer_planner::Edge) -> Capacity {
    Capacity { batches: edge.capacity_batches, bytes: edge.capacity_bytes }
}

fn counters(plan: &Plan, origin: &Origin, edges: &[OpenEdge], shared: &Arc<JobShared>) -> RunCounters {
    let nodes = &plan.graph.plan.nodes;
    let named = |wanted: fn(&NodeKind) -> bool| nodes.iter().filter(move |node| wanted(&node.kind));
    let sources = named(|kind| matches!(kind, NodeKind::Source { .. }));
    let sinks = named(|kind| matches!(kind, NodeKind::Sink { .. }));
    let stages = &plan.physical.stages;
    let edge = |(edge, open): (&mailer_planner::Edge, &OpenEdge)| EdgeCounters {
        name: edge.name.clone(),
        from: stages[edge.from_stage].name.clone(),
        to: stages[edge.to_stage].name.clone(),
        capacity: capacity(edge),
        meters: open.meters.clone(),
    };
    let stage = |stage: &Stage| StageCounters::new(&stage.name, stage.keyed, stage.parallelism);
    RunCounters {
        sources: sources.map(|node| (node.name.clone(), Mutex::default())).collect(),
        stages: stages.iter().map(stage).collect(),
        sinks: sinks.map(|node| (node.name.clone(), Arc::default())).collect(),
        operator_ids: origin.operators().iter().map(|operator| (operator.id, operator.name.clone())).collect(),
        backend: Some(origin.state.clone()),
        edges: plan.physical.edges.iter().zip(edges).map(edge).collect(),
        shared: Some(shared.clone()),
        ..RunCounters::default()
    }
}

struct Assembly<'a> {
    plan: &'a Plan,
    origin: &'a Origin,
    shared: &'a Arc<JobShared>,
    counters: &'a RunCounters,
    edges: Vec<OpenEdge>,
    restored: Option<RestoredSources>,
    source_slot: usize,
}

impl Assembly<'_> {
    fn task(&mut self, stage: &Stage, worker: u16) -> Result<Box<dyn Task>> {
        let Some(head) = stage.nodes.first().copied() else {
            return Err(Error::internal(format!("stage {} is empty", stage.name)));
        };
        let mut core = self.core(stage, worker)?;
        let root = self.node(head, stage, worker, &mut core)?;
        let inputs = self.receivers(stage, worker)?;
        let cx = self.context(head, stage, worker);
        let task = self.plan.graph.parts[head].task(&cx, core, inputs, root)?;
        if matches!(self.plan.graph.plan.nodes[head].kind, NodeKind::Source { .. }) {
            self.source_slot += 1;
        }
        Ok(task)
    }

    /// A node and, first, everything of the same stage behind it.
    fn node(&mut self, node: usize, stage: &Stage, worker: u16, core: &mut TaskCore) -> Result<Erased> {
        let mut readers = Readers { main: Vec::new(), sides: Vec::new() };
        let plan = self.plan;
        let links = plan.graph.plan.links.iter().enumerate().filter(|(_, link)| link.from == node);
        for (i, link) in links {
            let reader = if plan.physical.in_stage(i) {
                self.node(link.to, stage, worker, core)?
            } else {
                self.gate(i, worker)?
            };
            match link.side {
                true => readers.sides.push(plan.graph.links[i].side_reader(reader)?),
                false => readers.main.push(reader),
            }
        }
        let cx = self.context(node, stage, worker);
        plan.graph.parts[node].node(&cx, core.context.store.as_mut(), readers)
    }

    fn gate(&mut self, link: usize, worker: u16) -> Result<Erased> {
        let edge = self.plan.physical.edges.iter().position(|edge| edge.link == link);
        let senders = edge.and_then(|edge| self.edges[edge].senders[usize::from(worker)].take());
        let senders = senders.ok_or_else(|| Error::internal(format!("link {link} has no senders left")))?;
        self.plan.graph.links[link].gate(senders, worker, self.plan.settings.key_groups)
    }

    fn receivers(&mut self, stage: &Stage, worker: u16) -> Result<Vec<Erased>> {
        let mut inputs = Vec::new();
        for (edge, open) in self.plan.physical.edges.iter().zip(&mut self.edges) {
            if edge.to_stage == stage.id {
                let receivers = open.receivers[usize::from(worker)].take();
                inputs.push(receivers.ok_or_else(|| Error::internal(format!("edge {} is taken", edge.name)))?);
            }
        }
        Ok(inputs)
    }

    fn core(&self, stage: &Stage, worker: u16) -> Result<TaskCore> {
        let names: Vec<_> = stage.nodes.iter().flat_map(|node| self.plan.graph.parts[*node].stateful()).collect();
        let groups = group_range(worker, stage.parallelism, self.plan.settings.key_groups);
        let store = if !names.is_empty() { Some(self.origin.state.store(groups)?) } else { None };
        let name = format!("{}[{worker}]", stage.name);
        let place = Place { stage: stage.id, worker };
        let restored = match self.shared.mutations.forget_watermarks {
            true => Watermark::NONE,
            false => self.restored_watermark(names.iter().map(|(name, _)| name.as_str()), worker),
        };
        let state = self.counters.state_meter(stage.id);
        Ok(TaskCore::new(name, place, store, self.origin.is_durable(), state, restored, self.shared.clone()))
    }

    /// Where event time stood at the gate of a stage: all its operators have seen the same. Those that are new in the
    /// program know nothing; what the others had seen holds for them, too.
    fn restored_watermark<'n>(&self, names: impl Iterator<Item = &'n str>, worker: u16) -> Watermark {
        let stored = self.origin.manifest().map_or(&[][..], |manifest| &manifest.operators);
        let of = |name: &str| {
            let known = stored.iter().find(|known| known.parallelism > 0 && known.name == name)?;
            known.watermarks.get(usize::from(worker)).copied()
        };
        let known: Vec<_> = names.filter_map(of).collect();
        known.into_iter().max().map_or(Watermark::NONE, |watermark| Watermark(Timestamp(watermark)))
    }

    fn context(&self, node: usize, stage: &Stage, worker: u16) -> BuildContext<'_> {
        BuildContext {
            job: &self.plan.settings.job,
            name: &self.plan.graph.plan.nodes[node].name,
            stage: stage.id,
            worker,
            workers: stage.parallelism,
            epoch: self.origin.epoch(),
            key_groups: self.plan.settings.key_groups,
            operators: self.origin.operators(),
            blobs: self.origin.blobs(),
            shared: self.shared,
            counters: self.counters,
            source_slot: self.source_slot,
            restored: self.restored.as_ref(),
        }
    }
}
