//! What the author should know although the job can run.

use crate::graph::Graph;
use crate::{Defaults, Delivery, LogicalPlan, NodeKind, Problem, Routing, Stage, stages};

/// All warnings, in the order of nodes within each kind.
pub(crate) fn all(
    plan: &LogicalPlan,
    graph: &Graph<'_>,
    stages: &[Stage],
    parallelism: &[u16],
    defaults: &Defaults,
) -> Vec<Problem> {
    let mut warnings = lost_order(plan, graph, parallelism);
    warnings.extend(uneven_key_groups(stages, defaults));
    warnings.extend(mixed_delivery(plan));
    warnings.extend(no_watermarks(plan, graph));
    warnings
}

/// What waits for event time gets none from such a source before its end.
fn no_watermarks(plan: &LogicalPlan, graph: &Graph<'_>) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (place, node) in plan.nodes.iter().enumerate() {
        let NodeKind::Chain { operators } = &node.kind else { continue };
        let Some(waiting) = operators.iter().find(|operator| operator.event_time) else { continue };
        for source in graph.upstream(place).into_iter().map(|source| &plan.nodes[source]) {
            if matches!(source.kind, NodeKind::Source { watermarks: false, .. }) {
                let message = format!(
                    "it waits for event time, but source \"{}\" tells none before its end: put .watermarks(…) directly behind \
                     the source",
                    source.name
                );
                warnings.push(Problem::new(waiting.name.as_deref().unwrap_or(waiting.kind), message));
            }
        }
    }
    warnings
}

/// Order per key holds while one worker handles a key from the exchange to the sink.
fn lost_order(plan: &LogicalPlan, graph: &Graph<'_>, parallelism: &[u16]) -> Vec<Problem> {
    let routing = |link: usize| stages::routing(&plan.links[link], parallelism);
    let mut warnings = Vec::new();
    for sink in sinks(plan, Delivery::ExactlyOnce) {
        // Everything since the last exchange by key; a rebalance in it whose sender is behind one mixes keys.
        let mut since = graph.upstream_along(sink, |link| routing(link) != Routing::Hash);
        since.insert(sink);
        let links =
            since.iter().flat_map(|node| graph.inputs(*node)).filter(|link| routing(**link) == Routing::Rebalance);
        for link in links.map(|link| &plan.links[*link]).filter(|link| is_keyed(plan, graph, link.from)) {
            let (from, to) = (&plan.nodes[link.from].name, &plan.nodes[link.to].name);
            let message = format!(
                "records of one key may be published out of order: between the keyed work and this sink, \"{from}\" → \"{to}\" \
                 deals batches out in turn ({} → {} workers); give both the same parallelism and no rebalance",
                parallelism[link.from], parallelism[link.to]
            );
            warnings.push(Problem::new(&plan.nodes[sink].name, message));
        }
    }
    warnings
}

/// Whether records have passed an exchange by key before they leave `node`.
fn is_keyed(plan: &LogicalPlan, graph: &Graph<'_>, node: usize) -> bool {
    let mut above = graph.upstream(node);
    above.insert(node);
    plan.links.iter().any(|link| link.routing == Routing::Hash && above.contains(&link.to))
}

/// With few groups a worker, one more group is a lot more keys.
fn uneven_key_groups(stages: &[Stage], defaults: &Defaults) -> Vec<Problem> {
    let groups = u32::from(defaults.key_groups);
    let is_uneven = |workers: u32| groups < 4 * workers && !groups.is_multiple_of(workers);
    let uneven = stages.iter().filter(|stage| stage.keyed && is_uneven(stage.parallelism.into()));
    let message = |workers: u32| {
        format!(
            "{groups} key groups over {workers} workers leave some workers with {} groups and others with {}; use more key \
             groups, or a number of workers that divides them",
            groups.div_ceil(workers),
            groups / workers
        )
    };
    uneven.map(|stage| Problem::new(&stage.name, message(stage.parallelism.into()))).collect()
}

/// Whoever reads both outputs will see them disagree after a crash.
fn mixed_delivery(plan: &LogicalPlan) -> Vec<Problem> {
    let Some(exact) = sinks(plan, Delivery::ExactlyOnce).next() else { return vec![] };
    let exact = &plan.nodes[exact].name;
    let message =
        format!("it may write records again after a crash, unlike the exactly-once sink \"{exact}\" beside it");
    sinks(plan, Delivery::AtLeastOnce).map(|sink| Problem::new(&plan.nodes[sink].name, message.clone())).collect()
}

fn sinks(plan: &LogicalPlan, wanted: Delivery) -> impl Iterator<Item = usize> {
    let is_wanted = move |kind: &NodeKind| matches!(kind, NodeKind::Sink { delivery } if *delivery == wanted);
    (0..plan.nodes.len()).filter(move |node| is_wanted(&plan.nodes[*node].kind))
}
