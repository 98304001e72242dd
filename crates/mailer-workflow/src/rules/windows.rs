//! Windows that can work, and event time to close them.

use super::Look;
use crate::model::{Join, JoinKind, Operation, Origin, WindowKind};
use crate::{Code, Findings, Spanned};
use std::time::Duration;

/// Sizes, slides and gaps.
pub(super) fn settings(look: Look<'_>, findings: &mut Findings) {
    for step in &look.model.steps {
        let window = match &step.operation {
            Some(Operation::Window(window)) => window,
            Some(Operation::Join(Join { kind: JoinKind::Window { window, .. }, .. })) => window,
            _ => continue,
        };
        let mut whole = |what: &str, duration: &Spanned<Duration>| {
            if duration.value.is_zero() || !duration.value.subsec_nanos().is_multiple_of(1_000_000) {
                let message = format!("the {what} of a window cannot be {:?}", duration.value);
                findings.add(
                    Code::BadWindow,
                    duration.span,
                    message,
                    "use one millisecond or more, in whole milliseconds",
                );
            }
        };
        match &window.kind {
            WindowKind::Tumbling { size, .. } => whole("size", size),
            WindowKind::Session { gap } => whole("gap", gap),
            WindowKind::Global { .. } => {}
            WindowKind::Sliding { size, slide, .. } => {
                whole("size", size);
                whole("slide", slide);
                if slide.value > size.value {
                    let message = format!(
                        "the slide of {:?} is longer than the size of {:?}: records between the windows would be lost",
                        slide.value, size.value
                    );
                    findings.add(
                        Code::BadWindow,
                        slide.span,
                        message,
                        "make it at most the size, or filter what is not wanted",
                    );
                }
            }
        }
    }
}

/// A window is nothing without the reduce behind it.
pub(super) fn followed(look: Look<'_>, findings: &mut Findings) {
    for (place, step) in look.model.steps.iter().enumerate() {
        if !matches!(step.operation, Some(Operation::Window(_))) {
            continue;
        }
        let (steps, sinks) = look.graph.readers(Origin::Step(place));
        let reduces = |place: &usize| matches!(look.model.steps[*place].operation, Some(Operation::Reduce(_)) | None);
        if !sinks.is_empty() || !steps.iter().all(reduces) {
            let message = format!("{} is not followed by a reduce", step.title());
            let help = "put a step `type: reduce` right behind it: it says what is computed over each window";
            findings.add(Code::WindowAlone, step.span, message, help);
        }
    }
}

/// Windows in event time close when the watermark passes: there has to be one.
pub(super) fn watermarks(look: Look<'_>, findings: &mut Findings) {
    for (place, step) in look.model.steps.iter().enumerate() {
        let by_time = match &step.operation {
            Some(Operation::Window(window)) => !matches!(window.kind, WindowKind::Global { .. }),
            Some(Operation::Join(join)) => !matches!(join.kind, JoinKind::Lookup { .. }),
            Some(Operation::Dedupe(_)) => true,
            _ => false,
        };
        if !by_time {
            continue;
        }
        for origin in look.graph.upstream(&look.graph.steps[place]) {
            let Origin::Source(source) = origin else { continue };
            let source = &look.model.sources[source];
            let known = source.kind.as_ref().is_some_and(|kind| look.registry.source_of(&kind.value).is_some());
            if source.watermark.is_none() && known {
                let message =
                    format!("{} waits for event time, and the source `{}` tells none", step.title(), source.id.value);
                let help = "add `watermark: {bounded: 5s}` to the source, and `timestamp: {field: …}` where the time is a field";
                findings.add(Code::NoWatermark, step.span, message, help);
            }
        }
    }
}
