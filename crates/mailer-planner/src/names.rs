//! Names that the author gives: state, positions and staged output are stored under them.

use crate::{LogicalPlan, Node, NodeKind, Problem};
use std::collections::BTreeMap;

/// A name that something is stored under, and what bears it.
struct Named<'a> {
    name: &'a str,
    bearer: &'static str,
}

/// All problems with names.
pub(crate) fn check(plan: &LogicalPlan) -> Vec<Problem> {
    let names: Vec<_> = plan.nodes.iter().flat_map(named).collect();
    let job = Named { name: &plan.job, bearer: "the job" };
    let mut problems: Vec<_> = std::iter::once(&job).chain(&names).filter_map(check_one).collect();
    problems.extend(plan.nodes.iter().flat_map(labels).filter_map(|named| check_one(&named)));
    problems.extend(check_equal(&names));
    problems
}

/// The names of a node that share one namespace.
fn named(node: &Node) -> Vec<Named<'_>> {
    match &node.kind {
        NodeKind::Source { .. } => vec![Named { name: &node.name, bearer: "a source" }],
        NodeKind::Sink { .. } => vec![Named { name: &node.name, bearer: "a sink" }],
        NodeKind::Chain { operators } => {
            let stateful = operators.iter().filter(|operator| operator.stateful);
            let name = |name| Named { name, bearer: "a stateful operator" };
            stateful.map(|operator| name(operator.name.as_deref().unwrap_or(""))).collect()
        }
    }
}

/// Names of stateless operators: only shown, so they may repeat.
fn labels(node: &Node) -> Vec<Named<'_>> {
    let NodeKind::Chain { operators } = &node.kind else { return vec![] };
    let stateless = operators.iter().filter(|operator| !operator.stateful);
    stateless.filter_map(|operator| Some(Named { name: operator.name.as_deref()?, bearer: "an operator" })).collect()
}

fn check_one(Named { name, bearer }: &Named<'_>) -> Option<Problem> {
    if name.trim().is_empty() {
        return Some(Problem::new(format!("({bearer})"), format!("{bearer} has an empty name: give it one")));
    }
    let bad = name.chars().find(|c| *c == '/' || c.is_control())?;
    let message = format!("the name of {bearer} may not contain {bad:?}: rename it");
    Some(Problem::new(name.escape_debug().to_string(), message))
}

fn check_equal(names: &[Named<'_>]) -> Vec<Problem> {
    let mut bearers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Named { name, bearer } in names.iter().filter(|named| !named.name.trim().is_empty()) {
        bearers.entry(name).or_default().push(bearer);
    }
    let shared = bearers.into_iter().filter(|(_, bearers)| bearers.len() > 1);
    shared.map(|(name, bearers)| Problem::new(name, shared_message(&bearers))).collect()
}

fn shared_message(bearers: &[&str]) -> String {
    let bearers = bearers.join(" and ");
    format!("{bearers} have this name; positions, state and output are stored under it: give each a name of its own")
}
