//! What the author asked for, as data.

use crate::Problem;

/// The pipeline as written: nodes and the links between them, in the order they were made.
#[derive(Clone, Debug, Default)]
pub struct LogicalPlan {
    /// The job's name.
    pub job: String,
    /// Whether checkpoints are taken.
    pub checkpointing: bool,
    /// Nodes; links refer to them by place.
    pub nodes: Vec<Node>,
    /// Links.
    pub links: Vec<Link>,
    /// What whoever wrote it down found wrong while doing so; reported with everything else.
    pub problems: Vec<Problem>,
}

/// A source, a chain of fused operators, or a sink.
#[derive(Clone, Debug)]
pub struct Node {
    /// The author's name for sources and sinks; for a chain, its operators' labels joined with ` → `.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Workers, where the author said so.
    pub parallelism: Option<u16>,
    /// One line about the connector; empty for chains.
    pub description: String,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Reads splits.
    Source {
        /// It honours positions out of a checkpoint.
        replayable: bool,
        /// It tells event time before its end.
        watermarks: bool,
    },
    /// Operators fused by type.
    Chain {
        /// In order.
        operators: Vec<OperatorInfo>,
    },
    /// Writes out.
    Sink {
        /// What it promises.
        delivery: Delivery,
    },
}

/// One operator of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorInfo {
    /// `map`, `filter`, `reduce`, …
    pub kind: &'static str,
    /// The author's name, where given; always for a stateful one.
    pub name: Option<String>,
    /// It keeps state under its name.
    pub stateful: bool,
    /// Its state is found by key.
    pub keyed: bool,
    /// It waits for watermarks.
    pub event_time: bool,
}

/// What a sink promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Written again after a crash.
    AtLeastOnce,
    /// Staged and published with the checkpoint.
    ExactlyOnce,
}

/// Records flow from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Place of the sender.
    pub from: usize,
    /// Place of the receiver.
    pub to: usize,
    /// How records find their worker.
    pub routing: Routing,
    /// It carries a side output of the sender, not its main output.
    pub side: bool,
}

impl Link {
    /// A link of the main output.
    pub fn new(from: usize, to: usize, routing: Routing) -> Self {
        Self { from, to, routing, side: false }
    }
}

/// How records find the worker that handles them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routing {
    /// To the same worker.
    Forward,
    /// To the owner of the key group.
    Hash,
    /// Batch by batch in turn.
    Rebalance,
    /// To every worker.
    Broadcast,
}
