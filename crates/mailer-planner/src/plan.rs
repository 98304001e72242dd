//! Decides the physical plan.

use crate::graph::Graph;
use crate::{Defaults, Guarantee, LogicalPlan, PhysicalPlan, Problem, check, guarantee, parallelism, stages, warnings};

/// Decides stages, parallelism, routing and edges, and whether the guarantee that was asked for holds. What is wrong is
/// reported all at once, each with the node's name and what to change.
pub fn plan(logical: &LogicalPlan, defaults: &Defaults) -> Result<PhysicalPlan, Vec<Problem>> {
    let problems = check::links(logical);
    if !problems.is_empty() {
        return Err(problems); // without sound links nothing else can be said
    }
    let graph = Graph::of(logical);
    let order = graph.flow_order();
    let parallelism = parallelism::decide(logical, &graph, &order, defaults);
    let stages = stages::cut(logical, &graph, &order, &parallelism);
    let problems = check::all(logical, &graph, &order, &stages, defaults);
    if !problems.is_empty() {
        return Err(problems);
    }
    let sinks = guarantee::of_sinks(logical, &graph);
    let mut stage_of = vec![0; logical.nodes.len()];
    stages.iter().for_each(|stage| stage.nodes.iter().for_each(|node| stage_of[*node] = stage.id));
    Ok(PhysicalPlan {
        job: logical.job.clone(),
        guarantee: sinks.iter().map(|sink| sink.guarantee).min().unwrap_or(Guarantee::None),
        key_groups: defaults.key_groups,
        edges: stages::connect(logical, &stages, &stage_of, &parallelism, defaults),
        warnings: warnings::all(logical, &graph, &stages, &parallelism, defaults),
        in_stage: logical.links.iter().map(|link| stage_of[link.from] == stage_of[link.to]).collect(),
        sinks,
        stages,
        stage_of,
    })
}
