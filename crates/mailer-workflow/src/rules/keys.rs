//! Steps that keep state by key need one.

use super::Look;
use crate::model::{Graph, Model, Operation, Origin};
use crate::{Code, Findings};

/// Whether records are under a key behind `origin`. Filters and changes of fields keep the key; a reduce, a dedupe, a union,
/// a route, a process and an asyncMap put records out without one.
pub(crate) fn is_keyed(model: &Model, graph: &Graph, origin: Origin) -> bool {
    let Origin::Step(place) = origin else { return false };
    match &model.steps[place].operation {
        Some(Operation::KeyBy { .. }) => true,
        // A step that could not be read may be anything: no second finding because of it.
        None => true,
        Some(
            Operation::Reduce(_)
            | Operation::Dedupe(_)
            | Operation::Join(_)
            | Operation::Union
            | Operation::Route(_)
            | Operation::Process(_)
            | Operation::Call(_),
        ) => false,
        Some(_) => match graph.steps[place].as_slice() {
            [input] if graph.order.contains(&place) => is_keyed(model, graph, *input),
            _ => false,
        },
    }
}

pub(super) fn keyed(look: Look<'_>, findings: &mut Findings) {
    for place in &look.graph.order {
        let step = &look.model.steps[*place];
        let inputs = &look.graph.steps[*place];
        let behind_window = inputs.iter().any(|input| is_window(look.model, *input));
        let needs = match step.operation {
            Some(Operation::Reduce(_)) => !behind_window,
            Some(Operation::Window(_) | Operation::Dedupe(_) | Operation::Process(_)) => true,
            _ => false,
        };
        if needs && !inputs.is_empty() && !inputs.iter().all(|input| is_keyed(look.model, look.graph, *input)) {
            let message = format!("{} works by key, and its records have none", step.title());
            let help = "put a step `type: keyBy` before it; behind a reduce, dedupe, union or route the key is gone and has to be given again";
            findings.add(Code::NotKeyed, step.span, message, help);
        }
        let several = inputs.len() > 1 && !matches!(step.operation, Some(Operation::Union) | None);
        if several && needs {
            let message = format!("{} takes one keyed input, and has {}", step.title(), inputs.len());
            findings.add(Code::Conflict, step.span, message, "unite them before the keyBy: a step `type: union`");
        }
    }
}

/// A join has two inputs, each of them a keyBy.
pub(super) fn joined(look: Look<'_>, findings: &mut Findings) {
    for (place, step) in look.model.steps.iter().enumerate() {
        if !matches!(step.operation, Some(Operation::Join(_))) || findings.has(Code::UnknownInput) {
            continue;
        }
        let inputs = &look.graph.steps[place];
        let by_key = |origin: &Origin| matches!(origin, Origin::Step(step) if matches!(look.model.steps[*step].operation, Some(Operation::KeyBy { .. }) | None));
        if inputs.len() != 2 || !inputs.iter().all(by_key) {
            let message = format!("{} needs two inputs, each a keyBy", step.title());
            let help =
                "write `input: [left, right]` with the ids of two steps `type: keyBy`; other steps come before those";
            let span = step.inputs.first().map_or(step.span, |input| input.span);
            findings.add(Code::NotKeyed, span, message, help);
        }
    }
}

pub(super) fn is_window(model: &Model, origin: Origin) -> bool {
    matches!(origin, Origin::Step(place) if matches!(model.steps[place].operation, Some(Operation::Window(_))))
}
