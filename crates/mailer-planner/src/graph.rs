//! The links of a plan, seen from its nodes.

use crate::{Link, LogicalPlan};
use std::collections::BTreeSet;

/// Inputs and outputs of every node, by place in [`LogicalPlan::links`].
pub(crate) struct Graph<'a> {
    plan: &'a LogicalPlan,
    inputs: Vec<Vec<usize>>,
    outputs: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    /// Links must lead from node to node.
    pub(crate) fn of(plan: &'a LogicalPlan) -> Self {
        let mut graph = Self { plan, inputs: vec![vec![]; plan.nodes.len()], outputs: vec![vec![]; plan.nodes.len()] };
        for (place, link) in plan.links.iter().enumerate() {
            graph.inputs[link.to].push(place);
            graph.outputs[link.from].push(place);
        }
        graph
    }

    /// Places of the links into a node.
    pub(crate) fn inputs(&self, node: usize) -> &[usize] {
        &self.inputs[node]
    }

    /// Places of the links out of a node.
    pub(crate) fn outputs(&self, node: usize) -> &[usize] {
        &self.outputs[node]
    }

    /// The links into a node.
    pub(crate) fn links_into(&self, node: usize) -> impl Iterator<Item = &'a Link> {
        self.inputs[node].iter().map(|place| &self.plan.links[*place])
    }

    /// Nodes so that every link leads forward; among the free ones, first made first. Nodes on a loop are missing.
    pub(crate) fn flow_order(&self) -> Vec<usize> {
        let mut missing: Vec<usize> = self.inputs.iter().map(Vec::len).collect();
        let mut free: BTreeSet<usize> = (0..missing.len()).filter(|node| missing[*node] == 0).collect();
        let mut order = Vec::new();
        while let Some(node) = free.pop_first() {
            order.push(node);
            for place in &self.outputs[node] {
                let to = self.plan.links[*place].to;
                missing[to] -= 1;
                if missing[to] == 0 {
                    free.insert(to);
                }
            }
        }
        order
    }

    /// Every node from which records can reach `node`.
    pub(crate) fn upstream(&self, node: usize) -> BTreeSet<usize> {
        self.upstream_along(node, |_| true)
    }

    /// Every node from which records can reach `node` along links that `follow` allows.
    pub(crate) fn upstream_along(&self, node: usize, follow: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut next = vec![node];
        while let Some(node) = next.pop() {
            for place in self.inputs[node].iter().filter(|place| follow(**place)) {
                let from = self.plan.links[*place].from;
                if found.insert(from) {
                    next.push(from);
                }
            }
        }
        found
    }
}
