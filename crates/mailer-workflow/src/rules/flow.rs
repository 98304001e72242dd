//! Records come from a source, and end in a sink.

use super::Look;
use crate::model::{Operation, Origin};
use crate::{Code, Findings, Span};

/// A workflow without a beginning or an end.
pub(super) fn ends(look: Look<'_>, findings: &mut Findings) {
    let model = look.model;
    let is_missing = |names: [&str; 2]| !names.iter().any(|name| model.misnamed.contains(name));
    if model.sources.is_empty() && is_missing(["source", "sources"]) {
        let help = "add `source: {type: …}`, or run it in a pipe: `mailer run --stdin`";
        findings.add(Code::MissingSource, model.top, "the workflow has no source", help);
    }
    if model.sinks.is_empty() && is_missing(["sink", "sinks"]) {
        let help = "add `sink: {type: stdout}`, or another type";
        findings.add(Code::MissingSink, model.top, "the workflow has no sink", help);
    }
}

/// Steps that wait for each other.
pub(super) fn cycles(look: Look<'_>, findings: &mut Findings) {
    for (place, step) in look.model.steps.iter().enumerate() {
        let origin = Origin::Step(place);
        if look.graph.order.contains(&place)
            || !look.graph.upstream(&look.graph.steps[place]).iter().any(|o| o.step() == origin.step())
        {
            continue;
        }
        let inputs = step.inputs.iter().zip(&look.graph.steps[place]);
        let leads_back = |input: &Origin| look.graph.upstream(&[*input]).iter().any(|o| o.step() == origin.step());
        let span = inputs.filter(|(_, input)| leads_back(input)).map(|(name, _)| name.span).next().unwrap_or(step.span);
        let message = format!("{} is, through its inputs, an input of itself", step.title());
        findings.add(Code::Cycle, span, message, "records must flow from sources to sinks: change one of the `input`s");
    }
}

/// Outputs that nobody reads.
pub(super) fn unused(look: Look<'_>, findings: &mut Findings) {
    let model = look.model;
    if model.sinks.is_empty() || findings.has(Code::UnknownInput) || findings.has(Code::MissingId) {
        return; // what is missing is said elsewhere, once
    }
    let help = |name: &str| format!("name it as the `input` of a step or sink: `input: {name}`; or remove it");
    let mut complain = |origin: Origin, span: Span, what: String, name: &str| {
        let (steps, sinks) = look.graph.readers(origin);
        if steps.is_empty() && sinks.is_empty() {
            findings.add(Code::Unused, span, format!("nobody reads {what}"), help(name));
        }
    };
    for (place, source) in model.sources.iter().enumerate() {
        complain(Origin::Source(place), source.id.span, format!("the source `{}`", source.id.value), &source.id.value);
    }
    for (place, step) in model.steps.iter().enumerate() {
        let name = step.id.as_ref().map_or("…", |id| id.value.as_str());
        complain(Origin::Step(place), step.span, format!("the output of {}", step.title()), name);
        if let Some(late) = step.operation.as_ref().and_then(Operation::late) {
            complain(Origin::Late(place), late.span, format!("the late records `{}`", late.value), &late.value);
        }
        if let Some(Operation::Route(ways)) = &step.operation {
            for (number, way) in ways.iter().enumerate() {
                let full = format!("{name}.{}", way.name.value);
                complain(Origin::Way(place, number), way.name.span, format!("the way `{full}`"), &full);
            }
        }
    }
}
