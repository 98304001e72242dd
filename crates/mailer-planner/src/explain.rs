//! The physical plan as text.

use crate::{Edge, LogicalPlan, Node, NodeKind, OperatorInfo, PhysicalPlan, Routing, Stage};
use std::fmt::{self, Display, Formatter, Write};

impl PhysicalPlan {
    /// The plan for people: stages with their operators, edges, guarantees, warnings. `logical` is what it was made from.
    pub fn explain(&self, logical: &LogicalPlan) -> String {
        Explanation { logical, physical: self }.to_string()
    }
}

struct Explanation<'a> {
    logical: &'a LogicalPlan,
    physical: &'a PhysicalPlan,
}

impl Display for Explanation<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let PhysicalPlan { job, guarantee, key_groups, stages, edges, warnings, .. } = self.physical;
        let checkpoints = if self.logical.checkpointing { "checkpoints" } else { "no checkpoints" };
        writeln!(f, "job {job}\nguarantee: {guarantee}; {checkpoints}; {key_groups} key groups\n")?;
        stages.iter().try_for_each(|stage| self.stage(f, stage))?;
        section(f, "edges", edges.iter().map(|edge| self.edge(edge)))?;
        section(f, "sinks", self.sinks())?;
        section(f, "warnings", warnings.iter().map(ToString::to_string))
    }
}

impl Explanation<'_> {
    fn stage(&self, f: &mut Formatter<'_>, stage: &Stage) -> fmt::Result {
        let keyed = if stage.keyed { ", by key" } else { "" };
        writeln!(f, "stage {} \"{}\" × {}{keyed}", stage.id, stage.name, stage.parallelism)?;
        match stage.nodes.first() {
            Some(head) => self.branch(f, *head, 1, ""),
            None => Ok(()),
        }
    }

    /// A node and what follows it in the same stage: one follower continues it, each of several begins a branch.
    fn branch(&self, f: &mut Formatter<'_>, node: usize, depth: usize, bullet: &str) -> fmt::Result {
        let indent = 2 * depth - bullet.len();
        writeln!(f, "{:indent$}{bullet}{}", "", label(&self.logical.nodes[node]))?;
        let links = self.logical.links.iter().enumerate();
        let inside = links.filter(|(place, link)| link.from == node && self.physical.in_stage(*place));
        let next: Vec<_> = inside.map(|(_, link)| link.to).collect();
        let (depth, bullet) = if next.len() > 1 { (depth + 1, "- ") } else { (depth, "") };
        next.into_iter().try_for_each(|node| self.branch(f, node, depth, bullet))
    }

    fn edge(&self, edge: &Edge) -> String {
        let workers = |stage: usize| self.physical.stages[stage].parallelism;
        let (from, to) = (workers(edge.from_stage), workers(edge.to_stage));
        let (batches, bytes) = (edge.capacity_batches, size(edge.capacity_bytes));
        format!("{}: {}, {from} → {to} workers, {batches} batches or {bytes}", edge.name, routing(edge.routing))
    }

    fn sinks(&self) -> impl Iterator<Item = String> {
        self.physical.sinks.iter().map(|sink| {
            let reason = if sink.reason.is_empty() { String::new() } else { format!(" ({})", sink.reason) };
            format!("{}: {}{reason}", self.logical.nodes[sink.node].name, sink.guarantee)
        })
    }
}

fn section(f: &mut Formatter<'_>, title: &str, lines: impl Iterator<Item = String>) -> fmt::Result {
    let text: String = lines.map(|line| format!("  {line}\n")).collect();
    if text.is_empty() { Ok(()) } else { write!(f, "\n{title}\n{text}") }
}

/// A node in one line.
pub(crate) fn label(node: &Node) -> String {
    let mut text = match &node.kind {
        NodeKind::Source { .. } => format!("source \"{}\"", node.name),
        NodeKind::Sink { .. } => format!("sink \"{}\"", node.name),
        NodeKind::Chain { operators } => operators.iter().map(operator).collect::<Vec<_>>().join(" → "),
    };
    if !node.description.is_empty() {
        let _ = write!(text, ": {}", node.description); // writing to a String cannot fail
    }
    text
}

fn operator(operator: &OperatorInfo) -> String {
    let name = operator.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let state = match (operator.stateful, operator.keyed) {
        (false, _) => "",
        (true, true) => " (keyed state)",
        (true, false) => " (state)",
    };
    format!("{}{name}{state}", operator.kind)
}

/// A routing in one word.
pub(crate) fn routing(routing: Routing) -> &'static str {
    match routing {
        Routing::Forward => "forward",
        Routing::Hash => "hash",
        Routing::Rebalance => "rebalance",
        Routing::Broadcast => "broadcast",
    }
}

fn size(bytes: usize) -> String {
    const UNITS: [(usize, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = UNITS.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}
