//! What the runtime assembles.

use crate::guarantee::{Guarantee, SinkGuarantee};
use crate::{Problem, Routing};

/// What holds where the author said nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Workers of a source, and of what nothing else decides.
    pub workers: u16,
    /// Key groups of the job: the most workers a keyed stage can ever have.
    pub key_groups: u16,
    /// Capacity of an edge between two workers, in batches.
    pub edge_batches: usize,
    /// Capacity of an edge between two workers, in payload bytes.
    pub edge_bytes: usize,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { workers: 1, key_groups: mailer_core::DEFAULT_KEY_GROUPS, edge_batches: 8, edge_bytes: 1024 * 1024 }
    }
}

/// Stages and the edges between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhysicalPlan {
    /// The job.
    pub job: String,
    /// The weakest guarantee of its sinks.
    pub guarantee: Guarantee,
    /// The guarantee of every sink, in the order of nodes.
    pub sinks: Vec<SinkGuarantee>,
    /// Key groups of the job.
    pub key_groups: u16,
    /// Stages; every edge leads to a later one.
    pub stages: Vec<Stage>,
    /// Edges, in the order of their links.
    pub edges: Vec<Edge>,
    /// What the author should know although the job can run.
    pub warnings: Vec<Problem>,
    /// The stage of every node.
    pub(crate) stage_of: Vec<usize>,
    /// Links that need no edge.
    pub(crate) in_stage: Vec<bool>,
}

/// Nodes that run in one task per worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its place among the stages.
    pub id: usize,
    /// Unique in the job; after its head.
    pub name: String,
    /// Its nodes in flow order; the first is its head, and the only one with inputs from outside.
    pub nodes: Vec<usize>,
    /// Its workers.
    pub parallelism: u16,
    /// Records reach it by key group.
    pub keyed: bool,
}

/// A bounded queue from every worker of one stage to the workers of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Place in [`crate::LogicalPlan::links`].
    pub link: usize,
    /// Place of the sender in [`PhysicalPlan::stages`].
    pub from_stage: usize,
    /// Place of the receiver in [`PhysicalPlan::stages`].
    pub to_stage: usize,
    /// `from→to`, unique in the job.
    pub name: String,
    /// How records find their worker.
    pub routing: Routing,
    /// See [`Defaults::edge_batches`].
    pub capacity_batches: usize,
    /// See [`Defaults::edge_bytes`].
    pub capacity_bytes: usize,
}

impl PhysicalPlan {
    /// The stage a node runs in.
    pub fn stage_of(&self, node: usize) -> &Stage {
        &self.stages[self.stage_of[node]]
    }

    /// Whether both ends of a link run in one task, so that no queue lies between them.
    pub fn in_stage(&self, link: usize) -> bool {
        self.in_stage[link]
    }

    /// The edge of a link that is not [`PhysicalPlan::in_stage`].
    pub fn edge_of(&self, link: usize) -> Option<&Edge> {
        self.edges.binary_search_by_key(&link, |edge| edge.link).ok().map(|place| &self.edges[place])
    }
}
