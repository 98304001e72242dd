//! The physical plan in the language of Graphviz.

use crate::explain::{label, routing};
use crate::{LogicalPlan, NodeKind, PhysicalPlan, Stage};
use std::fmt::{self, Display, Formatter};

impl PhysicalPlan {
    /// The plan as a picture for `dot`: a cluster a stage, bold arrows where records cross a queue. See
    /// <https://graphviz.org>.
    pub fn dot(&self, logical: &LogicalPlan) -> String {
        Digraph { logical, physical: self }.to_string()
    }
}

struct Digraph<'a> {
    logical: &'a LogicalPlan,
    physical: &'a PhysicalPlan,
}

impl Display for Digraph<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "digraph \"{}\" {{\n  rankdir=LR;", escape(&self.physical.job))?;
        self.physical.stages.iter().try_for_each(|stage| self.stage(f, stage))?;
        (0..self.logical.links.len()).try_for_each(|link| self.link(f, link))?;
        writeln!(f, "}}")
    }
}

impl Digraph<'_> {
    fn stage(&self, f: &mut Formatter<'_>, stage: &Stage) -> fmt::Result {
        writeln!(f, "  subgraph cluster_{} {{", stage.id)?;
        writeln!(f, "    label=\"{} × {}\";", escape(&stage.name), stage.parallelism)?;
        stage.nodes.iter().try_for_each(|node| self.node(f, *node))?;
        writeln!(f, "  }}")
    }

    fn node(&self, f: &mut Formatter<'_>, place: usize) -> fmt::Result {
        let node = &self.logical.nodes[place];
        let shape = match node.kind {
            NodeKind::Chain { .. } => "box",
            NodeKind::Source { .. } | NodeKind::Sink { .. } => "ellipse",
        };
        writeln!(f, "    n{place} [shape={shape}, label=\"{}\"];", escape(&label(node)))
    }

    fn link(&self, f: &mut Formatter<'_>, place: usize) -> fmt::Result {
        let link = &self.logical.links[place];
        match self.physical.edge_of(place) {
            Some(edge) => {
                writeln!(f, "  n{} -> n{} [style=bold, label=\"{}\"];", link.from, link.to, routing(edge.routing))
            }
            None => writeln!(f, "  n{} -> n{};", link.from, link.to),
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use crate::{Defaults, Delivery, Link, LogicalPlan, Node, NodeKind, Routing, plan};

    fn small() -> (LogicalPlan, crate::PhysicalPlan) {
        let node = |name: &str, kind| Node { name: name.into(), kind, parallelism: None, description: String::new() };
        let logical = LogicalPlan {
            job: "a \"copy\"".into(),
            checkpointing: false,
            nodes: vec![
                node("in", NodeKind::Source { replayable: true, watermarks: false }),
                node("out", NodeKind::Sink { delivery: Delivery::AtLeastOnce }),
            ],
            links: vec![Link::new(0, 1, Routing::Rebalance)],
            problems: vec![],
        };
        let physical = plan(&logical, &Defaults { workers: 2, ..Defaults::default() }).unwrap();
        (logical, physical)
    }

    #[test]
    fn a_plan_is_a_digraph_with_a_cluster_for_each_stage() {
        let (logical, physical) = small();
        let dot = physical.dot(&logical);
        for part in [
            "digraph \"a \\\"copy\\\"\" {",
            "subgraph cluster_0",
            "n0 [shape=ellipse, label=\"source \\\"in\\\"\"];",
            "n0 -> n1 [style=bold, label=\"rebalance\"];",
        ] {
            assert!(dot.contains(part), "{part} is not in\n{dot}");
        }
    }

    #[test]
    fn a_plan_is_json_for_programs() {
        let (logical, physical) = small();
        let json = physical.json(&logical);
        assert_eq!(json["job"], "a \"copy\"");
        assert_eq!(json["stages"][0]["nodes"][0]["name"], "in");
        assert_eq!(json["stages"][0]["workers"], 2);
        assert_eq!(json["edges"][0]["routing"], "rebalance");
        assert_eq!(json["sinks"][0]["guarantee"], "none");
    }
}
