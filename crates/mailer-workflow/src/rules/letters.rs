//! Dead letters have a sink of their own.

use super::Look;
use crate::model::Origin;
use crate::schema::nearest;
use crate::{Code, Findings};

/// The sink is there, and takes nothing else.
pub(super) fn sinks(look: Look<'_>, findings: &mut Findings) {
    let ids = || look.model.sinks.iter().map(|sink| sink.id.value.as_str());
    for (_, sink) in look.model.dead_letters() {
        if ids().any(|id| id == sink.value) {
            continue;
        }
        let help = match (nearest(&sink.value, ids()), look.model.sinks.len()) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, 0 | 1) => {
                "write `sinks:` instead of `sink:`, with one more for dead letters, which has an `id` and no \
                              `input`"
                    .to_owned()
            }
            (None, _) => format!("{}; dead letters need one of their own", crate::schema::there_are(ids())),
        };
        findings.add(Code::UnknownInput, sink.span, format!("no sink is called `{}`", sink.value), help);
    }
    for sink in look.model.sinks.iter().filter(|sink| sink.dead_letters) {
        if let Some(input) = sink.inputs.first() {
            let message = format!("the sink `{}` takes dead letters, and so nothing else", sink.id.value);
            findings.add(Code::Conflict, input.span, message, "remove its `input`, or give dead letters another sink");
        }
    }
    if let (false, Some(sink)) =
        (look.model.sinks.is_empty(), look.model.sinks.iter().all(|s| s.dead_letters).then(|| look.model.sinks.first()))
        && let Some(sink) = sink
    {
        let help = "add another sink for the output: `sinks:` with an `id` for each";
        findings.add(Code::MissingSink, sink.id.span, "all sinks take dead letters, and none the output", help);
    }
}

/// Steps that never fail have none.
pub(super) fn steps(look: Look<'_>, findings: &mut Findings) {
    for (origin, sink) in look.model.dead_letters() {
        let Origin::Step(place) = origin else { continue };
        let step = &look.model.steps[place];
        if step.operation.as_ref().is_some_and(|operation| !operation.can_fail()) {
            let message = format!("{} never fails at a record: it has no dead letters", step.title());
            findings.add(Code::Conflict, sink.span, message, "remove `onError`");
        }
    }
}
