//! Ids: there, and each once.

use super::Look;
use crate::model::Operation;
use crate::{Code, Findings, Span, Spanned};

/// Two things with one id.
pub(super) fn unique(look: Look<'_>, findings: &mut Findings) {
    let model = look.model;
    // Of several without a name, the missing one is the mistake.
    let (several_sources, several_sinks) = (model.sources.len() > 1, model.sinks.len() > 1);
    let sources = model.sources.iter().filter(|source| source.named || !several_sources);
    let sources = sources.map(|source| (&source.id, "source"));
    let steps = model.steps.iter().filter_map(|step| Some((step.id.as_ref()?, "step")));
    let sinks = model.sinks.iter().filter(|sink| sink.named || !several_sinks).map(|sink| (&sink.id, "sink"));
    let late = model.steps.iter().filter_map(|step| Some((step.operation.as_ref()?.late()?, "name for late records")));
    let all: Vec<(&Spanned<String>, &str)> = sources.chain(steps).chain(sinks).chain(late).collect();
    for (place, (id, what)) in all.iter().enumerate() {
        let Some((first, other)) = all[..place].iter().find(|(known, _)| known.value == id.value) else { continue };
        let message = format!("this {what} is called `{}`, and so is a {other} on line {}", id.value, first.span.line);
        findings.add(Code::DuplicateId, later(id.span, first.span), message, "give one of them another `id`");
    }
}

fn later(a: Span, b: Span) -> Span {
    a.max(b)
}

/// Steps whose state is stored under their name, and ends that others must tell apart.
pub(super) fn present(look: Look<'_>, findings: &mut Findings) {
    for step in &look.model.steps {
        let keeps = matches!(
            step.operation,
            Some(
                Operation::Reduce(_)
                    | Operation::Dedupe(_)
                    | Operation::Join(_)
                    | Operation::Process(_)
                    | Operation::Call(_)
            )
        );
        if keeps && step.id.is_none() {
            let message = format!("{} has no `id`, and its state is stored under it", step.title());
            findings.add(
                Code::MissingId,
                step.span,
                message,
                "add `id: …`; keep it when you change the step, or the state is lost",
            );
        }
        if matches!(step.operation, Some(Operation::Route(_))) && step.id.is_none() {
            let message = "this route has no `id`, and its ways are named by it".to_owned();
            findings.add(Code::MissingId, step.span, message, "add `id: …`, and name the ways as `input: <id>.<way>`");
        }
    }
    let sources = look.model.sources.iter().map(|source| (source.named, &source.id, "source"));
    let sinks = look.model.sinks.iter().map(|sink| (sink.named, &sink.id, "sink"));
    for (ends, several) in
        [(sources.collect::<Vec<_>>(), look.model.sources.len() > 1), (sinks.collect(), look.model.sinks.len() > 1)]
    {
        for (named, id, what) in ends {
            if several && !named {
                let message = format!("one of several {what}s has no `id`");
                findings.add(
                    Code::MissingId,
                    id.span,
                    message,
                    "add `id: …`: positions and output are stored under it",
                );
            }
        }
    }
}
