//! What a reader of the output can rely on after a crash.

use crate::graph::Graph;
use crate::{Delivery, LogicalPlan, NodeKind};
use std::fmt;

/// From weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// The job starts again at its configured start: records are lost or written again.
    None,
    /// State is exact; records since the last checkpoint are written again.
    AtLeastOnce,
    /// Output is visible once; state, positions and output agree.
    ExactlyOnce,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Guarantee::None => "none",
            Guarantee::AtLeastOnce => "at least once",
            Guarantee::ExactlyOnce => "exactly once",
        })
    }
}

/// The guarantee of one sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkGuarantee {
    /// Place of the sink among the nodes.
    pub node: usize,
    /// What it guarantees.
    pub guarantee: Guarantee,
    /// Why it is not more than [`Guarantee::None`]; empty otherwise.
    pub reason: String,
}

/// The guarantee of every sink, in the order of nodes.
pub(crate) fn of_sinks(plan: &LogicalPlan, graph: &Graph<'_>) -> Vec<SinkGuarantee> {
    (0..plan.nodes.len()).filter_map(|node| of_sink(plan, graph, node)).collect()
}

fn of_sink(plan: &LogicalPlan, graph: &Graph<'_>, node: usize) -> Option<SinkGuarantee> {
    let NodeKind::Sink { delivery } = plan.nodes[node].kind else { return None };
    let (guarantee, reason) = if !plan.checkpointing {
        (Guarantee::None, "no checkpoints are taken".into())
    } else if let Some(source) = sources_that_cannot_replay(plan, graph, node).next() {
        (Guarantee::None, format!("source \"{}\" cannot be read again", plan.nodes[source].name))
    } else if delivery == Delivery::ExactlyOnce {
        (Guarantee::ExactlyOnce, String::new())
    } else {
        (Guarantee::AtLeastOnce, String::new())
    };
    Some(SinkGuarantee { node, guarantee, reason })
}

/// The sources above `node` that lose what they once handed out.
pub(crate) fn sources_that_cannot_replay(
    plan: &LogicalPlan,
    graph: &Graph<'_>,
    node: usize,
) -> impl Iterator<Item = usize> {
    let cannot = |node: &usize| matches!(plan.nodes[*node].kind, NodeKind::Source { replayable: false, .. });
    graph.upstream(node).into_iter().filter(cannot)
}
