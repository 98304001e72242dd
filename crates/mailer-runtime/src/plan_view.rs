//! The plan of a job as those who watch it see it: names and text, nothing to run.

use crate::attempt::Plan;
use mailer_planner::{NodeKind, Routing};

/// What runs, stage by stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The job.
    pub job: String,
    /// The weakest guarantee of its sinks: `none`, `at least once` or `exactly once`.
    pub guarantee: String,
    /// Stages; every edge leads to a later one. Names are those of the status.
    pub stages: Vec<PlannedStage>,
    /// Edges. Names are those of the status.
    pub edges: Vec<PlannedEdge>,
}

/// A stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStage {
    /// Its name.
    pub name: String,
    /// Its workers.
    pub workers: u16,
    /// What runs in it, in flow order.
    pub steps: Vec<PlannedStep>,
}

/// A source, an operator or a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// `source`, `sink`, or the operator's kind: `map`, `reduce`, …
    pub kind: String,
    /// The author's name, where there is one.
    pub name: Option<String>,
    /// One line about the connector, or the guarantee of a sink.
    pub detail: String,
    /// It keeps state under its name.
    pub stateful: bool,
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEdge {
    /// Its name.
    pub name: String,
    /// The stage that sends.
    pub from: String,
    /// The stage that receives.
    pub to: String,
    /// How records find their worker: `forward`, `by key`, `in turn` or `to all`.
    pub routing: &'static str,
}

impl JobPlan {
    pub(crate) fn of(plan: &Plan) -> Self {
        let physical = &plan.physical;
        let stage = |stage: &mailer_planner::Stage| PlannedStage {
            name: stage.name.clone(),
            workers: stage.parallelism,
            steps: stage.nodes.iter().flat_map(|node| steps(plan, *node)).collect(),
        };
        let edge = |edge: &mailer_planner::Edge| PlannedEdge {
            name: edge.name.clone(),
            from: physical.stages[edge.from_stage].name.clone(),
            to: physical.stages[edge.to_stage].name.clone(),
            routing: routing(edge.routing),
        };
        Self {
            job: plan.settings.job.clone(),
            guarantee: physical.guarantee.to_string(),
            stages: physical.stages.iter().map(stage).collect(),
            edges: physical.edges.iter().map(edge).collect(),
        }
    }
}

fn steps(plan: &Plan, place: usize) -> Vec<PlannedStep> {
    let node = &plan.graph.plan.nodes[place];
    let named = |kind: &str, detail: String| {
        vec![PlannedStep { kind: kind.into(), name: Some(node.name.clone()), detail, stateful: false }]
    };
    match &node.kind {
        NodeKind::Source { .. } => named("source", node.description.clone()),
        NodeKind::Sink { .. } => {
            let guarantee = plan.physical.sinks.iter().find(|sink| sink.node == place);
            let guarantee = guarantee.map(|sink| sink.guarantee.to_string()).unwrap_or_default();
            named("sink", [node.description.as_str(), &guarantee].join(" · "))
        }
        NodeKind::Chain { operators } => {
            let step = |operator: &mailer_planner::OperatorInfo| PlannedStep {
                kind: operator.kind.into(),
                name: operator.name.clone(),
                detail: String::new(),
                stateful: operator.stateful,
            };
            operators.iter().map(step).collect()
        }
    }
}

fn routing(routing: Routing) -> &'static str {
    match routing {
        Routing::Forward => "forward",
        Routing::Hash => "by key",
        Routing::Rebalance => "in turn",
        Routing::Broadcast => "to all",
    }
}
