//! What makes a plan impossible.

use crate::graph::Graph;
use crate::{Defaults, Delivery, LogicalPlan, NodeKind, Problem, Stage, guarantee, names};

/// Links lead from node to node. Anything else is a bug of whoever built the plan.
pub(crate) fn links(plan: &LogicalPlan) -> Vec<Problem> {
    let nodes = plan.nodes.len();
    let broken = plan.links.iter().filter(|link| link.from >= nodes || link.to >= nodes);
    let message =
        |from, to| format!("a link leads from node {from} to node {to} of {nodes}: report this as a bug in Mailer");
    broken.map(|link| Problem::new(&plan.job, message(link.from, link.to))).collect()
}

/// All problems of a plan with sound links.
pub(crate) fn all(
    plan: &LogicalPlan,
    graph: &Graph<'_>,
    order: &[usize],
    stages: &[Stage],
    defaults: &Defaults,
) -> Vec<Problem> {
    let mut problems = plan.problems.clone();
    problems.extend(check_defaults(plan, defaults));
    problems.extend(names::check(plan));
    problems.extend(check_ends(plan, graph));
    problems.extend(check_loops(plan, order));
    problems.extend(check_parallelism(plan, stages, defaults));
    problems.extend(check_keys(plan, stages));
    problems.extend(check_exactly_once(plan, graph));
    problems
}

fn check_defaults(plan: &LogicalPlan, defaults: &Defaults) -> Vec<Problem> {
    let checks = [
        (defaults.workers == 0, "the default parallelism is 0: give it at least one worker"),
        (
            !(1..=32_768).contains(&defaults.key_groups),
            "the number of key groups must be between 1 and 32768: change it",
        ),
        (
            defaults.edge_batches == 0 || defaults.edge_bytes == 0,
            "an edge has no capacity: give it at least one batch and byte",
        ),
    ];
    checks.iter().filter(|(fails, _)| *fails).map(|(_, message)| Problem::new(&plan.job, *message)).collect()
}

/// Records come from a source and end in a sink.
fn check_ends(plan: &LogicalPlan, graph: &Graph<'_>) -> Vec<Problem> {
    let is_source = |kind: &NodeKind| matches!(kind, NodeKind::Source { .. });
    let is_sink = |kind: &NodeKind| matches!(kind, NodeKind::Sink { .. });
    let mut problems = Vec::new();
    if !plan.nodes.iter().any(|node| is_source(&node.kind)) {
        problems.push(Problem::new(&plan.job, "it has no source: begin with .source(…)"));
    }
    if plan.nodes.is_empty() {
        problems.push(Problem::new(&plan.job, "it has no sink: end with .sink(…)"));
    }
    for (place, node) in plan.nodes.iter().enumerate() {
        let inputs = graph.inputs(place).len();
        let outputs = graph.outputs(place).iter().filter(|link| !plan.links[**link].side).count();
        let mut complain = |message: String| problems.push(Problem::new(&node.name, message));
        match &node.kind {
            kind if !is_sink(kind) && outputs == 0 => {
                complain(format!("the output of \"{}\" goes nowhere: end it with .sink(…)", node.name));
            }
            kind if is_source(kind) && inputs > 0 => complain("a source has no input: link something else".into()),
            kind if is_sink(kind) && outputs > 0 => complain("a sink has no output: link something else".into()),
            kind if !is_source(kind) && inputs == 0 => complain("nothing flows into it: link it to a stream".into()),
            _ => {}
        }
    }
    problems
}

fn check_loops(plan: &LogicalPlan, order: &[usize]) -> Vec<Problem> {
    let on_loop = (0..plan.nodes.len()).filter(|node| !order.contains(node));
    let message = "it is part of, or behind, a loop: records must flow from sources to sinks";
    on_loop.map(|node| Problem::new(&plan.nodes[node].name, message)).collect()
}

fn check_parallelism(plan: &LogicalPlan, stages: &[Stage], defaults: &Defaults) -> Vec<Problem> {
    let zero = plan.nodes.iter().filter(|node| node.parallelism == Some(0));
    let zero = zero.map(|node| Problem::new(&node.name, "its parallelism is 0: give it at least one worker"));
    let groups = defaults.key_groups;
    let wide = stages.iter().filter(|stage| stage.keyed && stage.parallelism > groups);
    let message =
        |workers| format!("it has {workers} workers but the job has {groups} key groups: use at most {groups} workers");
    zero.chain(wide.map(|stage| Problem::new(&stage.name, message(stage.parallelism)))).collect()
}

/// Keyed state is found by key group, so records must arrive by key group.
fn check_keys(plan: &LogicalPlan, stages: &[Stage]) -> Vec<Problem> {
    let nodes = stages.iter().filter(|stage| !stage.keyed).flat_map(|stage| &stage.nodes);
    let mut problems = Vec::new();
    for node in nodes {
        let NodeKind::Chain { operators } = &plan.nodes[*node].kind else { continue };
        for operator in operators.iter().filter(|operator| operator.keyed) {
            let message = "it keeps state by key but its input is not keyed: put .key_by(…) directly before it";
            problems.push(Problem::new(operator.name.as_deref().unwrap_or(operator.kind), message));
        }
    }
    problems
}

fn check_exactly_once(plan: &LogicalPlan, graph: &Graph<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (place, node) in plan.nodes.iter().enumerate() {
        if !matches!(node.kind, NodeKind::Sink { delivery: Delivery::ExactlyOnce }) {
            continue;
        }
        let sink = &node.name;
        if !plan.checkpointing {
            let message = format!(
                "sink \"{sink}\" is exactly once but the job takes no checkpoints: add .checkpointing(…), or use an \
                 at-least-once sink"
            );
            problems.push(Problem::new(sink, message));
        }
        for source in guarantee::sources_that_cannot_replay(plan, graph, place) {
            let source = &plan.nodes[source].name;
            let message = format!(
                "sink \"{sink}\" is exactly once but source \"{source}\" cannot be read again after a crash: use a source \
                 that can, or an at-least-once sink"
            );
            problems.push(Problem::new(sink, message));
        }
    }
    problems
}
