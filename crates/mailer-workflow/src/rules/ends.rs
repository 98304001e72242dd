//! What sources and sinks promise together with checkpoints.

use super::Look;
use crate::connector::{SinkConnector, Target};
use crate::model::{Origin, SinkModel};
use crate::{Code, Findings};

impl<'a> Look<'a> {
    fn sinks(&self) -> impl Iterator<Item = (usize, &'a SinkModel, &'a dyn SinkConnector)> {
        let (model, registry) = (self.model, self.registry);
        model.sinks.iter().enumerate().filter_map(move |(place, sink)| {
            let connector = registry.sink_of(&sink.kind.as_ref()?.value)?;
            Some((place, sink, connector))
        })
    }
}

/// Exactly once needs checkpoints, and sources that can be read again.
pub(super) fn exactly_once(look: Look<'_>, findings: &mut Findings) {
    for (place, sink, connector) in look.sinks() {
        let kind = connector.section().name;
        let stages = sink.settings.as_ref().is_some_and(|settings| connector.is_exactly_once(settings.fields()));
        let Some(span) = sink.kind.as_ref().map(|kind| kind.span).filter(|_| stages) else { continue };
        if look.model.checkpoint.is_none() {
            let message = format!("{kind} writes exactly once, and the workflow takes no checkpoints");
            findings.add(
                Code::NotExactlyOnce,
                span,
                message,
                "add `checkpoint: {path: ./ckpt}`, or use a sink that writes at least once",
            );
        }
        let letters = look.model.dead_letters().filter(|(_, id)| id.value == sink.id.value).map(|(origin, _)| origin);
        let inputs: Vec<Origin> = look.graph.sinks[place].iter().copied().chain(letters).collect();
        for origin in look.graph.upstream(&inputs) {
            let Origin::Source(source) = origin else { continue };
            let source = &look.model.sources[source];
            let Some(kind_of_source) = &source.kind else { continue };
            if look.registry.source_of(&kind_of_source.value).is_some_and(|connector| !connector.is_replayable()) {
                let message = format!(
                    "{kind} writes exactly once, and {} cannot be read again after a crash",
                    kind_of_source.value
                );
                findings.add(
                    Code::NotExactlyOnce,
                    span,
                    message,
                    "use a source that can, or a sink that writes at least once",
                );
            }
        }
    }
}

/// Two sinks at one target: under one identity, or not at all.
pub(super) fn targets(look: Look<'_>, findings: &mut Findings) {
    let mut seen: Vec<(&SinkModel, Target)> = Vec::new();
    for (_, sink, connector) in look.sinks() {
        let Some(settings) = &sink.settings else { continue };
        let Some(target) = connector.target(settings.fields()) else { continue };
        let Some((first, other)) = seen.iter().find(|(_, other)| other.what == target.what) else {
            seen.push((sink, target));
            continue;
        };
        match (&target.identity, &other.identity) {
            (Some(identity), Some(known)) if identity == known => {}
            (Some(identity), Some(known)) => {
                let span = settings.fields().key_span(identity.key);
                let message = format!(
                    "two sinks write to {} with different `{}`: it belongs to the job, and `{}` has \"{}\"",
                    target.what, identity.key, first.id.value, known.value
                );
                findings.add(Code::SharedTarget, span, message, format!("use \"{}\" for both", known.value));
            }
            _ => {
                let message = format!("two sinks write to {}: `{}` does as well", target.what, first.id.value);
                findings.add(
                    Code::SharedTarget,
                    settings.span,
                    message,
                    "give each its own, or unite the streams before one sink",
                );
            }
        }
    }
}

/// State is linked into checkpoints, which works only within one filesystem.
pub(super) fn folders(look: Look<'_>, findings: &mut Findings) {
    let state = &look.model.state;
    let rocksdb = state.backend.as_ref().filter(|backend| backend.value == "rocksdb");
    if let (Some(backend), None) = (rocksdb, &state.path) {
        let help = "add `path: ./state`, a folder on the disk of the checkpoints";
        findings.add(Code::MissingKey, backend.span, "rocksdb needs a folder", help);
    }
    let checkpoint = look.model.checkpoint.as_ref().and_then(|checkpoint| checkpoint.path.as_ref());
    let (Some(_), Some(state), Some(checkpoint)) = (rocksdb, &state.path, checkpoint) else { return };
    if state.value.trim_end_matches('/') == checkpoint.value.trim_end_matches('/') {
        let help = "give each a folder of its own";
        findings.add(Code::CheckpointPath, state.span, "state and checkpoints are in one folder", help);
    }
    let (of_state, of_checkpoint) = ((look.filesystem)(&state.value), (look.filesystem)(&checkpoint.value));
    if let (Some(of_state), Some(of_checkpoint)) = (of_state, of_checkpoint)
        && of_state != of_checkpoint
    {
        let message = format!(
            "the checkpoints in {} are on another filesystem than the state in {}: state files cannot be linked there",
            checkpoint.value, state.value
        );
        findings.add(Code::CheckpointPath, checkpoint.span, message, "put both folders on one filesystem");
    }
}

/// What connectors themselves object to.
pub(super) fn connectors(look: Look<'_>, findings: &mut Findings) {
    for (_, sink, connector) in look.sinks() {
        if let Some(settings) = &sink.settings {
            connector.check(settings.fields(), findings);
        }
    }
    for source in &look.model.sources {
        let connector = source.kind.as_ref().and_then(|kind| look.registry.source_of(&kind.value));
        if let (Some(connector), Some(settings)) = (connector, &source.settings) {
            connector.check(settings.fields(), findings);
        }
    }
}
