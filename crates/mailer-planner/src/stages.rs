//! Which nodes run in one task, and the edges between tasks.
//!
//! A node joins the stage of the node that feeds it when that is its only input, records stay with their worker, and both
//! have the same parallelism: then no queue is needed. Otherwise it heads a stage of its own. A stage may be a tree.

use crate::graph::Graph;
use crate::{Defaults, Edge, Link, LogicalPlan, Node, NodeKind, Routing, Stage};
use std::collections::BTreeSet;

/// Stages in an order in which every edge leads to a later stage.
pub(crate) fn cut(plan: &LogicalPlan, graph: &Graph<'_>, order: &[usize], parallelism: &[u16]) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    let mut stage_of = vec![0; plan.nodes.len()];
    let mut taken = BTreeSet::new();
    for &node in order {
        match joins(graph, node, parallelism) {
            Some(upstream) => stage_of[node] = stage_of[upstream],
            None => {
                stage_of[node] = stages.len();
                let name = unique(title(&plan.nodes[node]), &mut taken);
                let (id, keyed) = (stages.len(), is_keyed_head(graph, node));
                stages.push(Stage { id, name, nodes: vec![], parallelism: parallelism[node], keyed });
            }
        }
        stages[stage_of[node]].nodes.push(node);
    }
    stages
}

/// The only input of `node`, when it joins its stage.
fn joins(graph: &Graph<'_>, node: usize, parallelism: &[u16]) -> Option<usize> {
    let mut links = graph.links_into(node);
    match (links.next(), links.next()) {
        (Some(Link { from, routing: Routing::Forward, .. }), None) if parallelism[*from] == parallelism[node] => {
            Some(*from)
        }
        _ => None,
    }
}

fn is_keyed_head(graph: &Graph<'_>, node: usize) -> bool {
    // What is broadcast beside has no key and reaches every worker.
    let keyed = graph.links_into(node).any(|link| link.routing == Routing::Hash);
    keyed && graph.links_into(node).all(|link| matches!(link.routing, Routing::Hash | Routing::Broadcast))
}

/// The edges between stages, in the order of their links.
pub(crate) fn connect(
    plan: &LogicalPlan,
    stages: &[Stage],
    stage_of: &[usize],
    parallelism: &[u16],
    defaults: &Defaults,
) -> Vec<Edge> {
    let mut taken = BTreeSet::new();
    let mut edges = Vec::new();
    for (place, link) in plan.links.iter().enumerate() {
        let (from_stage, to_stage) = (stage_of[link.from], stage_of[link.to]);
        if from_stage != to_stage {
            edges.push(Edge {
                link: place,
                from_stage,
                to_stage,
                name: unique(format!("{}→{}", stages[from_stage].name, stages[to_stage].name), &mut taken),
                routing: routing(link, parallelism),
                capacity_batches: defaults.edge_batches,
                capacity_bytes: defaults.edge_bytes,
            });
        }
    }
    edges
}

/// Forward needs the same worker on both sides; where there is none, batches are dealt out in turn.
pub(crate) fn routing(link: &Link, parallelism: &[u16]) -> Routing {
    match link.routing {
        Routing::Forward if parallelism[link.from] != parallelism[link.to] => Routing::Rebalance,
        routing => routing,
    }
}

/// What a stage is called: the author's name of its head, or of the first operator that has one, or what it begins with.
fn title(head: &Node) -> String {
    let NodeKind::Chain { operators } = &head.kind else { return head.name.clone() };
    let named = operators.iter().find_map(|operator| operator.name.clone());
    named.or_else(|| operators.first().map(|operator| operator.kind.into())).unwrap_or_else(|| head.name.clone())
}

fn unique(name: String, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|n| format!("{name}#{n}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|candidate| !taken.contains(candidate));
    let name = free.unwrap_or(name);
    taken.insert(name.clone());
    name
}
