//! The physical plan as a Mermaid flowchart.

use crate::explain::{label, routing};
use crate::{LogicalPlan, NodeKind, PhysicalPlan, Stage};
use std::fmt::{self, Display, Formatter};

impl PhysicalPlan {
    /// The plan as a picture: a box a stage, thick arrows where records cross a queue. See <https://mermaid.js.org>.
    pub fn mermaid(&self, logical: &LogicalPlan) -> String {
        Chart { logical, physical: self }.to_string()
    }
}

struct Chart<'a> {
    logical: &'a LogicalPlan,
    physical: &'a PhysicalPlan,
}

impl Display for Chart<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "flowchart LR")?;
        self.physical.stages.iter().try_for_each(|stage| self.stage(f, stage))?;
        (0..self.logical.links.len()).try_for_each(|link| self.link(f, link))
    }
}

impl Chart<'_> {
    fn stage(&self, f: &mut Formatter<'_>, stage: &Stage) -> fmt::Result {
        writeln!(f, "  subgraph s{}[\"{} × {}\"]", stage.id, escape(&stage.name), stage.parallelism)?;
        stage.nodes.iter().try_for_each(|node| self.node(f, *node))?;
        writeln!(f, "  end")
    }

    fn node(&self, f: &mut Formatter<'_>, place: usize) -> fmt::Result {
        let node = &self.logical.nodes[place];
        let (open, close) = match node.kind {
            NodeKind::Chain { .. } => ("[", "]"),
            NodeKind::Source { .. } | NodeKind::Sink { .. } => ("([", "])"),
        };
        writeln!(f, "    n{place}{open}\"{}\"{close}", escape(&label(node)))
    }

    fn link(&self, f: &mut Formatter<'_>, place: usize) -> fmt::Result {
        let link = &self.logical.links[place];
        match self.physical.edge_of(place) {
            Some(edge) => writeln!(f, "  n{} ==>|{}| n{}", link.from, routing(edge.routing), link.to),
            None => writeln!(f, "  n{} --> n{}", link.from, link.to),
        }
    }
}

/// Mermaid's own escapes for what would end or change a label.
fn escape(text: &str) -> String {
    text.replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;").replace('`', "#96;")
}
