//! How many workers each node gets: what the author said; else what feeds it; else the default.

use crate::graph::Graph;
use crate::{Defaults, LogicalPlan, Routing};

/// The parallelism of every node; `order` is the flow order.
pub(crate) fn decide(plan: &LogicalPlan, graph: &Graph<'_>, order: &[usize], defaults: &Defaults) -> Vec<u16> {
    let mut parallelism = vec![defaults.workers; plan.nodes.len()];
    for &node in order {
        let inherited = only_forward_input(graph, node).map(|from| parallelism[from]);
        parallelism[node] = plan.nodes[node].parallelism.or(inherited).unwrap_or(defaults.workers);
    }
    parallelism
}

fn only_forward_input(graph: &Graph<'_>, node: usize) -> Option<usize> {
    let mut forward = graph.links_into(node).filter(|link| link.routing == Routing::Forward);
    match (forward.next(), forward.next()) {
        (Some(link), None) => Some(link.from),
        _ => None,
    }
}
