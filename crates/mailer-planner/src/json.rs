//! The physical plan as JSON, for programs.

use crate::explain::routing;
use crate::{Edge, LogicalPlan, NodeKind, OperatorInfo, PhysicalPlan, SinkGuarantee, Stage};
use serde_json::{Value, json};

impl PhysicalPlan {
    /// The plan for programs: `job`, `guarantee`, `checkpoints`, `keyGroups`, `stages` with their `nodes`, `edges`, `sinks`
    /// and `warnings`. Fields may be added; those that are there stay.
    pub fn json(&self, logical: &LogicalPlan) -> Value {
        let list = |items: Vec<Value>| Value::Array(items);
        json!({
            "job": self.job,
            "guarantee": self.guarantee.to_string(),
            "checkpoints": logical.checkpointing,
            "keyGroups": self.key_groups,
            "stages": list(self.stages.iter().map(|of| stage(logical, of)).collect()),
            "edges": list(self.edges.iter().map(edge).collect()),
            "sinks": list(self.sinks.iter().map(|of| sink(logical, of)).collect()),
            "warnings": list(self.warnings.iter().map(|warning| warning.to_string().into()).collect()),
        })
    }
}

fn stage(logical: &LogicalPlan, stage: &Stage) -> Value {
    let nodes: Vec<_> = stage.nodes.iter().map(|place| node(logical, *place)).collect();
    json!({"id": stage.id, "name": stage.name, "workers": stage.parallelism, "keyed": stage.keyed, "nodes": nodes})
}

fn node(logical: &LogicalPlan, place: usize) -> Value {
    let node = &logical.nodes[place];
    let (kind, operators) = match &node.kind {
        NodeKind::Source { .. } => ("source", Vec::new()),
        NodeKind::Sink { .. } => ("sink", Vec::new()),
        NodeKind::Chain { operators } => ("chain", operators.iter().map(operator).collect()),
    };
    json!({"id": place, "kind": kind, "name": node.name, "description": node.description, "operators": operators})
}

fn operator(operator: &OperatorInfo) -> Value {
    json!({"kind": operator.kind, "name": operator.name, "state": operator.stateful, "keyed": operator.keyed})
}

fn edge(edge: &Edge) -> Value {
    json!({
        "from": edge.from_stage,
        "to": edge.to_stage,
        "name": edge.name,
        "routing": routing(edge.routing),
        "batches": edge.capacity_batches,
        "bytes": edge.capacity_bytes,
    })
}

fn sink(logical: &LogicalPlan, sink: &SinkGuarantee) -> Value {
    json!({
        "name": logical.nodes[sink.node].name,
        "guarantee": sink.guarantee.to_string(),
        "reason": sink.reason,
    })
}
